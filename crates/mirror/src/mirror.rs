//! A mirror: one upstream (the registry's main server), the hosts that it lists, and the mapping of URLs.

use std::borrow::Cow;
use std::sync::Arc;

use foxy_base::hash64;

use crate::versions::{crate_of, speaks_for};
use crate::{Class, IMAGES_PREFIX, Listing, OwnNames, Refused, Upstream, VersionRules};

/// Version of the rewriting. Raise it when the rewriting changes, so that rewritten documents get other
/// ETags.
const VERSION: u64 = 1;

/// A mirror of one registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Name of the mirror. It is also the partition (key space) of the mirror's stored answers.
    pub name: String,
    /// Prefix of the mirror: a path without the last `/`.
    pub prefix: String,
    /// True for a mirror of container images. Several such mirrors share one prefix, and
    /// [`image`](crate::image) reads their paths.
    pub images: bool,
    /// Servers to which the mirror may send requests. The first server is the upstream.
    servers: Vec<Upstream>,
    classes: Vec<Class>,
    /// Rules about versions, if there are any.
    rules: Option<VersionRules>,
    /// Packages that only this mirror has, if the settings name any.
    own: Option<OwnNames>,
}

/// The target of a URL of a mirror: its server and its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MirrorTarget {
    /// Number of the server.
    pub server: usize,
    /// Number of the class. `None` if the URL is in no class.
    pub class: Option<usize>,
}

impl Mirror {
    /// Makes a mirror of `upstream` and `hosts` below `prefix`.
    #[must_use]
    pub fn new(
        name: String,
        prefix: &str,
        upstream: Upstream,
        hosts: Vec<Upstream>,
        classes: Vec<Class>,
    ) -> Arc<Self> {
        let mut servers = vec![upstream];
        for host in hosts {
            let host = host.root();
            let is_known = |known: &Upstream| known.path.is_empty() && known.is_server_of(&host);
            if !servers.iter().any(is_known) {
                servers.push(host);
            }
        }
        // Redirects and root-relative links may lead to paths outside of the upstream's path, so the
        // upstream's server is also listed without its path.
        let root = servers[0].root();
        if !servers.contains(&root) {
            servers.push(root);
        }
        Arc::new(Self {
            name,
            images: false,
            prefix: format!("/{}", prefix.trim_matches('/')),
            servers,
            classes,
            rules: None,
            own: None,
        })
    }

    /// Returns the same mirror with rules about versions.
    #[must_use]
    pub fn under(self: Arc<Self>, rules: VersionRules) -> Arc<Self> {
        let mut mirror = Arc::unwrap_or_clone(self);
        mirror.rules = Some(rules);
        Arc::new(mirror)
    }

    /// Returns the same mirror with packages that only this mirror has.
    #[must_use]
    pub fn with_own(self: Arc<Self>, names: OwnNames) -> Arc<Self> {
        let mut mirror = Arc::unwrap_or_clone(self);
        mirror.own = Some(names);
        Arc::new(mirror)
    }

    /// Returns the packages that only this mirror has, if the settings name any.
    #[must_use]
    pub const fn own(&self) -> Option<&OwnNames> {
        self.own.as_ref()
    }

    /// Returns true if `path` names a package that only this mirror has. `path` is a path of the mirror
    /// `other`: it begins with the prefix of `other`, and has no query.
    #[must_use]
    pub fn owns(&self, other: &Self, path: &[u8]) -> bool {
        let own = self.own.as_ref();
        let listing = other.classes.iter().find_map(|class| class.listing);
        let rest = path.strip_prefix(other.prefix.as_bytes());
        match (own, listing, rest) {
            (Some(own), Some(listing), Some(rest)) => own.has(listing, rest),
            _ => false,
        }
    }

    /// Returns true if the document at path `document` may determine the digest of the artefact at path
    /// `artefact`. Both are paths on the mirror. A document of one package must not determine the digests of
    /// another package's files.
    #[must_use]
    pub fn speaks_for(&self, document: &[u8], artefact: &[u8]) -> bool {
        let listing = self.classes.iter().find_map(|class| class.listing);
        let rest = |path: &[u8]| Some(path.strip_prefix(self.prefix.as_bytes())?.to_vec());
        match (listing, rest(document), rest(artefact)) {
            (Some(listing), Some(document), Some(artefact)) => {
                speaks_for(listing, &document, &artefact)
            }
            _ => true,
        }
    }

    /// Returns the path, without a query, under which documents name the artefact at `path`. `path` may have
    /// a query. Documents about crates contain no paths, so the path of a crate is made from its name and its
    /// version.
    #[must_use]
    pub fn named_path<'a>(&self, path: &'a [u8]) -> Cow<'a, [u8]> {
        let end = path.iter().position(|b| *b == b'?').unwrap_or(path.len());
        let is_of_crates = || {
            self.classes
                .iter()
                .any(|c| c.listing == Some(Listing::Cargo))
        };
        let rest = path[..end].strip_prefix(self.prefix.as_bytes());
        match rest.filter(|_| is_of_crates()).and_then(crate_of) {
            Some(named) => [self.prefix.as_bytes(), &named].concat().into(),
            None => path[..end].into(),
        }
    }

    /// Returns the rules about versions, if there are any.
    #[must_use]
    pub const fn rules(&self) -> Option<&VersionRules> {
        self.rules.as_ref()
    }

    /// Returns the rules by which documents of a class are screened (young and blocked versions are removed
    /// or marked), if there are any.
    #[must_use]
    pub fn screens(&self, class: Option<usize>) -> Option<&VersionRules> {
        let lists = self.class(class).listing.is_some();
        self.rules.as_ref().filter(|_| lists)
    }

    /// Returns the reason why the rules refuse a path of this target. Returns `None` if they permit it. The
    /// path may have a query.
    #[must_use]
    pub fn refusal(&self, target: MirrorTarget, path: &[u8]) -> Option<Refused> {
        let rules = self.rules.as_ref()?;
        let end = path.iter().position(|b| *b == b'?').unwrap_or(path.len());
        let (prefix, _) = self.path_prefixes(target.server);
        let rest = path[..end].strip_prefix(prefix.as_bytes())?;
        let kind = self.class(target.class).kind;
        let other = |plain: &[u8]| {
            let fits = |class: &Class| class.paths.iter().any(|path| path.fits(plain));
            self.classes.iter().position(fits) != target.class
        };
        rules.refusal(rest, kind, target.server == 0, other)
    }

    /// Makes a mirror of container images. Clients choose the mirror by the name of its registry, in the path
    /// or in the query of a request.
    #[must_use]
    pub fn of_images(
        name: String,
        upstream: Upstream,
        hosts: Vec<Upstream>,
        classes: Vec<Class>,
    ) -> Arc<Self> {
        let mut mirror = Self::new(name, IMAGES_PREFIX, upstream, hosts, classes);
        if let Some(own) = Arc::get_mut(&mut mirror) {
            own.images = true;
        }
        mirror
    }

    /// Returns the servers to which the mirror may send requests. The first server is the upstream.
    #[must_use]
    pub fn servers(&self) -> &[Upstream] {
        &self.servers
    }

    /// Returns the host and the port of each server, in the form of cache keys.
    pub fn hosts(&self) -> impl Iterator<Item = Vec<u8>> {
        let servers = self.servers.iter();
        servers.map(|server| server.authority.clone().into_bytes())
    }

    /// Returns the class of this number. For `None`, returns the class of all paths that are in no other
    /// class.
    #[must_use]
    pub fn class(&self, number: Option<usize>) -> &Class {
        number
            .and_then(|number| self.classes.get(number))
            .unwrap_or(const { &Class::REST })
    }

    /// Returns true if a path is below the prefix.
    #[must_use]
    pub fn has(&self, path: &[u8]) -> bool {
        let rest = path.strip_prefix(self.prefix.as_bytes());
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'/' | b'?')))
    }

    /// Returns the target (server and class) of a path below the prefix. The path includes its query. Returns
    /// `None` if the path names a host that is not listed.
    #[must_use]
    pub fn target(&self, path: &[u8]) -> Option<MirrorTarget> {
        let end = path.iter().position(|b| *b == b'?').unwrap_or(path.len());
        let rest = path[..end].strip_prefix(self.prefix.as_bytes())?;
        let (server, rest) = match rest.strip_prefix(b"/~") {
            None => (0, rest),
            Some(rest) => {
                let end = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
                let is = |server: &Upstream| {
                    server.path.is_empty() && server.segment().as_bytes() == &rest[..end]
                };
                (self.servers.iter().position(is)?, &rest[end..])
            }
        };
        let fits = |class: &Class| class.paths.iter().any(|path| path.fits(rest));
        Some(MirrorTarget {
            server,
            class: self.classes.iter().position(fits),
        })
    }

    /// Returns two path prefixes. Clients of the mirror request the paths of this server with the first
    /// prefix. Foxy replaces the first prefix by the second prefix when it sends the request to the server.
    #[must_use]
    pub fn path_prefixes(&self, server: usize) -> (String, &str) {
        match self.servers.get(server) {
            Some(at) if server > 0 => (format!("{}/~{}", self.prefix, at.segment()), &at.path),
            Some(at) => (self.prefix.clone(), &at.path),
            None => (self.prefix.clone(), ""),
        }
    }

    /// Returns the path on the mirror that stands for a URL in a document of `server`. The path has the query
    /// and the fragment of the URL. Returns `None` if the URL is relative to the document, or leads to a host
    /// that is not listed.
    #[must_use]
    pub fn path_of(&self, server: usize, url: &[u8]) -> Option<Vec<u8>> {
        let from = self.servers.get(server)?;
        let (secure, rest) = match scheme(url) {
            Some((secure, rest)) => (secure, rest),
            None => match url {
                [b'/', b'/', rest @ ..] => (from.secure, rest),
                [b'/', ..] => return self.on_mirror(from.secure, from.authority.as_bytes(), url),
                _ => return None,
            },
        };
        let is_end = |b: &u8| matches!(b, b'/' | b'?' | b'#');
        let end = rest.iter().position(is_end).unwrap_or(rest.len());
        self.on_mirror(secure, &rest[..end], &rest[end..])
    }

    fn on_mirror(&self, secure: bool, authority: &[u8], path: &[u8]) -> Option<Vec<u8>> {
        let default: &[u8] = if secure { b":443" } else { b":80" };
        let authority = authority.strip_suffix(default).unwrap_or(authority);
        let after = |server: &Upstream| {
            let same = server.secure == secure
                && server.authority.as_bytes().eq_ignore_ascii_case(authority);
            let rest = path.strip_prefix(server.path.as_bytes()).filter(|_| same)?;
            matches!(rest.first(), None | Some(b'/' | b'?' | b'#')).then_some(rest)
        };
        let mut found = self.servers.iter().enumerate();
        let (server, rest) = found.find_map(|(n, server)| Some((n, after(server)?)))?;
        let (prefix, _) = self.path_prefixes(server);
        // A path that begins with `~` would be read as the name of a host.
        if server == 0 && rest.starts_with(b"/~") {
            return None;
        }
        Some([prefix.as_bytes(), rest].concat())
    }

    /// Returns the mark that rewritten documents have in their ETags. Two marks differ if `base`, the prefix
    /// of the mirror, its servers or its rules about versions differ.
    #[must_use]
    pub fn mark(&self, base: &str) -> String {
        let mut text = format!("{VERSION}\n{base}\n{}\n", self.prefix);
        for server in &self.servers {
            text.push_str(&server.to_string());
            text.push('\n');
        }
        if let Some(rules) = &self.rules {
            text.push_str(&format!("{:016x}", rules.mark()));
        }
        format!("{:016x}", hash64(0, text.as_bytes()))
    }
}

fn scheme(url: &[u8]) -> Option<(bool, &[u8])> {
    let begins = |text: &[u8]| {
        let start = url.get(..text.len())?;
        start.eq_ignore_ascii_case(text).then(|| &url[text.len()..])
    };
    match (begins(b"https://"), begins(b"http://")) {
        (Some(rest), _) => Some((true, rest)),
        (_, Some(rest)) => Some((false, rest)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, preset};

    pub(crate) fn pypi() -> Arc<Mirror> {
        let preset = preset("pypi").unwrap();
        let upstream = "http://up.test/base/pypi".parse().unwrap();
        let hosts = vec![
            "https://files.test".parse().unwrap(),
            "http://127.0.0.1:81".parse().unwrap(),
        ];
        Mirror::new(
            "pypi".into(),
            "pypi/",
            upstream,
            hosts,
            preset.classes.clone(),
        )
    }

    #[test]
    fn urls_of_listed_hosts_have_a_path_and_no_others() {
        let mirror = pypi();
        for (url, expected) in [
            (
                "http://up.test/base/pypi/simple/a/",
                Some("/pypi/simple/a/"),
            ),
            ("HTTP://UP.test:80/base/pypi?x", Some("/pypi?x")),
            (
                "http://up.test/base/pypix/a",
                Some("/pypi/~up.test/base/pypix/a"),
            ),
            ("http://up.test/other", Some("/pypi/~up.test/other")),
            ("/base/pypi/b#c", Some("/pypi/b#c")),
            ("/b#c", Some("/pypi/~up.test/b#c")),
            ("//up.test/b", Some("/pypi/~up.test/b")),
            (
                "https://files.test/p/a.whl#sha256=1",
                Some("/pypi/~files.test/p/a.whl#sha256=1"),
            ),
            ("http://127.0.0.1:81/x", Some("/pypi/~127.0.0.1~81/x")),
            ("http://127.0.0.1/x", None),
            ("http://files.test/p", None),
            ("https://files.test.evil.test/p", None),
            ("https://u@files.test/p", None),
            ("https://files.test:444/p", None),
            ("//files.test/p", None),
            ("../a", None),
            ("a", None),
            ("", None),
            ("/base/pypi/~x/y", None),
            ("ftp://files.test/", None),
        ] {
            let path = mirror.path_of(0, url.as_bytes());
            let path = path.map(|path| String::from_utf8(path).unwrap());
            assert_eq!(path.as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn paths_lead_back_to_their_server_and_class() {
        let mirror = pypi();
        let kind = |path: &str| {
            let target = mirror.target(path.as_bytes())?;
            Some((target.server, mirror.class(target.class).kind))
        };
        assert_eq!(kind("/pypi/simple/a/?x"), Some((0, Kind::Index(60))));
        assert_eq!(
            kind("/pypi/~files.test/packages/a.whl"),
            Some((1, Kind::Immutable))
        );
        assert_eq!(kind("/pypi/~127.0.0.1~81/x"), Some((2, Kind::Pass)));
        assert_eq!(kind("/pypi/~up.test/other/simple"), Some((3, Kind::Pass)));
        assert_eq!(kind("/pypi/~evil.test/packages/a.whl"), None);
        assert_eq!(kind("/pypi/~"), None);
        assert_eq!(mirror.path_prefixes(0), ("/pypi".to_owned(), "/base/pypi"));
        assert_eq!(
            mirror.path_prefixes(1),
            ("/pypi/~files.test".to_owned(), "")
        );
        assert!(mirror.has(b"/pypi") && mirror.has(b"/pypi/") && mirror.has(b"/pypi?"));
        assert!(!mirror.has(b"/pypix") && !mirror.has(b"/pyp"));
    }

    #[test]
    fn a_mark_depends_on_all_that_is_written() {
        let mirror = pypi();
        let mark = mirror.mark("http://a");
        assert_eq!(mark, mirror.mark("http://a"));
        assert_ne!(mark, mirror.mark("http://b"));
    }
}
