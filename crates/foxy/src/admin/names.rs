//! Conversion of public URLs to the URLs under which partitions store objects. A partition is a key space.
//! This module handles the partitions of the forward proxy and of the sites, but not of mirrors. `/why` and
//! `/purge` use the same conversion.
//!
//! The forward proxy stores objects under their URL. A site stores objects under URLs with its origin's
//! scheme. The host of these URLs is the origin's name, or the client's `Host` if the site has
//! `preserve_host`. So the keys of a site without `preserve_host` do not contain the site's public name.
//!
//! If sites share a listener, a public URL belongs to the site that gets requests for the URL.

use std::sync::Arc;

use foxy_http1::{Authority, Scheme, Url};
use foxy_proxy::SiteTable;
use foxy_proxy::rules::rewrite::Rewriting;

use crate::config::Config;

/// A listener of several sites: the table of the sites' hosts and paths, and the names of the sites in the
/// order of the table.
pub(super) type Shared = (SiteTable, Vec<String>);

/// The partitions of a running Foxy, and the settings that determine the URLs of their objects.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// All partitions: `forward` first, if there is a forward proxy, then the sites.
    pub(super) partitions: Vec<String>,
    /// Sites that store objects under their origin's name, each with the name of its origin.
    pub(super) origins: Vec<(String, String)>,
    /// Sites whose origin has the scheme `https`.
    pub(super) secure: Vec<String>,
    /// Listeners of several sites.
    pub(super) shared: Vec<Shared>,
    /// The rewriting rules of each site that has such rules.
    pub(super) rewriting: Vec<(String, Arc<Rewriting>)>,
}

impl Names {
    /// Returns the names according to the configuration. `partitions` contains `forward`, if there is a
    /// forward proxy, and the sites.
    pub(super) fn of(config: &Config, partitions: Vec<String>) -> Self {
        Self {
            partitions,
            origins: own_names(config),
            secure: secure(config),
            shared: shared(config),
            rewriting: rewriting(config),
        }
    }

    fn origin(&self, partition: &str) -> Option<&str> {
        let mut origins = self.origins.iter();
        let found = origins.find(|(site, _)| site == partition);
        found.map(|(_, authority)| &authority[..])
    }

    /// Returns the rewriting rules of the site.
    pub(super) fn rewriting(&self, site: &str) -> Option<&Rewriting> {
        let own = self.rewriting.iter().find(|(name, _)| name == site);
        own.map(|(_, rewriting)| &**rewriting)
    }

    /// Returns the sites that get requests for this URL at shared listeners, each site once. If `named` is
    /// true, only listeners where a site names the host are considered.
    fn routed(&self, url: &Url<'_>, named: bool) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        let host = url.authority.host;
        let tables = self.shared.iter();
        for (table, names) in tables.filter(|(table, _)| !named || table.has(host)) {
            let site = table.find(Some(host), url.path).ok();
            if let Some(name) = site.and_then(|site| names.get(site))
                && !found.contains(&&name[..])
            {
                found.push(name);
            }
        }
        found
    }

    /// Returns the only site that names the URL's host and gets requests for the URL; `None` if there is no
    /// such site or more than one.
    pub(super) fn site_of(&self, url: &Url<'_>) -> Option<&str> {
        match self.routed(url, true)[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns the partitions that may have objects of this URL. Each partition has a flag, which is true if
    /// the URL certainly belongs to the partition. If `site` names a partition, or if there is only one
    /// partition, returns this partition. Otherwise a partition without a shared listener is always returned.
    /// A partition with a shared listener is returned if a shared listener sends requests for the URL to it,
    /// or if the URL's host and port are those of its origin.
    pub(super) fn of_url<'s>(&'s self, url: &Url<'_>, site: Option<&str>) -> Vec<(&'s str, bool)> {
        let (chosen, sure) = self.chosen(site);
        let routed = self.routed(url, false);
        let given = authority(url);
        let shares = |name: &str| {
            let mut names = self.shared.iter().flat_map(|(_, names)| names);
            names.any(|shared| shared == name)
        };
        let here = |partition: &'s str| {
            let own = routed.contains(&partition);
            let origin = self.origin(partition) == Some(&given[..]);
            (sure || own || origin || !shares(partition)).then_some((partition, sure || own))
        };
        chosen.into_iter().filter_map(here).collect()
    }

    /// Returns the partition of `site`, or all partitions if the request names no site. Also returns whether
    /// the request identifies exactly one partition.
    pub(super) fn chosen<'s>(&'s self, site: Option<&str>) -> (Vec<&'s str>, bool) {
        let all = self.partitions.iter().map(String::as_str);
        let chosen: Vec<_> = all.filter(|p| site.is_none_or(|site| site == *p)).collect();
        let sure = site.is_some() || self.partitions.len() == 1;
        (chosen, sure)
    }

    /// Returns the URL in the form that the keys of this partition contain. `sure` is true if the URL
    /// certainly belongs to this partition. If `sure` is false and the URL's host is the origin of another
    /// site, the result is `None`.
    pub(super) fn url<'u>(&'u self, url: &Url<'u>, partition: &str, sure: bool) -> Option<Url<'u>> {
        let mut url = *url;
        if partition == "forward" {
            return Some(url);
        }
        let given = authority(&url);
        url.scheme = match self.secure.iter().any(|site| site == partition) {
            true => Scheme::Https,
            false => Scheme::Http,
        };
        let Some(own) = self.origin(partition) else {
            return Some(url);
        };
        let others = || self.origins.iter().map(|(_, origin)| origin);
        if !sure && *own != *given && others().any(|origin| *origin == given) {
            return None;
        }
        url.authority = Authority::parse(own.as_bytes()).ok()?;
        Some(url)
    }

    /// Returns the host in the form that the keys of this partition contain.
    pub(super) fn host(&self, host: &[u8], partition: &str) -> Vec<u8> {
        match self.origin(partition) {
            Some(own) => own.as_bytes().to_vec(),
            None => host.to_vec(),
        }
    }

    /// Returns the prefix in the form that the keys of this partition contain. A prefix that ends within a
    /// host is unchanged.
    pub(super) fn prefix(&self, prefix: &[u8], partition: &str) -> Vec<u8> {
        let scheme = prefix.windows(3).position(|w| w == b"://");
        let rest = &prefix[scheme.map_or(0, |at| at + 3)..];
        let path = rest.iter().position(|b| *b == b'/').map(|at| &rest[at..]);
        match (self.origin(partition), path) {
            (Some(own), Some(path)) => [own.as_bytes(), path].concat(),
            _ => prefix.to_vec(),
        }
    }
}

/// Returns host and port in the normalised form that keys have.
fn authority(url: &Url<'_>) -> String {
    let mut out = Vec::new();
    url.authority.write_normalised(url.scheme, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns a URL without its fragment, which browsers do not send.
pub(super) fn without_fragment(url: &str) -> &str {
    url.split('#').next().unwrap_or(url)
}

fn own_names(config: &Config) -> Vec<(String, String)> {
    let own = config.sites.iter().filter(|site| !site.preserve_host);
    own.map(|site| (site.name.clone(), site.origin.authority()))
        .collect()
}

fn secure(config: &Config) -> Vec<String> {
    let secure = config.sites.iter().filter(|site| site.origin.secure);
    secure.map(|site| site.name.clone()).collect()
}

fn rewriting(config: &Config) -> Vec<(String, Arc<Rewriting>)> {
    let sites = config.sites.iter();
    let own = sites.filter_map(|site| Some((site.name.clone(), site.rewriting.clone()?)));
    own.collect()
}

fn shared(config: &Config) -> Vec<Shared> {
    let listeners = config.shared_listeners().into_iter();
    let several = listeners.filter(|listener| !listener.is_one());
    several
        .filter_map(|listener| {
            let names = listener.sites.iter().map(|site| site.name.clone());
            Some((listener.table().ok()?, names.collect()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_proxy::SiteNames;

    fn names() -> Names {
        let text = |list: &[&str]| list.iter().map(|t| (*t).to_owned()).collect();
        let origin = |site: &str, name: &str| (site.to_owned(), name.to_owned());
        Names {
            partitions: text(&["forward", "shop", "blog", "plain", "vault"]),
            origins: vec![
                origin("shop", "10.0.0.1:8080"),
                origin("blog", "blog.internal"),
                origin("vault", "vault.internal"),
            ],
            secure: text(&["vault"]),
            ..Names::default()
        }
    }

    /// Returns the names of a forward proxy, of two sites on one listener, and of a third site on two
    /// listeners.
    fn sharing() -> Names {
        let text =
            |list: &[&str]| -> Vec<String> { list.iter().map(|t| (*t).to_owned()).collect() };
        let table = |sites: &[(&str, &str)]| {
            let names = sites.iter().map(|(host, path)| SiteNames {
                hosts: text(&[host]),
                paths: text(&[path]),
            });
            SiteTable::new(&names.collect::<Vec<_>>()).unwrap()
        };
        let both = table(&[("a.test", "/"), ("b.test", "/"), ("a.test", "/api")]);
        let other = table(&[("c.test", "/"), ("*", "/")]);
        Names {
            partitions: text(&["forward", "a", "b", "api", "c", "rest", "alone"]),
            origins: vec![("b".to_owned(), "10.0.0.1:81".to_owned())],
            secure: Vec::new(),
            shared: vec![
                (both, text(&["a", "b", "api"])),
                (other, text(&["c", "rest"])),
            ],
            rewriting: Vec::new(),
        }
    }

    #[test]
    fn a_public_url_belongs_to_the_site_that_it_leads_to() {
        let names = sharing();
        for (url, expected) in [
            ("http://a.test/x", "forward? a! rest! alone?"),
            ("http://A.test/api/x", "forward? api! rest! alone?"),
            ("http://b.test/x", "forward? b! rest! alone?"),
            ("http://10.0.0.1:81/x", "forward? b? rest! alone?"),
            ("http://c.test/x", "forward? c! alone?"),
            ("http://z.test/x", "forward? rest! alone?"),
        ] {
            let parsed = Url::parse(url.as_bytes()).unwrap();
            let found = names.of_url(&parsed, None);
            let words = found.iter().map(|(name, sure)| match sure {
                true => format!("{name}!"),
                false => format!("{name}?"),
            });
            assert_eq!(words.collect::<Vec<_>>().join(" "), expected, "{url}");
        }
        let of = |url: &str| {
            names
                .site_of(&Url::parse(url.as_bytes()).unwrap())
                .map(str::to_owned)
        };
        assert_eq!(of("http://c.test/x").as_deref(), Some("c"));
        assert_eq!(
            of("http://a.test/x").as_deref(),
            Some("a"),
            "`rest` does not name it"
        );
        assert_eq!(of("http://z.test/x"), None, "no site names it");
    }

    #[test]
    fn a_url_has_the_name_that_its_partition_gives_it() {
        let names = names();
        for (url, partition, sure, expected) in [
            (
                "http://www.shop.test/a",
                "shop",
                true,
                Some("http://10.0.0.1:8080/a"),
            ),
            (
                "https://www.shop.test/a?b",
                "shop",
                false,
                Some("http://10.0.0.1:8080/a?b"),
            ),
            (
                "http://10.0.0.1:8080/a",
                "shop",
                false,
                Some("http://10.0.0.1:8080/a"),
            ),
            (
                "http://www.vault.test/a",
                "vault",
                true,
                Some("https://vault.internal/a"),
            ),
            ("http://10.0.0.1:8080/a", "blog", false, None),
            (
                "http://10.0.0.1:8080/a",
                "blog",
                true,
                Some("http://blog.internal/a"),
            ),
            ("http://BLOG.internal:80/a", "shop", false, None),
            (
                "https://www.plain.test/a",
                "plain",
                false,
                Some("http://www.plain.test/a"),
            ),
            (
                "https://www.shop.test/a",
                "forward",
                false,
                Some("https://www.shop.test/a"),
            ),
        ] {
            let parsed = Url::parse(url.as_bytes()).unwrap();
            let got = names.url(&parsed, partition, sure).map(|url| {
                let mut out = Vec::new();
                url.write_normalised(&mut out);
                String::from_utf8(out).unwrap()
            });
            assert_eq!(got.as_deref(), expected, "{url} {partition}");
        }
    }

    #[test]
    fn hosts_and_prefixes_are_mapped_alike() {
        let names = names();
        assert_eq!(names.host(b"www.shop.test", "shop"), b"10.0.0.1:8080");
        assert_eq!(names.host(b"www.plain.test", "plain"), b"www.plain.test");
        for (prefix, partition, expected) in [
            ("http://www.shop.test/a", "shop", "10.0.0.1:8080/a"),
            ("www.shop.test/", "blog", "blog.internal/"),
            ("www.sho", "shop", "www.sho"),
            ("www.shop.test/a", "forward", "www.shop.test/a"),
        ] {
            let got = names.prefix(prefix.as_bytes(), partition);
            assert_eq!(String::from_utf8(got).unwrap(), expected);
        }
    }

    #[test]
    fn a_fragment_is_no_part_of_the_url() {
        assert_eq!(without_fragment("http://a/b#c#d"), "http://a/b");
    }
}
