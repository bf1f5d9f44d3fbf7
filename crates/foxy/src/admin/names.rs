//! Names under which partitions store URLs: one mapping for `/why` and `/purge`.
//!
//! The forward proxy stores objects under their URL. A site uses its origin's scheme, and its
//! origin's name unless it preserves the client's `Host`: public names are in no key.

use foxy_http1::{Authority, Scheme, Url};

/// The partitions of a running Foxy, and the names of their objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// `forward` first if there is one, then the sites.
    pub(super) partitions: Vec<String>,
    /// Sites that store objects under their origin's name, with that name.
    pub(super) origins: Vec<(String, String)>,
    /// Sites whose origin has the scheme `https`.
    pub(super) secure: Vec<String>,
}

impl Names {
    fn origin(&self, partition: &str) -> Option<&str> {
        let mut origins = self.origins.iter();
        let found = origins.find(|(site, _)| site == partition);
        found.map(|(_, authority)| &authority[..])
    }

    /// Partitions that a change applies to, and whether the request identifies exactly one.
    pub(super) fn chosen<'s>(&'s self, site: Option<&str>) -> (Vec<&'s str>, bool) {
        let all = self.partitions.iter().map(String::as_str);
        let chosen: Vec<_> = all.filter(|p| site.is_none_or(|site| site == *p)).collect();
        let sure = site.is_some() || self.partitions.len() == 1;
        (chosen, sure)
    }

    /// The URL in the form of this partition's keys. `None` if the site is not certain (`sure`) and
    /// the URL is under another site's origin.
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

    /// The host in the form of this partition's keys.
    pub(super) fn host(&self, host: &[u8], partition: &str) -> Vec<u8> {
        match self.origin(partition) {
            Some(own) => own.as_bytes().to_vec(),
            None => host.to_vec(),
        }
    }

    /// The prefix in the form of this partition's keys; one that ends within a host is unchanged.
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

/// Host and port in the normal form of keys.
fn authority(url: &Url<'_>) -> String {
    let mut out = Vec::new();
    url.authority.write_normalised(url.scheme, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A URL without its fragment, which browsers keep to themselves.
pub(super) fn without_fragment(url: &str) -> &str {
    url.split('#').next().unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        }
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
