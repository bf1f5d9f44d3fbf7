//! Packages that only one mirror has. They are not requested from other registries.

use super::paths::{named, segments};
use super::{Listing, Selector, names};

/// Names of packages, in the order of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnNames {
    listing: Listing,
    entries: Vec<Selector>,
}

impl OwnNames {
    /// Makes the list of the names in `entries`.
    ///
    /// # Errors
    /// Returns the first entry that names a version. No entry may name a version, because all versions of a
    /// package belong to the same registry.
    pub fn new(listing: Listing, entries: Vec<Selector>) -> Result<Self, String> {
        match entries.iter().find(|entry| entry.version.is_some()) {
            Some(entry) => Err(entry.text.clone()),
            None => Ok(Self { listing, entries }),
        }
    }

    /// Returns the entries as the settings contain them.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| &entry.text[..])
    }

    /// Returns true if a path of a registry of this kind names one of the packages. The path is read as the
    /// most lenient server would read it. The path has no prefix and no query.
    #[must_use]
    pub fn has(&self, listing: Listing, path: &[u8]) -> bool {
        if listing != self.listing {
            return false;
        }
        let packages = packages(listing, path);
        let own = |package: &String| self.entries.iter().any(|entry| entry.has(package));
        packages.iter().any(own)
    }
}

/// Returns true if a document may determine the digest of an artefact. The result is false only if both paths
/// name packages, and have no package in common. The paths have no prefix and no query.
pub(crate) fn speaks_for(listing: Listing, document: &[u8], artefact: &[u8]) -> bool {
    let [document, artefact] = [document, artefact].map(|path| packages(listing, path));
    document.is_empty() || artefact.is_empty() || document.iter().any(|own| artefact.contains(own))
}

/// Returns the packages that a path can name, in normal form.
fn packages(listing: Listing, path: &[u8]) -> Vec<String> {
    let mut segments = segments(path);
    // The first segment names another host of the mirror.
    if segments.first().is_some_and(|first| first.starts_with('~')) {
        segments.remove(0);
    }
    let named = named(listing, &segments);
    let beside = match segments.first() {
        Some(first) if listing == Listing::Npm && first == "-" => of_service(&segments),
        _ => Vec::new(),
    };
    let all = named.into_iter().map(|(package, _)| package).chain(beside);
    all.map(|package| names::package(listing, &package))
        .collect()
}

/// Returns the names of packages in the path of an npm service (`/-/package/@scope/name/dist-tags`).
fn of_service(segments: &[String]) -> Vec<String> {
    let pairs = segments.windows(2).filter(|pair| pair[0].starts_with('@'));
    let pairs = pairs.map(|pair| format!("{}/{}", pair[0], pair[1]));
    pairs.chain(segments.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(listing: Listing, entries: &[&str]) -> OwnNames {
        let read = |text: &&str| Selector::read(listing, text).unwrap();
        OwnNames::new(listing, entries.iter().map(read).collect()).unwrap()
    }

    #[test]
    fn every_way_to_write_a_name_is_the_name() {
        let npm = (Listing::Npm, &["@acme/*", "acme-*"][..]);
        let pypi = (Listing::Pypi, &["acme-*"][..]);
        for ((listing, entries), path, expected) in [
            (npm, "/@acme/x", true),
            (npm, "/@acme%2fx", true),
            (npm, "/@acme%252Fx", true),
            (npm, "/%40ACME/x/-/x-1.0.0.tgz", true),
            (npm, "//@acme//x/latest", true),
            (npm, "/acme-x/1.0.0", true),
            (npm, "/~other.test/acme-x", true),
            (npm, "/-/package/@acme%2fx/dist-tags", true),
            (npm, "/-/package/acme-x/dist-tags", true),
            (npm, "/@acmex/y", false),
            (npm, "/left-pad", false),
            (npm, "/-/v1/search", false),
            (npm, "/", false),
            (pypi, "/simple/acme-x/", true),
            (pypi, "/simple/Acme_X", true),
            (pypi, "/simple/acme.x/", true),
            (pypi, "/packages/ab/cd/acme_x-1.0-py3-none-any.whl", true),
            (pypi, "/packages/acme_x-1.0.tar.gz", true),
            (pypi, "/simple/other/", false),
            (pypi, "/simple/", false),
        ] {
            let own = names(listing, entries);
            assert_eq!(own.has(listing, path.as_bytes()), expected, "{path}");
        }
        let own = names(Listing::Npm, &["acme-*"]);
        assert!(!own.has(Listing::Pypi, b"/simple/acme-x/"));
        let entry = Selector::read(Listing::Npm, "a@1.0.0").unwrap();
        assert_eq!(
            OwnNames::new(Listing::Npm, vec![entry]),
            Err("a@1.0.0".into())
        );
    }

    #[test]
    fn a_document_speaks_of_its_own_package() {
        for (listing, document, artefact, expected) in [
            (
                Listing::Pypi,
                "/simple/a-b/",
                "/~files/packages/1/a_b-1.0.tar.gz",
                true,
            ),
            (
                Listing::Pypi,
                "/simple/A.B/",
                "/packages/a_b-1.0-py3-none-any.whl.metadata",
                true,
            ),
            (
                Listing::Pypi,
                "/simple/evil/",
                "/packages/a_b-1.0.tar.gz",
                false,
            ),
            (Listing::Pypi, "/simple/evil/", "/packages/blob", true),
            (
                Listing::Pypi,
                "/index.html",
                "/packages/a_b-1.0.tar.gz",
                true,
            ),
            (Listing::Npm, "/@s/a", "/@s/a/-/a-1.0.0.tgz", true),
            (Listing::Npm, "/@s%2fa", "/~cdn/@s/a/-/a-1.0.0.tgz", true),
            (Listing::Npm, "/a", "/@s/a/-/a-1.0.0.tgz", false),
            (
                Listing::Npm,
                "/evil",
                "/left-pad/-/left-pad-1.0.0.tgz",
                false,
            ),
        ] {
            let speaks = speaks_for(listing, document.as_bytes(), artefact.as_bytes());
            assert_eq!(speaks, expected, "{document} of {artefact}");
        }
    }
}
