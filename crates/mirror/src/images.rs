//! Registries of container images (the OCI distribution protocol): finds the resource and the registry that a
//! path below `/v2/` names.
//!
//! A registry is named by `?ns=` (containerd) or by the first part of the repository (`/v2/ghcr.io/a/b/...`).
//! If a path names no registry, the first configured registry is used. If a path names a registry that is not
//! configured, no registry is used. The image is never requested from another registry.

use crate::Digest;
use crate::digest;

/// The path of the protocol, and the prefix of all mirrors of images.
pub const PREFIX: &str = "/v2";

/// Longest name of a repository, in bytes.
const REPOSITORY_MAX: usize = 255;
/// Longest tag, in bytes.
const TAG_MAX: usize = 128;

/// Resource of a registry that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The registry itself. The client asks whether the registry supports the protocol.
    Base,
    /// A manifest by its tag.
    Tag,
    /// A manifest by its digest.
    Manifest(Digest),
    /// A layer or a configuration.
    Blob(Digest),
    /// A list: the tags of a repository, or the manifests that refer to a manifest.
    List,
}

/// A request for a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Number of the registry in the list of configured registries.
    pub registry: usize,
    /// The requested resource.
    pub wanted: Wanted,
    /// Path at the registry, with the query for the registry.
    pub path: String,
    /// The repository. Empty for [`Wanted::Base`].
    pub repository: String,
    /// The tag or digest. Empty for [`Wanted::Base`] and [`Wanted::List`].
    pub reference: String,
}

/// The reason why a path names no resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoImage {
    /// The path names a registry that is not configured.
    Registry,
    /// The path is not a path of the protocol.
    Path,
}

/// Reads a path with its query. `names` are the names of the registries, as references of images contain them
/// (such as `docker.io`).
///
/// # Errors
/// Returns the reason why the path names no resource.
pub fn image(path: &[u8], names: &[&str]) -> Result<Image, NoImage> {
    let text = std::str::from_utf8(path).map_err(|_| NoImage::Path)?;
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let named = named(query, names)?;
    let rest = path.strip_prefix(PREFIX).ok_or(NoImage::Path)?;
    if matches!(rest, "" | "/") {
        return Ok(Image {
            registry: named.unwrap_or(0),
            wanted: Wanted::Base,
            path: format!("{PREFIX}/"),
            repository: String::new(),
            reference: String::new(),
        });
    }
    let rest = rest.strip_prefix('/').ok_or(NoImage::Path)?;
    let (rest, tail) = split_reference(rest).ok_or(NoImage::Path)?;
    let (registry, repository) = match named {
        Some(registry) => (registry, rest),
        None => by_path(rest, names)?,
    };
    let mut repository = repository.to_owned();
    // The names of Docker Hub's official images have only one part. The registry stores these images below
    // `library/`.
    if names.get(registry) == Some(&"docker.io") && !repository.contains('/') {
        repository.insert_str(0, "library/");
    }
    if !is_repository(&repository) {
        return Err(NoImage::Path);
    }
    let (wanted, reference) = wanted(tail)?;
    let query = match wanted {
        Wanted::List => without_registry(query),
        _ => String::new(),
    };
    Ok(Image {
        registry,
        path: format!("{PREFIX}/{repository}/{tail}{query}"),
        wanted,
        repository,
        reference,
    })
}

/// Returns the number of the registry that the query names.
fn named(query: &str, names: &[&str]) -> Result<Option<usize>, NoImage> {
    let mut values = query.split('&').filter_map(|part| part.strip_prefix("ns="));
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.any(|other| other != value) {
        return Err(NoImage::Registry);
    }
    let value = value.replace("%3A", ":").replace("%3a", ":");
    let found = names.iter().position(|name| *name == value);
    found.map(Some).ok_or(NoImage::Registry)
}

/// Returns the registry (as its number) and the repository. The first part of the path names the registry. If
/// this part is neither a registry nor a host, the first configured registry is used, and the complete path
/// is the repository.
fn by_path<'a>(rest: &'a str, names: &[&str]) -> Result<(usize, &'a str), NoImage> {
    let Some((first, repository)) = rest.split_once('/') else {
        return Ok((0, rest));
    };
    if let Some(registry) = names.iter().position(|name| *name == first) {
        return Ok((registry, repository));
    }
    // As in references of images, a first part with a dot or colon, or `localhost`, is a host. This host is
    // not configured, so the image is requested from no registry.
    match first.contains(['.', ':']) || first == "localhost" {
        true => Err(NoImage::Registry),
        false => Ok((0, rest)),
    }
}

/// Splits a path into the repository and the part after it, such as `manifests/TAG`.
fn split_reference(rest: &str) -> Option<(&str, &str)> {
    let tail = ["/manifests/", "/blobs/", "/referrers/", "/tags/list"];
    let at = tail.iter().filter_map(|part| rest.rfind(part)).max()?;
    Some((&rest[..at], &rest[at + 1..]))
}

fn wanted(tail: &str) -> Result<(Wanted, String), NoImage> {
    let digest_of = |text: &str| digest::of_name(text).ok_or(NoImage::Path);
    match tail.split_once('/') {
        Some(("manifests", reference)) if reference.contains(':') => Ok((
            Wanted::Manifest(digest_of(reference)?),
            reference.to_owned(),
        )),
        Some(("manifests", tag)) if is_tag(tag) => Ok((Wanted::Tag, tag.to_owned())),
        Some(("blobs", reference)) => {
            Ok((Wanted::Blob(digest_of(reference)?), reference.to_owned()))
        }
        Some(("referrers", reference)) => {
            digest_of(reference)?;
            Ok((Wanted::List, String::new()))
        }
        Some(("tags", "list")) => Ok((Wanted::List, String::new())),
        _ => Err(NoImage::Path),
    }
}

/// Returns the query without the parameter `ns`, and without parameters that contain unusual characters. The
/// result begins with `?`, unless it is empty.
fn without_registry(query: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~%=/+:".contains(c);
    let kept: Vec<&str> = query
        .split('&')
        .filter(|part| !part.is_empty() && !part.starts_with("ns=") && part.chars().all(plain))
        .collect();
    match kept.is_empty() {
        true => String::new(),
        false => format!("?{}", kept.join("&")),
    }
}

fn is_repository(name: &str) -> bool {
    let is_part = |part: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
        let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = part.as_bytes();
        bytes.iter().all(|b| inner(*b))
            && bytes.first().is_some_and(edge)
            && bytes.last().is_some_and(edge)
            && !part.contains("..")
    };
    name.len() <= REPOSITORY_MAX && name.split('/').all(is_part)
}

fn is_tag(tag: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let bytes = tag.as_bytes();
    bytes.len() <= TAG_MAX
        && bytes.iter().all(|b| plain(*b))
        && bytes
            .first()
            .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["docker.io", "ghcr.io", "own.test:5000"];

    fn read(path: &str) -> Result<(usize, String, Wanted), NoImage> {
        let image = image(path.as_bytes(), NAMES)?;
        Ok((image.registry, image.path, image.wanted))
    }

    fn hex() -> String {
        "0123456789abcdef".repeat(4)
    }

    #[test]
    fn a_registry_is_named_by_the_query_or_the_path_or_is_the_first() {
        for (path, registry, at) in [
            (
                "/v2/alpine/manifests/3",
                0,
                "/v2/library/alpine/manifests/3",
            ),
            ("/v2/a/b/manifests/x", 0, "/v2/a/b/manifests/x"),
            (
                "/v2/docker.io/alpine/manifests/3",
                0,
                "/v2/library/alpine/manifests/3",
            ),
            (
                "/v2/ghcr.io/alpine/manifests/3",
                1,
                "/v2/alpine/manifests/3",
            ),
            ("/v2/a/b/manifests/x?ns=ghcr.io", 1, "/v2/a/b/manifests/x"),
            (
                "/v2/a.b/c/manifests/x?ns=ghcr.io",
                1,
                "/v2/a.b/c/manifests/x",
            ),
            (
                "/v2/a/manifests/x?ns=own.test%3A5000",
                2,
                "/v2/a/manifests/x",
            ),
            ("/v2/own.test:5000/a/manifests/x", 2, "/v2/a/manifests/x"),
            (
                "/v2/manifests/blobs/manifests/x",
                0,
                "/v2/manifests/blobs/manifests/x",
            ),
            (
                "/v2/a/b/tags/list?n=2&last=x&ns=ghcr.io",
                1,
                "/v2/a/b/tags/list?n=2&last=x",
            ),
            ("/v2/a/b/manifests/x?y=1", 0, "/v2/a/b/manifests/x"),
        ] {
            let (got, target, _) = read(path).unwrap();
            assert_eq!((got, &target[..]), (registry, at), "{path}");
        }
    }

    #[test]
    fn names_that_are_not_configured_lead_nowhere() {
        for path in [
            "/v2/a/b/manifests/x?ns=169.254.169.254",
            "/v2/a/b/manifests/x?ns=metadata.internal",
            "/v2/a/b/manifests/x?ns=",
            "/v2/a/b/manifests/x?ns=ghcr.io&ns=docker.io",
            "/v2/?ns=other.test",
            "/v2/quay.io/a/b/manifests/x",
            "/v2/169.254.169.254/latest/manifests/x",
            "/v2/localhost/a/manifests/x",
            "/v2/host:80/a/manifests/x",
        ] {
            assert_eq!(read(path), Err(NoImage::Registry), "{path}");
        }
    }

    #[test]
    fn what_is_none_of_the_protocol_is_refused() {
        for path in [
            "/v2/_catalog".to_owned(),
            "/v2/a/../b/manifests/x".to_owned(),
            "/v2/a//b/manifests/x".to_owned(),
            "/v2/a/%2e%2e/manifests/x".to_owned(),
            "/v2/A/b/manifests/x".to_owned(),
            "/v2/a/b/manifests/".to_owned(),
            "/v2/a/b/manifests/.x".to_owned(),
            "/v2/a/b/manifests/x/y".to_owned(),
            "/v2/a/b/manifests/sha256:00".to_owned(),
            format!("/v2/a/b/manifests/md5:{}", hex()),
            format!("/v2/a/b/blobs/{}", hex()),
            format!("/v2/a/b/blobs/sha256:{}", hex().to_uppercase()),
            format!("/v2/a/b/blobs/sha256:{}/x", hex()),
            "/v2/a/b/blobs/uploads/".to_owned(),
            "/v2/a/b/tags/list/x".to_owned(),
            format!("/v2/{}/manifests/x", "a/".repeat(200)),
        ] {
            assert_eq!(read(&path), Err(NoImage::Path), "{path}");
        }
    }

    #[test]
    fn digests_are_known() {
        let digest = digest::of_name(&format!("sha256:{}", hex())).unwrap();
        for (path, wanted) in [
            (
                format!("/v2/a/b/blobs/sha256:{}", hex()),
                Wanted::Blob(digest),
            ),
            (
                format!("/v2/a/b/manifests/sha256:{}", hex()),
                Wanted::Manifest(digest),
            ),
            (format!("/v2/a/b/referrers/sha256:{}", hex()), Wanted::List),
            ("/v2/a/b/manifests/latest".to_owned(), Wanted::Tag),
            ("/v2/".to_owned(), Wanted::Base),
            ("/v2".to_owned(), Wanted::Base),
        ] {
            assert_eq!(read(&path).unwrap().2, wanted, "{path}");
        }
    }
}
