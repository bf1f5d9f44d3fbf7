//! Invalidation by unsafe requests (RFC 9111 section 4.4). It covers the target, and the URLs in
//! Location and Content-Location that have the same origin.

use foxy_base::{Fields, first, rule};

use crate::method::Method;

/// The target URI of a request, split into the parts from which the cache key is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetUri<'a> {
    /// `http` or `https`, in lower case.
    pub scheme: &'a str,
    /// Host in lower case, with the port unless it is the default.
    pub authority: &'a str,
    /// Path and query.
    pub path: &'a str,
}

/// URLs to invalidate. Stored responses of these URLs become stale or are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invalidation {
    /// True if the target itself is invalidated.
    pub target: bool,
    /// Further paths (with query) of the same scheme and authority.
    pub paths: Vec<String>,
}

/// The URLs to invalidate after a request with this method was answered with this status. After an error, no
/// URL is invalidated.
pub fn invalidated_by<F: Fields + ?Sized>(
    method: Method,
    target: &TargetUri<'_>,
    status: u16,
    fields: &F,
) -> Invalidation {
    if !method.invalidates() || !(200..400).contains(&status) {
        return Invalidation::default();
    }
    let mut paths: Vec<String> = ["Location", "Content-Location"]
        .iter()
        .filter_map(|name| resolve(target, first(fields, name)?))
        .filter(|path| path != target.path)
        .collect();
    paths.dedup();
    Invalidation {
        target: true,
        paths,
    }
}

/// True if a reference resolves to the target itself.
#[must_use]
pub fn same_target(target: &TargetUri<'_>, reference: &[u8]) -> bool {
    resolve(target, reference).is_some_and(|path| path == target.path)
}

/// Path and query of a URI reference, resolved against the target (RFC 3986 section 5.2). `None` if the
/// reference resolves to a URI of another origin, or is not a URI.
fn resolve(target: &TargetUri<'_>, reference: &[u8]) -> Option<String> {
    let text = str::from_utf8(reference).ok()?;
    let text = text.split('#').next().unwrap_or_default();
    if text.bytes().any(|b| b <= b' ' || b == 0x7f) {
        return None;
    }
    if let Some((scheme, rest)) = split_scheme(text) {
        if !scheme.eq_ignore_ascii_case(target.scheme) {
            return None;
        }
        return on_authority(target, rest.strip_prefix("//")?);
    }
    if let Some(rest) = text.strip_prefix("//") {
        return on_authority(target, rest);
    }
    Some(relative(target.path, text))
}

fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    valid.then_some((scheme, rest))
}

fn on_authority(target: &TargetUri<'_>, rest: &str) -> Option<String> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let default_port = if target.scheme == "https" {
        ":443"
    } else {
        ":80"
    };
    let plain = |a: &str| {
        a.strip_suffix(default_port)
            .unwrap_or(a)
            .to_ascii_lowercase()
    };
    if rule!(
        "invalidation: a server removes nothing of another",
        plain(authority) != plain(target.authority),
        false
    ) {
        return None;
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    Some(without_dots(&format!("{slash}{path}")))
}

fn relative(base: &str, reference: &str) -> String {
    let base_path = base.split('?').next().unwrap_or_default();
    if reference.is_empty() {
        return base.to_owned();
    }
    if reference.starts_with('?') {
        return format!("{base_path}{reference}");
    }
    if reference.starts_with('/') {
        return without_dots(reference);
    }
    let folder = base_path.rfind('/').map_or("/", |at| &base_path[..=at]);
    without_dots(&format!("{folder}{reference}"))
}

/// Removes `.` and `..` segments of an absolute path (RFC 3986 section 5.2.4). The query is not
/// changed.
fn without_dots(path_and_query: &str) -> String {
    let (path, query) =
        path_and_query.split_at(path_and_query.find('?').unwrap_or(path_and_query.len()));
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (at, segment) in segments.iter().enumerate() {
        let last = at + 1 == segments.len();
        match *segment {
            "." => kept.extend(last.then_some("")),
            ".." => {
                kept.pop();
                kept.extend(last.then_some(""));
            }
            other => kept.push(other),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests;
