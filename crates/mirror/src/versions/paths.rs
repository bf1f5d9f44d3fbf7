//! Finds the package and the version that a path of a registry names, and decides whether the path is
//! refused.

use super::{Listing, VersionRules, names};
use crate::Kind;

/// The part of a package that a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The document that lists the package's versions.
    Document,
    /// An artefact or document of this version.
    Version(String),
    /// An artefact whose version is not known.
    Unknown,
    /// The document of the version to which a tag (such as `latest`) points.
    Tag(String),
}

/// The reason why a path is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// An entry of `block` covers the path.
    Blocked {
        /// The package, and the version if the path names a version.
        what: String,
        /// The entry of `block`.
        entry: String,
    },
    /// The path names an artefact whose package is not known, and the mirror blocks versions.
    Unknown,
    /// The path names the document of a tag. This document may contain a hidden version.
    Tag(String),
    /// The path is written in a form that an upstream could read as another path.
    Disguised,
}

impl Refused {
    /// Returns the stable word for the reason.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Blocked { .. } => "version-blocked",
            Self::Unknown => "version-unknown",
            Self::Tag(_) => "document-of-a-tag",
            Self::Disguised => "path-not-plain",
        }
    }

    /// Returns a sentence for people that explains the refusal.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Blocked { what, entry } => {
                format!("{what} is blocked by the operator of this mirror (mirror.block: {entry})")
            }
            Self::Unknown => "the path does not tell which version of which package it is of, and \
                              this mirror blocks versions (mirror.block)"
                .to_owned(),
            Self::Tag(tag) => format!(
                "the document of {tag} has no date, and this mirror has rules about versions \
                 (mirror.min_age, mirror.block): ask for the document of the package"
            ),
            Self::Disguised => "the path has escapes that hide what it names".to_owned(),
        }
    }
}

impl VersionRules {
    /// Returns the reason why this path is refused. The path begins after the prefix by which clients reach
    /// the server (`Mirror::path_prefixes`), and has no query. `kind` tells whether the path names an
    /// artefact, an index document or another resource. `own` is true if the path is at the upstream itself,
    /// not at another server of the mirror. `other` returns true for a path whose class differs from the
    /// class of this path.
    #[must_use]
    pub fn refusal(
        &self,
        path: &[u8],
        kind: Kind,
        own: bool,
        other: impl Fn(&[u8]) -> bool,
    ) -> Option<Refused> {
        let segments = segments(path);
        if is_disguised(path, &segments, kind, other) {
            return Some(Refused::Disguised);
        }
        let named = named(self.listing, &segments);
        for (package, which) in &named {
            let entry = match which {
                Which::Document | Which::Tag(_) => self.blocking(package, None),
                Which::Version(version) => self.blocking(package, Some(version)),
                Which::Unknown => self.about(package),
            };
            if let Some(entry) = entry {
                let what = match which {
                    Which::Version(version) => format!("{package}@{version}"),
                    _ => package.clone(),
                };
                return Some(Refused::Blocked {
                    what,
                    entry: entry.text.clone(),
                });
            }
            if let Which::Tag(tag) = which
                && own
                && kind != Kind::Pass
                && self.concerns(package)
            {
                return Some(Refused::Tag(format!("{package}@{tag}")));
            }
        }
        let hides = kind == Kind::Immutable && !self.block.is_empty();
        // A path of npm contains the name of a package and the name of a file. `strange` is true if the
        // file's name does not consist of the package's name, a version and a known ending. The file may then
        // belong to another package.
        let strange =
            |(_, which): &(String, Which)| self.listing == Listing::Npm && *which == Which::Unknown;
        (hides && named.iter().all(strange)).then_some(Refused::Unknown)
    }

    /// Returns the first entry of `block` about a package, with or without a version.
    fn about(&self, package: &str) -> Option<&super::Selector> {
        let package = names::package(self.listing, package);
        self.block.iter().find(|entry| entry.has(&package))
    }
}

/// Returns the last segment of a path.
pub(super) fn last(path: &[u8]) -> Option<String> {
    segments(path).pop()
}

/// Returns a path without escapes. Escapes that were encoded several times are decoded several times, because
/// a server on the way may do the same.
fn plain(path: &[u8]) -> Vec<u8> {
    const ROUNDS: usize = 4;
    let mut path = path.to_vec();
    for _ in 0..ROUNDS {
        let next = decoded(&path);
        if next == path {
            break;
        }
        path = next;
    }
    path
}

/// Returns the segments of a path without escapes, as the most lenient server reads them. Parameters (`;`)
/// and empty segments are left out.
pub(super) fn segments(path: &[u8]) -> Vec<String> {
    let path = plain(path);
    let text = String::from_utf8_lossy(&path);
    let parts = text.split(['/', '\\']).map(|part| {
        let end = part.find([';', '?', '#', '\0']);
        &part[..end.unwrap_or(part.len())]
    });
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns true if an upstream may read the path as another path that has another class.
fn is_disguised(
    path: &[u8],
    segments: &[String],
    kind: Kind,
    other: impl Fn(&[u8]) -> bool,
) -> bool {
    if segments.iter().any(|part| part == "." || part == "..") {
        return true;
    }
    let plain = plain(path);
    let slash = match plain.ends_with(b"/") && !segments.is_empty() {
        true => "/",
        false => "",
    };
    // Nothing follows the prefix, so no other path can be meant.
    if path.is_empty() {
        return false;
    }
    let normal = format!("/{}{slash}", segments.join("/"));
    other(&plain)
        || other(normal.as_bytes())
        // Answers of the kind `Pass` are not screened. So a path must not get this kind because it is spelt
        // in upper case.
        || kind == Kind::Pass && other(normal.to_ascii_lowercase().as_bytes())
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(byte) = text.get(at) {
        match (byte, digit(text.get(at + 1)), digit(text.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high << 4 | low) as u8);
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

/// Returns the package that a path names, and the part of the package that it names. If the path can be read
/// in several ways, the result has one entry for each way.
pub(super) fn named(listing: Listing, path: &[String]) -> Vec<(String, Which)> {
    match listing {
        Listing::Npm => npm(path).into_iter().collect(),
        Listing::Pypi => pypi(path),
        Listing::Cargo => cargo(path),
    }
}

fn npm(path: &[String]) -> Option<(String, Which)> {
    let name = |end: usize| {
        let (own, before) = (
            path.get(end)?,
            end.checked_sub(1).and_then(|at| path.get(at)),
        );
        Some(match before {
            Some(scope) if scope.starts_with('@') => (format!("{scope}/{own}"), end - 1),
            _ => (own.clone(), end),
        })
    };
    let last = path.len().checked_sub(1)?;
    let dash = path.iter().rposition(|part| part == "-");
    if let Some(dash) = dash.filter(|dash| *dash < last) {
        let (package, _) = name(dash.checked_sub(1)?)?;
        let own = package.rsplit('/').next().unwrap_or(&package);
        let file = &path[last];
        let same = file
            .get(..own.len())
            .filter(|start| start.eq_ignore_ascii_case(own));
        let rest = same.and_then(|_| file[own.len()..].strip_prefix('-'));
        let version = rest.and_then(|rest| Some(&rest[..end_of(rest, &[".tgz", ".tar.gz"])?]));
        let which = version.map_or(Which::Unknown, |version| Which::Version(version.to_owned()));
        return Some((package, which));
    }
    if path[0] == "-" {
        return None;
    }
    let is_version = names::exact(Listing::Npm, &path[last]).is_some();
    if is_version && last > 0 && !path[last - 1].starts_with('@') {
        let (package, _) = name(last - 1)?;
        return Some((package, Which::Version(path[last].clone())));
    }
    let names = 1 + usize::from(path[0].starts_with('@'));
    if path.len() == names + 1 {
        let (package, _) = name(names - 1)?;
        return Some((package, Which::Tag(path[last].clone())));
    }
    let (package, _) = name(last)?;
    Some((package, Which::Document))
}

/// Returns the position at which one of these endings begins. Upper and lower case count as equal.
fn end_of(text: &str, ends: &[&str]) -> Option<usize> {
    let has = |end: &&&str| {
        let start = text.len().checked_sub(end.len());
        let own = start.and_then(|start| text.get(start..));
        own.is_some_and(|own| own.eq_ignore_ascii_case(end))
    };
    ends.iter().find(has).map(|end| text.len() - end.len())
}

fn cargo(path: &[String]) -> Vec<(String, Which)> {
    let Some((last, before)) = path.split_last() else {
        return Vec::new();
    };
    if let (true, [.., name, version]) = (last.eq_ignore_ascii_case("download"), before) {
        return vec![(name.clone(), Which::Version(version.clone()))];
    }
    if let Some(end) = end_of(last, &[".crate"]) {
        let split = |at: usize| {
            let version = &last[at + 1..end];
            let exact = names::exact(Listing::Cargo, version).is_some();
            exact.then(|| (last[..at].to_owned(), Which::Version(version.to_owned())))
        };
        return dashes(&last[..end]).filter_map(split).collect();
    }
    let is_index = match before {
        [number] => number == "1" || number == "2",
        [number, first] => {
            number == "3" && first.len() == 1 || number.len() == 2 && first.len() <= 2
        }
        _ => false,
    };
    match is_index {
        true => vec![(last.clone(), Which::Document)],
        false => Vec::new(),
    }
}

/// Returns the path, without prefix, under which the digest of a version of a crate is stored. Registries use
/// different paths for the same version, but its digest is stored only under this path. Returns `None` if
/// name or version have characters that no crate has.
pub(crate) fn crate_path(name: &[u8], version: &[u8]) -> Option<Vec<u8>> {
    let (name, version) = (
        std::str::from_utf8(name).ok()?,
        std::str::from_utf8(version).ok()?,
    );
    let plain = |text: &str, beside: &[u8]| {
        let fits = |b: u8| b.is_ascii_alphanumeric() || beside.contains(&b);
        !text.is_empty() && text.bytes().all(fits)
    };
    let name = names::package(Listing::Cargo, name);
    let good = plain(&name, b"-") && plain(version, b".-+");
    good.then(|| format!("/{name}/{version}/download").into_bytes())
}

/// Reads the name and the version of a crate from the path of an artefact, and returns the result of
/// [`crate_path`] for them. Returns `None` if the path names no version, or if it could name several
/// versions.
pub(crate) fn crate_of(path: &[u8]) -> Option<Vec<u8>> {
    let named = cargo(&segments(path));
    let [(name, Which::Version(version))] = &named[..] else {
        return None;
    };
    crate_path(name.as_bytes(), version.as_bytes())
}

/// Returns the positions of `-`.
fn dashes(text: &str) -> impl Iterator<Item = usize> {
    text.bytes()
        .enumerate()
        .filter(|(_, byte)| *byte == b'-')
        .map(|(at, _)| at)
}

fn pypi(path: &[String]) -> Vec<(String, Which)> {
    let Some((last, before)) = path.split_last() else {
        return Vec::new();
    };
    let files = file(last).into_iter();
    let files = files.map(|(package, version)| match version.is_empty() {
        true => (package, Which::Unknown),
        false => (package, Which::Version(version)),
    });
    let is_index = before.last().is_some_and(|part| part == "simple");
    // The last segment may name a document even if it looks like a file, because some registries have their
    // files in the same folder as the documents.
    let document = is_index.then(|| (last.clone(), Which::Document));
    files.chain(document).collect()
}

/// Endings of file names of source distributions.
const SOURCES: &[&str] = &[
    ".tar.gz", ".zip", ".tar.bz2", ".tar.xz", ".tgz", ".tar.z", ".tar",
];
/// Endings of names of files that accompany another file.
const BESIDE: &[&str] = &[".metadata", ".asc", ".sig"];

/// Returns the packages and versions to which the file at this path may belong. A version that is not known
/// is empty.
pub(super) fn of_file(path: &[u8]) -> Vec<(String, String)> {
    last(path).map(|name| file(&name)).unwrap_or_default()
}

fn file(name: &str) -> Vec<(String, String)> {
    let name = end_of(name, BESIDE).map_or(name, |end| &name[..end]);
    if let Some(end) = end_of(name, &[".whl", ".egg"]) {
        // PEP 427: names and versions contain `_` instead of `-`.
        let mut parts = name[..end].split('-');
        let (package, version) = (parts.next().unwrap_or_default(), parts.next());
        let version = version.unwrap_or_default().replace('_', "-");
        return vec![(package.to_owned(), version)];
    }
    let source = end_of(name, SOURCES);
    let end = source.or_else(|| end_of(name, &[".exe", ".msi", ".rpm", ".deb", ".dmg"]));
    let Some(end) = end else { return Vec::new() };
    let text = &name[..end];
    let split = |at: usize| {
        let version = &text[at + 1..];
        let fits = match source {
            Some(_) => names::pep440(version).is_some(),
            None => version.starts_with(|c: char| c.is_ascii_digit()),
        };
        // Names of installers also contain the name of the system, so their version is not known.
        let version = if source.is_some() { version } else { "" };
        fits.then(|| (text[..at].to_owned(), version.to_owned()))
    };
    let found: Vec<_> = dashes(text).filter_map(split).collect();
    match found.is_empty() {
        // The version cannot be read, so each `-` may be the separator before the version.
        true => dashes(text)
            .map(|at| (text[..at].to_owned(), String::new()))
            .collect(),
        false => found,
    }
}

/// Returns the version of a file of this package. The version is empty if it is not known.
pub(super) fn version_of_file(package: &str, name: &str) -> String {
    let package = names::package(Listing::Pypi, package);
    let of_package = |(own, _): &(String, String)| names::package(Listing::Pypi, own) == package;
    let found = file(name).into_iter().find(of_package);
    found.map(|(_, version)| version).unwrap_or_default()
}

#[cfg(test)]
mod tests;
