//! The `[[mirror]]` sections.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use foxy_proxy::mirror::{Class, Kind, Mirror, Preset, Upstream, preset, presets};
use foxy_proxy::{Login, MirrorSite, Mirrors, PublicUrl};
use foxy_tls::{OriginOptions, OriginTls, TlsError};

use super::build::Config;
use super::kind::Value;
use super::problem::Problem;
use super::raw::Section;
use super::suggest::nearest;
use super::values::Values;
use super::versions;

/// Default name of a mirror with the preset `oci`. The preset contains the address of this registry only, so
/// a mirror of another registry needs an `upstream`.
const DOCKER_HUB: &str = "docker.io";

/// Reads all mirrors; returns `None` if there are none. The texts were checked when the values of the
/// settings were read.
pub(super) fn read(
    sections: &[Section],
    public: &[String],
    problems: &mut Vec<Problem>,
) -> Option<Arc<Mirrors>> {
    if sections.is_empty() {
        return None;
    }
    let mut sites: Vec<MirrorSite> = Vec::new();
    for section in sections {
        let Some(site) = one(section, problems) else {
            continue;
        };
        let clash = sites.iter().find(|other| {
            let prefixes = [&other.mirror.prefix, &site.mirror.prefix];
            let below = |a: &str, b: &str| format!("{a}/").starts_with(&format!("{b}/"));
            // Mirrors of images share one prefix. The name of the registry distinguishes them.
            let images = other.mirror.images && site.mirror.images;
            other.mirror.name == site.mirror.name
                || !images && below(prefixes[0], prefixes[1])
                || !images && below(prefixes[1], prefixes[0])
        });
        if let Some(other) = clash {
            let text = format!(
                "the mirrors `{}` and `{}` have the same name, or one prefix is below the other; give each its own `name` and `prefix`",
                other.mirror.name, site.mirror.name
            );
            problems.push(Problem::conflict("mirror", text));
        }
        sites.push(site);
    }
    let public = urls(public).into_iter().map(|url| PublicUrl {
        secure: url.secure,
        authority: url.authority,
    });
    Some(Arc::new(Mirrors {
        sites,
        public: public.collect(),
    }))
}

fn urls(texts: &[String]) -> Vec<Upstream> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

fn one(section: &Section, problems: &mut Vec<Problem>) -> Option<MirrorSite> {
    let place = section
        .values()
        .next()
        .map_or("[[mirror]]", |setting| &setting.place)
        .to_owned();
    let mut values = Values::read("mirror", Some(section), problems);
    let text = |values: &Values<'_>, name: &str| match values.given(name) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let wanted = text(&values, "preset").unwrap_or_default();
    let Some(preset) = preset(&wanted) else {
        values.problem(Problem::conflict(&place, unknown(&wanted)));
        return None;
    };
    let name = text(&values, "name").unwrap_or_else(|| match preset.images {
        true => DOCKER_HUB.to_owned(),
        false => preset.name.clone(),
    });
    let prefixes = values.texts_or_none("prefix");
    let prefix = prefixes.first().cloned().unwrap_or(format!("/{name}"));
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-._~".contains(c);
    if prefixes.len() > 1 || prefix == "/" || !prefix.chars().all(plain) {
        let text = "mirror.prefix is one path of letters, digits and -._~, other than `/`";
        values.problem(Problem::conflict(&place, text.to_owned()));
    }
    let upstreams = urls(&values.texts_or_none("upstream"));
    if upstreams.len() > 1 {
        let text = "mirror.upstream names several servers; a mirror asks one registry alone";
        values.problem(Problem::conflict(&place, text.to_owned()));
    }
    let login = login(
        preset,
        &name,
        (upstreams.first(), &prefixes),
        &mut values,
        &place,
    );
    let given = (upstreams.first().cloned(), hosts(&values));
    let fresh = match values.given("fresh") {
        Some(Value::Duration(Some(time))) => u32::try_from(time.as_secs()).ok(),
        _ => None,
    };
    let tls = match text(&values, "upstream_ca") {
        None => OriginTls::system(),
        Some(path) => authorities(&path).unwrap_or_else(|error| {
            let text = format!("mirror.upstream_ca: {error}");
            values.problem(Problem::conflict(&place, text));
            OriginTls::system()
        }),
    };
    let rules = versions::read(preset, &mut values, &place);
    let own = versions::own_names(preset, given.0.is_some(), &mut values, &place);
    let mut site = site(preset, (name, &prefix), given, fresh, tls);
    if let Some(rules) = rules {
        site.mirror = site.mirror.under(rules);
    }
    if let Some(own) = own {
        site.mirror = site.mirror.with_own(own);
    }
    Some(MirrorSite {
        login,
        client_logins: values.flag("client_logins"),
        ..site
    })
}

/// Checks that the settings of a mirror fit together, and returns the credential for the upstream.
fn login(
    preset: &Preset,
    name: &str,
    (upstream, prefixes): (Option<&Upstream>, &[String]),
    values: &mut Values<'_>,
    place: &str,
) -> Option<Login> {
    let text = |name: &str| match values.given(name) {
        Some(Value::Text(text)) => Some(text.trim().to_owned()),
        _ => None,
    };
    let (login, token) = (text("login"), text("token"));
    let bearer = token.as_deref().map(Login::token);
    let own = matches!(values.given("client_logins"), Some(Value::Flag(true)));
    let given = login.is_some() || token.is_some() || own;
    let mistakes = [
        (
            preset.images && !prefixes.is_empty(),
            "mirror.prefix: mirrors of container images answer below /v2; leave it out",
        ),
        (
            preset.images && name != DOCKER_HUB && upstream.is_none(),
            "mirror.upstream: a registry of another name than docker.io needs its address",
        ),
        (
            !preset.images && given && upstream.is_none(),
            "mirror.upstream: a credential (`login`, `token`, `client_logins`) is for a registry that the section names",
        ),
        (
            preset.images && token.is_some(),
            "mirror.token: registries of container images give tokens themselves; use `login`",
        ),
        (
            preset.images && own,
            "mirror.client_logins: mirrors of container images take them always; leave it out",
        ),
        (
            login.is_some() && token.is_some(),
            "mirror.login and mirror.token exclude each other",
        ),
        (
            login.as_ref().is_some_and(|login| !login.contains(':')),
            "mirror.login is not USER:PASSWORD",
        ),
        (
            matches!(bearer, Some(None)),
            "mirror.token has characters that tokens do not have",
        ),
    ];
    for (_, text) in mistakes.iter().filter(|(wrong, _)| *wrong) {
        values.problem(Problem::conflict(place, (*text).to_owned()));
    }
    bearer
        .flatten()
        .or_else(|| login.as_deref().map(Login::new))
}

fn authorities(path: &str) -> Result<OriginTls, TlsError> {
    OriginTls::new(&OriginOptions {
        authorities: Some(PathBuf::from(path)),
        ..OriginOptions::default()
    })
}

fn hosts(values: &Values<'_>) -> Option<Vec<Upstream>> {
    let given = values.given("hosts").is_some();
    given.then(|| urls(&values.texts_or_none("hosts")))
}

fn site(
    preset: &Preset,
    (name, prefix): (String, &str),
    (upstream, hosts): (Option<Upstream>, Option<Vec<Upstream>>),
    fresh: Option<u32>,
    tls: OriginTls,
) -> MirrorSite {
    let mut named: Vec<Upstream> = hosts.clone().unwrap_or_default();
    named.extend(upstream.clone());
    let own = upstream.is_some();
    let upstream = upstream.unwrap_or_else(|| preset.upstream.clone());
    // If the section names an upstream, the hosts of the preset are not used. They belong to the preset's
    // upstream.
    let hosts = hosts.unwrap_or_else(|| match own {
        true => Vec::new(),
        false => preset.hosts.clone(),
    });
    let class = |class: &Class| Class {
        kind: match (class.kind, fresh) {
            // The setting `fresh` does not apply to release files of apt (`Index(0)`). Release files are
            // revalidated at each use, because apt compares index files with them.
            (Kind::Index(1..), Some(fresh)) => Kind::Index(fresh),
            (kind, _) => kind,
        },
        ..class.clone()
    };
    let classes = preset.classes.iter().map(class).collect();
    let mirror = match preset.images {
        true => Mirror::of_images(name, upstream, hosts, classes),
        false => Mirror::new(name, prefix, upstream, hosts, classes),
    };
    let is_named = |server: &Upstream| named.iter().any(|named| named.is_server_of(server));
    MirrorSite {
        named: mirror.servers().iter().map(is_named).collect(),
        mirror,
        tls,
        login: None,
        client_logins: false,
    }
}

fn unknown(wanted: &str) -> String {
    let names: Vec<String> = presets().iter().map(|preset| preset.name.clone()).collect();
    let hint = match nearest(wanted, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are: {}", names.join(", ")),
    };
    format!("mirror.preset = \"{wanted}\": there is no such preset; {hint}")
}

/// Returns the names of the mirrors.
pub(super) fn names(mirrors: Option<&Mirrors>) -> Vec<String> {
    let sites = mirrors.map_or(&[][..], |mirrors| &mirrors.sites);
    sites.iter().map(|site| site.mirror.name.clone()).collect()
}

/// Finds contradictions between the sections of mirrors and other sections of the configuration.
pub(super) fn check(config: &Config, problems: &mut Vec<Problem>) {
    let names = names(config.proxy.mirrors.as_deref());
    if names.is_empty() {
        return;
    }
    if config.listen.is_empty() {
        let text = "mirrors answer on the listeners of the forward proxy, and there is none; give `listen` or `listen_tls`";
        problems.push(Problem::conflict("mirror", text.to_owned()));
    }
    if let (Some(mirrors), Some(gate)) = (&config.proxy.mirrors, &config.proxy.gatekeeper)
        && let Some(site) = mirrors.sites.iter().find(|site| site.client_logins)
        && gate.has_logins_at(mirrors)
    {
        let text = format!(
            "mirror.client_logins of `{}`: users of mirrors log in at Foxy itself, by the same field; take mirrors and `forward` out of `login.at`",
            site.mirror.name
        );
        problems.push(Problem::conflict("mirror.client_logins", text));
    }
    let taken =
        |name: &&String| *name == "forward" || config.sites.iter().any(|s| s.name == **name);
    if let Some(name) = names.iter().find(taken) {
        let text = format!("the name `{name}` is taken; give the mirror another `name`");
        problems.push(Problem::conflict("mirror.name", text));
    }
}

/// Returns the lines for `foxy check`.
pub(super) fn lines(mirrors: Option<&Mirrors>) -> String {
    let mut text = String::new();
    let Some(mirrors) = mirrors else { return text };
    for site in &mirrors.sites {
        let mirror = &site.mirror;
        let upstream = mirror.servers().first().map(ToString::to_string);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "mirror         {} at {} of {}",
            mirror.name,
            mirror.prefix,
            upstream.unwrap_or_default()
        );
        if let Some(own) = mirror.own() {
            let names: Vec<&str> = own.entries().collect();
            let _ = writeln!(text, "               alone has {}", names.join(", "));
        }
        if let Some(rules) = mirror.rules() {
            let _ = writeln!(text, "               {}", versions::shown(rules));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use foxy_proxy::mirror::Kind;

    use super::super::tests::build;

    #[test]
    fn a_preset_alone_is_a_mirror() {
        let config =
            build("public_url = \"http://Cache.test:3128/\"\n[[mirror]]\npreset = \"pypi\"\n")
                .unwrap();
        let mirrors = config.proxy.mirrors.as_ref().unwrap();
        assert_eq!(mirrors.public[0].authority, "cache.test:3128");
        let site = &mirrors.sites[0];
        assert_eq!(
            (&site.mirror.name[..], &site.mirror.prefix[..]),
            ("pypi", "/pypi")
        );
        // The guard, which refuses private destinations, also applies to the servers of presets.
        assert!(!site.named.contains(&true));
        let own = "[[mirror]]\npreset = \"npm\"\nname = \"own\"\nupstream = \"http://10.0.0.1:4873/npm/\"\n";
        let config = build(own).unwrap();
        let site = &config.proxy.mirrors.as_ref().unwrap().sites[0];
        assert_eq!(
            site.mirror.servers()[0].to_string(),
            "http://10.0.0.1:4873/npm"
        );
        assert!(site.named.iter().all(|named| *named));
        assert_eq!(site.mirror.prefix, "/own");
        assert!(!site.client_logins);
        let config = build(&format!("{own}client_logins = true\n")).unwrap();
        assert!(config.proxy.mirrors.as_ref().unwrap().sites[0].client_logins);
    }

    #[test]
    fn the_life_of_documents_is_a_setting_and_that_of_release_files_is_not() {
        let config = build("[[mirror]]\npreset = \"apt\"\nfresh = \"1h\"\n").unwrap();
        let mirror = &config.proxy.mirrors.as_ref().unwrap().sites[0].mirror;
        let kind = |file: &str| {
            let path = format!("/apt/debian/dists/stable/{file}");
            let target = mirror.target(path.as_bytes()).unwrap();
            mirror.class(target.class).kind
        };
        assert_eq!(kind("main/binary-amd64/Packages"), Kind::Index(3600));
        assert_eq!(kind("InRelease"), Kind::Index(0));
        assert_eq!(kind("Release"), Kind::Index(0));
        assert_eq!(kind("main/by-hash/SHA256/00"), Kind::Immutable);
    }

    #[test]
    fn every_preset_alone_is_a_mirror() {
        for preset in ["pypi", "npm", "cargo", "apt", "go", "maven", "oci"] {
            let config = build(&format!("[[mirror]]\npreset = \"{preset}\"\n"));
            let config = config.unwrap_or_else(|problems| panic!("{preset}: {problems:?}"));
            assert_eq!(config.proxy.mirrors.as_ref().unwrap().sites.len(), 1);
        }
    }

    #[test]
    fn check_shows_the_names_of_a_private_registry() {
        let config = build(
            "[[mirror]]\npreset = \"npm\"\nname = \"own\"\nupstream = \"http://a.test\"\nnames = [\"@acme/*\", \"acme-*\"]\n",
        )
        .unwrap();
        let lines = super::lines(config.proxy.mirrors.as_deref());
        assert!(lines.contains("alone has @acme/*, acme-*\n"), "{lines}");
    }

    #[test]
    fn rules_limits_and_logins_know_mirrors_by_their_names() {
        let users = tempfile::NamedTempFile::new().unwrap();
        let path = users.path();
        for (name, is_known) in [("own", true), ("npm", false)] {
            let text = format!(
                "[[mirror]]\npreset = \"npm\"\nname = \"own\"\nupstream = \"http://a.test\"\nnames = [\"@acme/*\"]\n\
                 [[access_rule]]\nsite = [\"{name}\"]\naction = \"deny\"\n\
                 [[rate]]\nsite = [\"{name}\"]\nrequests = 5\n\
                 [login]\nat = [\"{name}\"]\npassword_file = {path:?}\n"
            );
            let said = build(&text).map(|_| ()).err().unwrap_or_default();
            let about = |part: &str| said.iter().any(|said| said.contains(part));
            for setting in ["access_rule.site", "rate.site", "login.at"] {
                assert_eq!(about(setting), !is_known, "{name} {setting}: {said:?}");
            }
        }
    }

    #[test]
    fn what_cannot_work_is_named() {
        for (text, part) in [
            ("[[mirror]]\npreset = \"pipy\"\n", "there are: pypi, npm"),
            ("[[mirror]]\nname = \"a\"\n", "no such preset"),
            (
                "[[mirror]]\npreset = \"npm\"\n[[mirror]]\npreset = \"npm\"\n",
                "the same name",
            ),
            (
                "[[mirror]]\npreset = \"npm\"\n[[mirror]]\npreset = \"pypi\"\nprefix = \"/npm/py\"\n",
                "one prefix is below the other",
            ),
            (
                "[[mirror]]\npreset = \"npm\"\nprefix = \"/\"\n",
                "mirror.prefix is one path",
            ),
            (
                "[[mirror]]\npreset = \"npm\"\nupstream = \"a.test\"\n",
                "mirror.upstream",
            ),
            (
                "[[mirror]]\npreset = \"oci\"\nname = \"ghcr.io\"\n",
                "needs its address",
            ),
            (
                "[[mirror]]\npreset = \"oci\"\nprefix = \"/images\"\n",
                "answer below /v2",
            ),
            (
                "[[mirror]]\npreset = \"oci\"\n[[mirror]]\npreset = \"oci\"\n",
                "same name",
            ),
            (
                "[[mirror]]\npreset = \"oci\"\nlogin = \"ann\"\n",
                "USER:PASSWORD",
            ),
            (
                "[[mirror]]\npreset = \"npm\"\nlogin = \"ann:pw\"\n",
                "a registry that the section names",
            ),
            (
                "[[mirror]]\npreset = \"oci\"\ntoken = \"abc\"\n",
                "use `login`",
            ),
            (
                "[[mirror]]\npreset = \"npm\"\nupstream = \"http://a.test\"\ntoken = \"a b\"\n",
                "characters that tokens do not have",
            ),
            (
                "[[mirror]]\npreset = \"npm\"\nupstream = \"http://a.test\"\ntoken = \"a\"\nlogin = \"a:b\"\n",
                "exclude each other",
            ),
            (
                "[[mirror]]\npreset = \"npm\"\nclient_logins = true\n",
                "a registry that the section names",
            ),
            (
                "[[mirror]]\npreset = \"oci\"\nclient_logins = true\n",
                "take them always",
            ),
            (
                "[login]\nhelper = [\"/bin/true\"]\n[[mirror]]\npreset = \"npm\"\nupstream = \"http://a.test\"\nclient_logins = true\n",
                "by the same field",
            ),
            (
                "[[mirror]]\npreset = \"npm\"\nnames = [\"@acme/*\"]\n",
                "is for a private registry",
            ),
            (
                "[[mirror]]\npreset = \"cargo\"\nupstream = \"http://a.test\"\nnames = [\"acme\"]\n",
                "npm and pypi",
            ),
            (
                "[[mirror]]\npreset = \"npm\"\nupstream = \"http://a.test\"\nnames = [\"acme@1.0.0\"]\n",
                "without a version",
            ),
            (
                "[[site]]\nlisten = \"127.0.0.1:8080\"\norigin = \"http://a.test\"\n[[mirror]]\npreset = \"npm\"\n",
                "listeners of the forward proxy",
            ),
            (
                "[[mirror]]\npreset = \"npm\"\nname = \"forward\"\n",
                "is taken",
            ),
        ] {
            let said = build(text).unwrap_err();
            assert!(
                said.iter().any(|said| said.contains(part)),
                "{text}: {said:?}"
            );
        }
    }
}
