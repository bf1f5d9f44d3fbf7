//! Classes of URLs: what lives for ever, what is asked for again, and what is passed on.

use foxy_base::Pattern;

use crate::Listing;

/// Lifetime of answers under a URL that never changes, in seconds.
const FOR_EVER: u32 = 365 * 86_400;
/// Time past its life for which an index document may be served while the upstream fails.
const STALE: u32 = 365 * 86_400;

/// The nature of what a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An artefact: the bytes under the URL never change.
    Immutable,
    /// A document that lists artefacts: fresh for this many seconds.
    Index(u32),
    /// Anything else: the upstream's own fields decide.
    Pass,
}

impl Kind {
    /// The same, fresh for this many seconds at most.
    #[must_use]
    pub(crate) fn at_most(self, seconds: u32) -> Self {
        match self {
            Self::Index(fresh) => Self::Index(fresh.min(seconds)),
            Self::Immutable => Self::Index(seconds),
            Self::Pass => Self::Pass,
        }
    }

    /// The `Cache-Control` that takes the place of the upstream's; `None`: the upstream's stays.
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

/// The rewriting of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// `dl` in the configuration of a registry of crates.
    Cargo,
    /// Changes nothing in a file of a sparse index of crates, but reads its digests.
    Crates,
    /// `dist.tarball` in packuments.
    Npm,
    /// URLs of files in an index of Python packages, HTML (PEP 503) or JSON (PEP 691).
    Pypi,
    /// Changes nothing in the release file of a Debian archive, but reads the digests of index files.
    Release,
}

impl Transform {
    /// The one of this name.
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

    /// True if the name by which the client knows Foxy is written into documents.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Self::Crates | Self::Release)
    }
}

/// A class of URLs of a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Kind of resource that they name.
    pub kind: Kind,
    /// Documents of the mirror name the digests of its answers, as they do for artefacts.
    pub named: bool,
    /// Paths at the upstream.
    pub paths: Vec<Pattern>,
    /// Methods beside GET and HEAD that pass.
    pub methods: Vec<String>,
    /// The rewriting of its documents.
    pub rewrite: Option<Transform>,
    /// Part of `Accept` that a client sends, and the `Accept` that the upstream gets then. The first
    /// that fits decides; empty: the client's own.
    pub accept: Vec<(String, String)>,
    /// How its documents list versions, if they do.
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

    /// Place in `accept` of the form that a client asks for; `None`: no entry fits.
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
