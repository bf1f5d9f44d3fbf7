//! Compares two configurations, and divides the changed settings into two groups: settings that a reload
//! applies, and settings that only a start applies.

use std::fmt::Debug;

use super::build::{Config, SiteConfig};

/// Changed parts of a configuration, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Names of changed settings that a reload applies.
    pub(crate) now: Vec<String>,
    /// Names of changed settings that only a start applies.
    pub(crate) later: Vec<String>,
    /// True if all settings that decide about keys, sites, access or the sharing of answers are unchanged.
    /// Then later requests may join the running fetches, and the results of these fetches are stored.
    pub(crate) alike: bool,
}

impl Changes {
    fn compare(&mut self, name: &str, old: &impl Debug, new: &impl Debug) -> bool {
        let changed = shown(old) != shown(new);
        if changed {
            self.now.push(name.to_owned());
        }
        changed
    }

    /// Adds `name` to the changed settings if the contents of token files have changed (`changed`). If the
    /// list contains `admin rights`, nothing is added, because these settings name the token files.
    pub(crate) fn note(&mut self, name: &str, changed: bool) {
        if changed && !self.now.iter().any(|known| known == "admin rights") {
            self.now.push(name.to_owned());
        }
    }

    fn wait(&mut self, name: &str, old: &impl Debug, new: &impl Debug) {
        if shown(old) != shown(new) {
            self.later.push(name.to_owned());
        }
    }
}

/// Returns the settings of the gatekeeper, which checks requests against access rules, users and limits. The
/// gatekeeper also has an index and state that it collects while Foxy runs. These are left out, because they
/// must not be compared.
fn gate(config: &Config) -> impl Debug + '_ {
    let gate = config.proxy.gatekeeper.as_ref();
    (gate.map(|gate| gate.settings()), &config.proxy.pac)
}

fn admin(config: &Config) -> impl Debug {
    (&config.admin_token, &config.admin_rights)
}

fn lines(config: &Config) -> impl Debug {
    let log = &config.log;
    (&log.access, &log.format, log.queries, log.clients)
}

fn caching(config: &Config) -> impl Debug {
    (&config.proxy.rules, &config.proxy.user_rules)
}

/// Returns the printed (`Debug`) form of a value. It contains every setting, so that two forms can be
/// compared.
fn shown(value: &impl Debug) -> String {
    format!("{value:?}")
}

impl Config {
    /// Returns the configuration that a running Foxy with the settings `old` can use from now on. Settings
    /// that only a start applies are taken from `old`, and all other settings from `self`. Also returns the
    /// differences between `self` and `old`.
    pub(crate) fn after(&self, old: &Self) -> (Self, Changes) {
        let mut next = self.clone();
        let mut changes = Changes::default();
        next.keep_at_start(old, &mut changes);
        next.keep_alike(old);
        let decides = [
            changes.compare("listen", &old.listen, &next.listen),
            changes.sites(&old.sites, &next.sites),
            changes.compare("proxy_protocol", &old.proxy_protocol, &next.proxy_protocol),
            changes.compare("access", &old.proxy.access, &next.proxy.access),
            changes.compare("access rules and logins", &gate(old), &gate(&next)),
            changes.compare("mirrors", &old.proxy.mirrors, &next.proxy.mirrors),
            changes.compare("headers", &old.proxy.headers, &next.proxy.headers),
            // The cache settings and the rules are compared together, because each rule contains the settings
            // that it inherits from `[cache]`.
            changes.compare("cache and rules", &caching(old), &caching(&next)),
        ];
        changes.alike = !decides.contains(&true);
        let tls = |config: &Self| (config.listen_tls.clone(), config.tls.clone());
        changes.compare("memory", &old.memory, &next.memory);
        changes.compare("tls", &tls(old), &tls(&next));
        changes.compare("timeouts", &old.proxy.timeouts, &next.proxy.timeouts);
        changes.compare("upstream", &old.proxy.upstream, &next.proxy.upstream);
        changes.compare("limits", &old.proxy.limits, &next.proxy.limits);
        changes.compare("fill", &old.proxy.fill, &next.proxy.fill);
        changes.compare("admin names", &old.admin_hosts, &next.admin_hosts);
        changes.compare("admin rights", &admin(old), &admin(&next));
        changes.compare("log.level", &old.log.level, &next.log.level);
        changes.compare("access log", &lines(old), &lines(&next));
        (next, changes)
    }

    /// Keeps the old values of settings that only a start applies.
    fn keep_at_start(&mut self, old: &Self, changes: &mut Changes) {
        macro_rules! keep {
            ($($name:literal: $($field:ident).+),+ $(,)?) => {
                $(changes.wait($name, &old.$($field).+, &self.$($field).+);
                self.$($field).+ = old.$($field).+.clone();)+
            };
        }
        keep!(
            "workers": workers,
            "pin_workers": pin_workers,
            "store": stores,
            "state folder": state_folder,
            "admission": admission,
            "scrub": scrub,
            "admin": admin,
            "admin socket": admin_socket,
            "name servers": proxy.upstream.name_servers,
            "name in Via": proxy.headers.instance,
        );
        // The addresses of the machine do not come from the configuration file, so the list in use is kept.
        let addresses = &old.proxy.access.local_addresses;
        self.proxy.access.local_addresses.clone_from(addresses);
    }

    /// Keeps the old TLS settings of an origin if the new settings are equal. The connections and TLS
    /// sessions of the origin can then be used again.
    fn keep_alike(&mut self, old: &Self) {
        let (own, before) = (&mut self.proxy.upstream.tls, &old.proxy.upstream.tls);
        if own.is_like(before) {
            *own = before.clone();
        }
        for site in &mut self.sites {
            let same = old.sites.iter().find(|before| before.name == site.name);
            if let Some(before) = same.and_then(|before| before.origin_tls.as_ref())
                && let Some(own) = &mut site.origin_tls
                && own.is_like(before)
            {
                *own = before.clone();
                site.origins.tls = Some(before.clone());
            }
        }
    }
}

impl Changes {
    /// Compares the sites. Returns true if a change can affect decisions (see `alike`). The contents of
    /// certificate files for clients are not compared.
    fn sites(&mut self, old: &[SiteConfig], new: &[SiteConfig]) -> bool {
        let find = |sites: &[SiteConfig], name: &str| {
            let found = sites.iter().find(|site| site.name == name);
            found.cloned()
        };
        let mut names: Vec<&str> = old.iter().chain(new).map(|site| &site.name[..]).collect();
        names.sort_unstable();
        names.dedup();
        let mut decides = false;
        for name in names {
            let (before, after) = (find(old, name), find(new, name));
            let origins = [&before, &after].map(|site| Some(site.as_ref()?.origin_tls.clone()));
            let named = format!("site {name}");
            let differ = self.compare(&named, &before, &after);
            let other_origin = origins[0] != origins[1];
            if other_origin && !differ {
                self.now.push(named);
            }
            decides |= differ || other_origin;
        }
        // If several sites fit a host, the order of the sites decides.
        let order = |sites: &[SiteConfig]| -> Vec<String> {
            sites.iter().map(|site| site.name.clone()).collect()
        };
        decides || order(old) != order(new)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::build;

    const SITE: &str = "[[site]]\nname = \"a\"\nlisten = \"127.0.0.1:8080\"\n";

    /// Compares two configuration files. Returns the settings that a reload applies, the settings that only a
    /// start applies, and whether running fetches continue.
    fn changes(old: &str, new: &str) -> (Vec<String>, Vec<String>, bool) {
        let (old, new) = (build(old).unwrap(), build(new).unwrap());
        let (_, changes) = new.after(&old);
        (changes.now, changes.later, changes.alike)
    }

    #[test]
    fn the_same_text_changes_nothing() {
        let text = format!("{SITE}origin = \"https://a.test\"\n[[rule]]\nhost = \"*.b.test\"\n");
        assert_eq!(changes(&text, &text), (vec![], vec![], true));
    }

    #[test]
    fn what_decides_about_answers_ends_the_sharing_of_fetches() {
        let site = format!("{SITE}origin = \"http://a.test\"\n");
        for (new, name, alike) in [
            ("[timeouts]\nidle = \"3s\"", "timeouts", true),
            ("[limits]\nconnections = 500", "limits", true),
            ("[upstream]\norigin_concurrency = 9", "upstream", true),
            ("[limits]\nclient_connections = 9", "limits", true),
            ("[access]\npurge_rate = 9", "access", false),
            (
                "[access]\nallow_clients = [\"192.0.2.0/24\"]",
                "access",
                false,
            ),
            ("[cache]\ndefault_ttl = \"9s\"", "cache and rules", false),
            ("[[rule]]\nhost = \"a.test\"", "cache and rules", false),
        ] {
            let found = changes(&site, &format!("{site}{new}"));
            assert_eq!(found, (vec![name.to_owned()], vec![], alike), "{new}");
        }
        let found = changes(&site, &format!("memory = \"100MiB\"\n{site}"));
        assert_eq!(found, (vec!["memory".to_owned()], vec![], true));
        for rules in [
            "request_headers = [\"set A: 1\"]",
            "response_headers = [\"set A: 1\"]",
            "rewrite = [\"prefix /a /b\"]",
            "redirects = [\"301 prefix /a /b\"]",
            "compress = [\"br\"]",
        ] {
            let old = format!("{site}{rules}\n");
            assert_eq!(changes(&old, &old), (vec![], vec![], true));
            let decides = (vec!["site a".to_owned()], vec![], false);
            let other = old
                .replace("/b", "/c")
                .replace("A: 1", "A: 2")
                .replace("\"br\"", "\"gzip\"");
            for (old, new) in [(&site, &old), (&old, &site), (&old, &other)] {
                assert_eq!(changes(old, new), decides, "{rules}");
            }
        }
        let other = format!("{SITE}origin = \"http://b.test\"\n");
        assert_eq!(
            changes(&site, &other),
            (vec!["site a".to_owned()], vec![], false)
        );
        let (now, _, alike) = changes(&site, "");
        assert!(now.contains(&"site a".to_owned()) && !alike);
    }

    #[test]
    fn what_only_a_start_applies_is_named_each_time_and_kept() {
        let (old, new) = (build("").unwrap(), build("workers = 7").unwrap());
        let (next, changes) = new.after(&old);
        assert_eq!(changes.later, ["workers"]);
        assert_eq!(next.workers, old.workers);
        let (_, again) = new.after(&next);
        assert_eq!(again, changes);
    }
}
