//! The table of sites that share a listener. The host of a request selects all sites with this host. Among
//! these sites, the site with the longest path that fits the request is selected.
//!
//! If no site names the host of a request, the request finds the site for `*` (every other host). If there is
//! no site for `*` either, the request finds no site. A request also finds no site if no site of its host has
//! its path.

use std::io::Write;

use foxy_base::{hash64, rule};
use foxy_http1::Host;
use hashbrown::HashTable;

/// Longest host name (RFC 1035 section 2.3.4).
const HOST_MAX: usize = 255;

/// The hosts and paths of one site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteNames {
    /// Host names in lower case without port. `*.` at the beginning stands for one label. A single `*` stands
    /// for every host that no other site has.
    pub hosts: Vec<String>,
    /// Prefixes of decoded paths. Each prefix consists of complete segments. If the list is empty, the
    /// site has all paths.
    pub paths: Vec<String>,
}

/// Two sites for the same host and path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// The sites, by their positions in the list.
    pub sites: (usize, usize),
    /// The host that both sites have.
    pub host: String,
    /// The path that both sites have.
    pub path: String,
}

/// The reason why a request finds no site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSite {
    /// No site has the host.
    Host,
    /// No site of the host has the path.
    Path,
    /// The path has a segment `.` or `..`. Programs disagree about the meaning of such a path, and so about
    /// its site.
    Dots,
}

/// The sites of a listener by host and path.
#[derive(Debug, Default)]
pub struct SiteTable {
    /// The sites of exact host names and of wildcards. The wildcards are stored with their `*.`.
    hosts: HashTable<Named>,
    /// The sites for every other host.
    others: Option<Paths>,
}

#[derive(Debug)]
struct Named {
    host: Box<[u8]>,
    paths: Paths,
}

/// Path prefixes and their sites, the longest prefix first.
#[derive(Debug, Default)]
struct Paths(Vec<(Box<[u8]>, usize)>);

fn hash(host: &[u8]) -> u64 {
    hash64(0, host)
}

impl SiteTable {
    /// Creates the table of these sites.
    ///
    /// # Errors
    /// Returns the first two sites that have the same host and path.
    pub fn new(sites: &[SiteNames]) -> Result<Self, Clash> {
        let mut table = Self::default();
        for (site, names) in sites.iter().enumerate() {
            let all = ["/".to_owned()];
            let paths = match &names.paths[..] {
                [] => &all[..],
                paths => paths,
            };
            for host in &names.hosts {
                for path in paths {
                    table.paths(host).add(path, site).map_err(|other| Clash {
                        sites: (other, site),
                        host: host.clone(),
                        path: path.clone(),
                    })?;
                }
            }
        }
        Ok(table)
    }

    fn paths(&mut self, host: &str) -> &mut Paths {
        if host == "*" {
            return self.others.get_or_insert_default();
        }
        let host = host.as_bytes();
        let new = || Named {
            host: host.into(),
            paths: Paths::default(),
        };
        let entry = self.hosts.entry(
            hash(host),
            |named| *named.host == *host,
            |named| hash(&named.host),
        );
        &mut entry.or_insert_with(new).into_mut().paths
    }

    /// Returns the number of the site for a request. Does not allocate.
    ///
    /// # Errors
    /// Returns the reason why there is no site for the request.
    pub fn find(&self, host: Option<Host<'_>>, path: &[u8]) -> Result<usize, NoSite> {
        let named = host.and_then(|host| self.named(host));
        let paths = named.or(self.others.as_ref()).ok_or(NoSite::Host)?;
        paths.find(path)
    }

    /// True if a site names this host. A site for `*` names no host.
    #[must_use]
    pub fn has(&self, host: Host<'_>) -> bool {
        self.named(host).is_some()
    }

    fn named(&self, host: Host<'_>) -> Option<&Paths> {
        let mut lower = [0; HOST_MAX];
        let length = match host {
            Host::Name(name) => {
                let name = name.strip_suffix(b".").unwrap_or(name);
                let into = lower.get_mut(..name.len())?;
                into.copy_from_slice(name);
                into.make_ascii_lowercase();
                name.len()
            }
            Host::V6(ip) => {
                let mut rest = &mut lower[..];
                write!(rest, "{ip}").ok()?;
                HOST_MAX - rest.len()
            }
        };
        self.exact(&lower[..length]).or_else(|| {
            // `*` replaces the first label.
            let dot = lower[..length].iter().position(|b| *b == b'.')?;
            let start = dot.checked_sub(1)?;
            lower[start] = b'*';
            self.exact(&lower[start..length])
        })
    }

    fn exact(&self, host: &[u8]) -> Option<&Paths> {
        let found = self.hosts.find(hash(host), |named| *named.host == *host);
        found.map(|named| &named.paths)
    }
}

impl Paths {
    fn add(&mut self, path: &str, site: usize) -> Result<(), usize> {
        let path = path.as_bytes();
        // `/a/` fits the same paths as `/a`, except the path `/a` itself. Two sites may have these two
        // prefixes. If both fit a path, the longer prefix decides.
        if let Some((_, other)) = self.0.iter().find(|(other, _)| **other == *path) {
            return Err(*other);
        }
        self.0.push((path.into(), site));
        self.0
            .sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Ok(())
    }

    fn find(&self, path: &[u8]) -> Result<usize, NoSite> {
        // Most hosts have one site for all paths.
        if let [(all, site)] = &self.0[..]
            && **all == *b"/"
        {
            return Ok(*site);
        }
        let end = path.iter().position(|b| *b == b'?').unwrap_or(path.len());
        let path = &path[..end];
        if rule!("site: a path with dots is no site's", has_dots(path), false) {
            return Err(NoSite::Dots);
        }
        let found = self.0.iter().find(|(start, _)| begins(path, start));
        found.map(|(_, site)| *site).ok_or(NoSite::Path)
    }
}

/// True if some programs may read a segment of the path as `.` or `..`. For some programs, `\` and `;` also
/// end a segment.
pub(crate) fn has_dots(path: &[u8]) -> bool {
    // Number of dots since the beginning of the segment. `None` if the segment has more than three dots, or a
    // byte that is not a dot.
    let mut dots = None;
    for byte in (Decoded { path, after: 0 }).chain([b'/']) {
        dots = match (byte, dots) {
            (b'/' | b'\\' | b';', Some(1 | 2)) => return true,
            (b'/' | b'\\' | b';', _) => Some(0),
            (b'.', Some(count @ 0..=2)) => Some(count + 1),
            _ => None,
        };
    }
    false
}

/// True if the path begins with `start`, and `start` ends at the end of a segment. The path is compared
/// decoded, with `//` read as `/`.
fn begins(path: &[u8], start: &[u8]) -> bool {
    let mut decoded = Decoded { path, after: 0 };
    for wanted in start {
        if decoded.next() != Some(*wanted) {
            return false;
        }
    }
    start.ends_with(b"/")
        || rule!(
            "site: the path of a site ends with a segment",
            matches!(decoded.next(), None | Some(b'/')),
            true
        )
}

/// The bytes of a path, with escapes decoded. A `/` directly after another `/` is left out.
struct Decoded<'a> {
    path: &'a [u8],
    after: u8,
}

impl Iterator for Decoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        loop {
            let (byte, length) = match self.path {
                [b'%', high, low, ..] if let (Some(high), Some(low)) = (hex(*high), hex(*low)) => {
                    (high << 4 | low, 3)
                }
                [byte, ..] => (*byte, 1),
                [] => return None,
            };
            self.path = &self.path[length..];
            let repeated = byte == b'/' && self.after == b'/';
            self.after = byte;
            if !repeated {
                return Some(byte);
            }
        }
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(hosts: &[&str], paths: &[&str]) -> SiteNames {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        SiteNames {
            hosts: texts(hosts),
            paths: texts(paths),
        }
    }

    #[test]
    fn the_host_chooses_first_and_then_the_longest_path() {
        let table = SiteTable::new(&[
            names(&["shop.test", "[odd"], &[]),
            names(&["*.shop.test"], &[]),
            names(&["www.shop.test", "::1"], &["/"]),
            names(&["www.shop.test"], &["/api", "/img/"]),
            names(&["www.shop.test"], &["/api/v2"]),
            names(&["only.test"], &["/api"]),
        ])
        .unwrap();
        let one = names(&["*"], &["/"]);
        let others = SiteTable::new(&[names(&["a.test"], &["/a"]), one]).unwrap();
        let of = |table: &SiteTable, host: &str, path: &str| {
            let host = match host.parse() {
                Ok(ip) => Host::V6(ip),
                Err(_) => Host::Name(host.as_bytes()),
            };
            table.find(Some(host), path.as_bytes())
        };
        for (host, path, expected) in [
            ("shop.test", "/x", Ok(0)),
            ("SHOP.test.", "/x/../y", Ok(0)),
            ("a.shop.test", "/", Ok(1)),
            ("a.b.shop.test", "/", Err(NoSite::Host)),
            (".shop.test", "/", Err(NoSite::Host)),
            ("test", "/", Err(NoSite::Host)),
            ("*.shop.test", "/", Ok(1)),
            ("www.shop.test", "/", Ok(2)),
            ("::1", "/", Ok(2)),
            ("::2", "/", Err(NoSite::Host)),
            ("www.shop.test", "/api", Ok(3)),
            ("www.shop.test", "/api?x=/api/v2", Ok(3)),
            ("www.shop.test", "/api/", Ok(3)),
            ("www.shop.test", "/apis", Ok(2)),
            ("www.shop.test", "/API", Ok(2)),
            ("www.shop.test", "/%61p%69/v%32/x", Ok(4)),
            ("www.shop.test", "//api//v2", Ok(4)),
            ("www.shop.test", "/%2Fapi%2fv2", Ok(4)),
            ("www.shop.test", "/img", Ok(2)),
            ("www.shop.test", "/img/x", Ok(3)),
            ("www.shop.test", "/x/../api", Err(NoSite::Dots)),
            ("www.shop.test", "/%2e%2E/api", Err(NoSite::Dots)),
            ("www.shop.test", "/x%2f..%2fapi", Err(NoSite::Dots)),
            ("www.shop.test", "/x\\..\\api", Err(NoSite::Dots)),
            ("www.shop.test", "/x/..;a/api", Err(NoSite::Dots)),
            ("www.shop.test", "/...a/.well-known/x..", Ok(2)),
            ("www.shop.test", "/x?../", Ok(2)),
            ("only.test", "/other", Err(NoSite::Path)),
        ] {
            assert_eq!(of(&table, host, path), expected, "{host} {path}");
        }
        assert_eq!(table.find(None, b"/"), Err(NoSite::Host));
        assert_eq!(others.find(None, b"/"), Ok(1));
        assert_eq!(of(&others, "z.test", "/a"), Ok(1));
        // A host that a site names never selects the site of all other hosts, even if no site has the path.
        assert_eq!(of(&others, "a.test", "/b"), Err(NoSite::Path));
        assert!(!others.has(Host::Name(b"z.test")) && others.has(Host::Name(b"A.test")));
        let long = "a".repeat(300);
        assert_eq!(of(&others, &long, "/"), Ok(1));
    }

    #[test]
    fn two_sites_for_one_place_are_refused() {
        let clash = |sites: &[SiteNames]| SiteTable::new(sites).err();
        let found = clash(&[
            names(&["a.test"], &["/x"]),
            names(&["b.test", "a.test"], &["/", "/x"]),
        ]);
        let expected = Clash {
            sites: (0, 1),
            host: "a.test".into(),
            path: "/x".into(),
        };
        assert_eq!(found, Some(expected));
        assert!(clash(&[names(&["*"], &[]), names(&["*"], &["/"])]).is_some());
        assert!(clash(&[names(&["a.test"], &[]), names(&["*.test"], &[])]).is_none());
        assert!(clash(&[names(&["a.test"], &["/a"]), names(&["a.test"], &["/a/"])]).is_none());
    }
}
