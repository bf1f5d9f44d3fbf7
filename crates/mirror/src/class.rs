//! Classes of URLs: resources that never change, resources that are fetched again after a time, and requests
//! that are only forwarded.

use foxy_base::Pattern;

use crate::Listing;

/// Lifetime in seconds of answers under a URL whose contents never change.
const FOR_EVER: u32 = 365 * 86_400;
/// Time in seconds for which an expired document may be served while the upstream fails.
const STALE: u32 = 365 * 86_400;

/// The kind of resource that a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An artefact. The bytes under the URL never change.
    Immutable,
    /// A document that lists artefacts. It is fresh for this number of seconds.
    Index(u32),
    /// Any other resource. The upstream's own fields decide about its freshness.
    Pass,
}

impl Kind {
    /// Returns this kind with a lifetime of at most this number of seconds. `Immutable` becomes `Index`.
    /// `Pass` stays.
    #[must_use]
    pub(crate) fn at_most(self, seconds: u32) -> Self {
        match self {
            Self::Index(fresh) => Self::Index(fresh.min(seconds)),
            Self::Immutable => Self::Index(seconds),
            Self::Pass => Self::Pass,
        }
    }

    /// Returns the `Cache-Control` that replaces the upstream's field. `None` means that the upstream's field
    /// stays.
    #[must_use]
    pub fn cache_control(self) -> Option<String> {
        match self {
            Self::Immutable => Some(format!(
                "public, max-age={FOR_EVER}, immutable, stale-if-error={STALE}"
            )),
            Self::Index(fresh) => Some(format!("public, max-age={fresh}, stale-if-error={STALE}")),
            Self::Pass => None,
        }
    }
}

/// The way in which a document is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// Rewrites `dl` in the configuration of a registry of crates.
    Cargo,
    /// Rewrites nothing in a file of a sparse index of crates, but reads its digests.
    Crates,
    /// Rewrites `dist.tarball` in packuments (npm's documents about one package).
    Npm,
    /// Rewrites the URLs of files in an index of Python packages, HTML (PEP 503) or JSON (PEP 691).
    Pypi,
    /// Rewrites nothing in the release file of a Debian archive, but reads the digests of index files.
    Release,
}

impl Transform {
    /// Returns the transform of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "cargo" => Some(Self::Cargo),
            "crates" => Some(Self::Crates),
            "npm" => Some(Self::Npm),
            "pypi" => Some(Self::Pypi),
            "release" => Some(Self::Release),
            _ => None,
        }
    }

    /// Returns true if this transform writes Foxy's own address, as the client knows it, into documents.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Self::Crates | Self::Release)
    }
}

/// A class of URLs of a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Kind of resource that the URLs of this class name.
    pub kind: Kind,
    /// True if documents of the mirror can contain digests of the answers in this class. This is so for
    /// artefacts, and for index files of a Debian archive: its release file contains their digests.
    pub named: bool,
    /// Patterns of the paths at the upstream.
    pub paths: Vec<Pattern>,
    /// Methods besides GET and HEAD that are permitted.
    pub methods: Vec<String>,
    /// The rewriting of this class's documents.
    pub rewrite: Option<Transform>,
    /// Pairs of texts. If the client's `Accept` contains the first text of a pair, the upstream gets the
    /// second text as `Accept`. The first pair that fits decides. If the list is empty, the upstream gets the
    /// client's own field.
    pub accept: Vec<(String, String)>,
    /// The way in which the documents of this class list versions, if they do.
    pub listing: Option<Listing>,
}

impl Class {
    /// The class of paths that are in no other class.
    pub(crate) const REST: Self = Self {
        kind: Kind::Pass,
        named: false,
        paths: Vec::new(),
        methods: Vec::new(),
        rewrite: None,
        accept: Vec::new(),
        listing: None,
    };

    /// Returns the index of the first pair in this class's list `accept` that fits the `Accept` field of a
    /// client. Returns `None` if no pair fits.
    #[must_use]
    pub fn form(&self, accept: &[u8]) -> Option<usize> {
        let has = |part: &str| {
            let part = part.as_bytes();
            part.is_empty()
                || accept
                    .windows(part.len())
                    .any(|window| window.eq_ignore_ascii_case(part))
        };
        self.accept.iter().position(|(part, _)| has(part))
    }
}
