//! Rules of the operator about versions. Young versions are hidden for a time (cooldown), and versions that
//! the operator lists are blocked. Documents that list versions are screened: hidden and blocked versions are
//! removed or marked. Paths of blocked artefacts are refused.

mod crates;
mod edits;
mod html;
mod json;
mod names;
mod npm;
mod own;
mod paths;
mod pypi;

use foxy_base::{Pattern, hash64};

pub use edits::Body;
pub use own::OwnNames;
pub(crate) use own::speaks_for;
pub use paths::Refused;
pub(crate) use paths::{crate_of, crate_path};

/// The way in which the documents and paths of a registry name versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Packuments of npm.
    Npm,
    /// The simple index of Python packages: JSON (PEP 691, PEP 700), or HTML.
    Pypi,
    /// Lines of a sparse index of crates.
    Cargo,
}

impl Listing {
    /// Returns the listing of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "npm" => Some(Self::Npm),
            "pypi" => Some(Self::Pypi),
            "cargo" => Some(Self::Cargo),
            _ => None,
        }
    }

    /// Documents of some registries have several forms, and only one form contains dates. Returns the
    /// `Accept` field that requests the form with dates. Returns `None` if there is only one form.
    #[must_use]
    pub const fn dated(self) -> Option<&'static str> {
        match self {
            Self::Npm => Some("application/json"),
            Self::Pypi => Some("application/vnd.pypi.simple.v1+json, text/html;q=0.1"),
            Self::Cargo => None,
        }
    }

    /// Returns the form in which a client gets the screened document. `accepted` is the form that the client
    /// accepts, as an index into the list `accept` of the class.
    const fn form(self, accepted: Option<usize>) -> Form {
        match (self, accepted) {
            (Self::Npm, Some(0)) => Form::Short,
            (Self::Pypi, Some(1)) => Form::Html,
            _ => Form::Same,
        }
    }
}

/// The form of a screened document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The form that the upstream sent.
    Same,
    /// npm's abbreviated form.
    Short,
    /// HTML (PEP 503).
    Html,
}

/// A package, or one version of it: `NAME` or `NAME@VERSION`. `*` in a name stands for any
/// characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    text: String,
    name: Pattern,
    version: Option<String>,
}

impl Selector {
    /// Reads a selector.
    ///
    /// # Errors
    /// Returns a short description of the mistake.
    pub fn read(listing: Listing, text: &str) -> Result<Self, String> {
        let (name, version) = match text.get(1..).and_then(|rest| rest.rfind('@')) {
            Some(at) => (&text[..=at], Some(&text[at + 2..])),
            None => (text, None),
        };
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.*~/@".contains(c);
        let scoped = name.strip_prefix('@').unwrap_or(name);
        let slashes = scoped.matches('/').count();
        let is_name = !scoped.is_empty()
            && name.chars().all(fits)
            && !scoped.contains('@')
            && match listing {
                Listing::Npm => slashes == usize::from(name.starts_with('@')),
                Listing::Pypi | Listing::Cargo => slashes == 0 && scoped == name,
            };
        if !is_name {
            return Err("its name is no name of a package of this registry".to_owned());
        }
        let version = version.map(|version| {
            let read = names::exact(listing, version);
            read.ok_or(format!(
                "`{version}` is no exact version; write one entry for each version"
            ))
        });
        Ok(Self {
            text: text.to_owned(),
            name: Pattern::new(&names::package(listing, name)),
            version: version.transpose()?,
        })
    }

    fn has(&self, package: &str) -> bool {
        self.name.fits(package.as_bytes())
    }

    /// Returns true if the selector covers this version. The selector's version and `version` are both in
    /// normal form.
    fn is_for(&self, version: &str) -> bool {
        self.version.as_ref().is_none_or(|own| {
            let public = version.split('+').next().unwrap_or(version);
            own == version || !own.contains('+') && own == public
        })
    }
}

/// The rules of a mirror about versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRules {
    /// The way in which the registry names versions.
    pub listing: Listing,
    /// Age in seconds below which a version is hidden. `None` means that age does not matter.
    pub min_age: Option<u32>,
    /// Packages that are shown at any age.
    pub except: Vec<Selector>,
    /// True if versions without a date are hidden too.
    pub hides_undated: bool,
    /// Versions that are neither listed nor served.
    pub block: Vec<Selector>,
}

/// The decision about a version in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Shown,
    /// Hidden until this time, in seconds since 1970.
    Young(i64),
    /// Hidden because its age is not known.
    Undated,
    Blocked,
}

impl VersionRules {
    /// Returns a hash of the rules. It distinguishes documents that were screened by different rules.
    #[must_use]
    pub fn mark(&self) -> u64 {
        hash64(0, format!("{self:?}").as_bytes())
    }

    /// Returns the entry of `block` that covers this version of the package. If `version` is `None`, returns
    /// the entry that covers all versions of the package.
    fn blocking(&self, package: &str, version: Option<&str>) -> Option<&Selector> {
        let package = names::package(self.listing, package);
        let version = version.map(|version| names::version(self.listing, version));
        self.block.iter().find(|entry| {
            entry.has(&package)
                && match &version {
                    Some(version) => entry.is_for(version),
                    None => entry.version.is_none(),
                }
        })
    }

    fn verdict(&self, package: &str, version: &str, published: Option<i64>, now: i64) -> Verdict {
        if self.blocking(package, Some(version)).is_some() {
            return Verdict::Blocked;
        }
        let Some(min_age) = self.min_age else {
            return Verdict::Shown;
        };
        let shown = match published {
            Some(published) => published.saturating_add(i64::from(min_age)) <= now,
            None => !self.hides_undated,
        };
        if shown || self.is_excepted(package, version) {
            return Verdict::Shown;
        }
        published.map_or(Verdict::Undated, |published| {
            Verdict::Young(published.saturating_add(i64::from(min_age)))
        })
    }

    /// Returns the part of these rules that concerns one package.
    fn of(&self, package: &str) -> Self {
        let package = names::package(self.listing, package);
        let of = |entries: &[Selector]| {
            let entries = entries.iter().filter(|entry| entry.has(&package));
            entries.cloned().collect()
        };
        Self {
            except: of(&self.except),
            block: of(&self.block),
            ..*self
        }
    }

    fn is_excepted(&self, package: &str, version: &str) -> bool {
        let package = names::package(self.listing, package);
        let version = names::version(self.listing, version);
        let mut entries = self.except.iter();
        entries.any(|entry| entry.has(&package) && entry.is_for(&version))
    }

    /// Returns true if a version of the package may be hidden or blocked.
    fn concerns(&self, package: &str) -> bool {
        let package = names::package(self.listing, package);
        let whole = |entry: &Selector| entry.version.is_none() && entry.has(&package);
        self.block.iter().any(|entry| entry.has(&package))
            || self.min_age.is_some() && !self.except.iter().any(whole)
    }

    /// Screens a document. `accepted` is the form that the client accepts, as an index into the list `accept`
    /// of the class. `path` is the path at the upstream, and `now` is in seconds since 1970.
    ///
    /// # Errors
    /// Returns an error if the document cannot be screened. No client may get the document then.
    pub fn screen(
        &self,
        document: Vec<u8>,
        content_type: &[u8],
        accepted: Option<usize>,
        path: &[u8],
        now: i64,
    ) -> Result<Screened, Unreadable> {
        let text = String::from_utf8(document).map_err(|_| UNREADABLE)?;
        let mut screening = Screening {
            rules: self,
            own: None,
            now,
            matures: None,
            hidden: 0,
        };
        let is_json = content_type
            .windows(4)
            .any(|part| part.eq_ignore_ascii_case(b"json"));
        let form = self.listing.form(accepted);
        let (body, content_type) = match self.listing {
            Listing::Npm => npm::screen(&mut screening, text, form, path)?,
            Listing::Pypi if is_json => pypi::screen(&mut screening, text, form)?,
            Listing::Pypi => (html::screen(&mut screening, text)?, None),
            Listing::Cargo => (crates::screen(&mut screening, text)?, None),
        };
        Ok(Screened {
            body,
            content_type,
            matures: screening.matures,
            hidden: screening.hidden,
        })
    }
}

/// A screened document.
#[derive(Debug)]
pub struct Screened {
    /// The bytes of the document.
    pub body: Body,
    /// The media type of the document, if it differs from the media type that the upstream sent.
    pub content_type: Option<&'static str>,
    /// Time at which the next hidden version is old enough, in seconds since 1970.
    pub matures: Option<i64>,
    /// Number of versions, or of files of versions, that are hidden or blocked.
    pub hidden: u64,
}

/// A document that cannot be screened, with the word for the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable(pub &'static str);

const UNREADABLE: Unreadable = Unreadable("document-not-readable");
const TOO_MANY: Unreadable = Unreadable("document-too-many-versions");
const OF_A_TAG: Unreadable = Unreadable("document-of-a-tag");
const BLOCKED: Unreadable = Unreadable("version-blocked");

/// The screening of one document.
struct Screening<'a> {
    rules: &'a VersionRules,
    /// The package of the version that was judged last, and the part of `rules` that concerns this package.
    /// Both are kept, because the next version usually belongs to the same package. Usually only few of the
    /// many entries in `rules` concern one package, so this part is faster to search.
    own: Option<(String, VersionRules)>,
    now: i64,
    matures: Option<i64>,
    hidden: u64,
}

impl Screening<'_> {
    /// Judges a version, and counts the result.
    fn judge(&mut self, package: &str, version: &str, published: Option<i64>) -> Verdict {
        let own = match self.own.take() {
            Some((known, rules)) if known == package => (known, rules),
            _ => (package.to_owned(), self.rules.of(package)),
        };
        let verdict = own.1.verdict(package, version, published, self.now);
        self.own = Some(own);
        self.hidden += u64::from(verdict != Verdict::Shown);
        if let Verdict::Young(until) = verdict {
            self.matures = Some(self.matures.map_or(until, |known| known.min(until)));
        }
        verdict
    }
}

/// Reads a time of a document (RFC 3339). Returns seconds since 1970.
fn time(text: &str) -> Option<i64> {
    let time: jiff::Timestamp = text.parse().ok()?;
    // A fraction counts as a whole second, so that the time is never too early.
    Some(time.as_second() + i64::from(time.subsec_nanosecond() > 0))
}

#[cfg(test)]
mod tests;
