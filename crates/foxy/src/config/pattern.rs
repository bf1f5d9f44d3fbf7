//! The kinds of names and patterns in rules: the allowed forms, and the mistakes in them.

use foxy_proxy::access_rules::Span;

use super::kind::{name, token};

/// The kind of name that a pattern is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternKind {
    /// Names of sites (patterns are not allowed).
    Site,
    /// Hosts.
    Host,
    /// Paths.
    Path,
    /// Names of query parameters.
    Parameter,
    /// Names of cookies (patterns are not allowed).
    Cookie,
    /// Names of cookies, or patterns for them.
    CookiePattern,
    /// Request fields, with or without a pattern for the value.
    Field,
    /// Names in certificates of clients.
    ClientName,
    /// Hosts of destinations.
    Destination,
    /// Names of users (patterns are not allowed).
    User,
    /// Methods.
    Method,
    /// Times of the week.
    Time,
    /// A group and its users.
    Group,
    /// A program and its arguments.
    Command,
    /// Packages, and versions of them.
    Package,
}

impl PatternKind {
    /// True if a list of these patterns may be empty.
    pub(super) const fn may_be_none(self) -> bool {
        matches!(self, Self::Destination)
    }

    /// Returns a description of the allowed values, for messages and the reference (`docs/config.md`).
    pub(super) const fn allowed(self) -> &'static str {
        match self {
            Self::Site => "a list of names of sites, or \"forward\"",
            Self::Host => {
                "a list of hosts such as example.com, *.example.com or example.com:8080 (a port other than 80 is part of the host)"
            }
            Self::Path => "a list of paths such as /img/* or *.jpg, without a query",
            Self::Parameter => "a list of parameter names such as id or utm_*",
            Self::Cookie => "a list of cookie names",
            Self::CookiePattern => "a list of cookie names such as session or sess*",
            Self::ClientName => "a list of names such as *.nodes.example.com or \"CN=node 1\"",
            Self::Destination => {
                "a list of hosts without port: example.com, *.example.com (all names under example.com), .example.com (example.com and all names under it), or with `*` in any place"
            }
            Self::User => "a list of names",
            Self::Method => "a list of methods such as POST",
            Self::Time => {
                "a list of times such as \"mon-fri 08:00-17:30\", \"sat,sun\" or \"22:00-06:00\""
            }
            Self::Group => "a list of groups and their users, such as \"staff: alice bob\"",
            Self::Command => "a list of the program's path and its arguments",
            Self::Package => "a list of packages such as left-pad, left-pad@1.3.0 or @scope/*",
            Self::Field => "a list of field names, or NAME: VALUE such as \"User-Agent: *curl*\"",
        }
    }

    /// Reads one name or pattern.
    ///
    /// # Errors
    /// Returns the mistake in a few words.
    pub(super) fn read(self, text: &str) -> Result<String, String> {
        match self {
            Self::Site => name(text),
            Self::Host => host(text),
            Self::Path => path(text),
            Self::Parameter => parameter(text),
            Self::Cookie if text.contains('*') => {
                Err("it has to be one cookie's name, without `*`".to_owned())
            }
            Self::Cookie | Self::CookiePattern => token(text).map_err(|_| cookie_wrong()),
            Self::Field => field(text),
            Self::ClientName if text.trim().is_empty() => Err("it is empty".to_owned()),
            Self::ClientName => Ok(text.to_owned()),
            Self::Destination => destination(text),
            Self::User => user(text),
            Self::Method => token(text),
            Self::Time => Span::parse(text).map(|_| text.to_owned()),
            Self::Group => group(text).map(|_| text.to_owned()),
            Self::Command if text.is_empty() => Err("it is empty".to_owned()),
            Self::Command => Ok(text.to_owned()),
            Self::Package => package(text),
        }
    }
}

/// Reads a package. The form that a registry requires is checked later, where the registry of the mirror is
/// known.
fn package(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(|c: char| !c.is_ascii_graphic()) {
        true => Err("it is no package, with `@` and a version or without".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn cookie_wrong() -> String {
    "it is not the name of a cookie".to_owned()
}

fn host(text: &str) -> Result<String, String> {
    if text.contains("://") || text.contains('/') {
        return Err("it has more than a host; write paths under `path`".to_owned());
    }
    if text.ends_with(":80") {
        return Err("port 80 goes without saying; leave it out".to_owned());
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || "*.-_:[]".contains(c);
    if text.is_empty() || !text.chars().all(fits) {
        return Err("it is not a host".to_owned());
    }
    Ok(text.to_ascii_lowercase())
}

fn destination(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "*.-_:".contains(c);
    if text.is_empty() || !text.chars().all(fits) {
        return Err("it is not a host (write it without scheme, port and path; names with other letters in their xn-- form)".to_owned());
    }
    let port = text.contains(':') && text.parse::<std::net::Ipv6Addr>().is_err();
    if port {
        return Err("it has a port; see `port`".to_owned());
    }
    Ok(match text.parse::<std::net::IpAddr>() {
        // The result is the normal form, in which addresses are compared.
        Ok(address) => address.to_canonical().to_string(),
        Err(_) => text.to_ascii_lowercase(),
    })
}

fn user(text: &str) -> Result<String, String> {
    match text.is_empty() || text.chars().any(char::is_control) {
        true => Err("it is not a name".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// Reads a group and its users: `GROUP: USER USER`.
pub(super) fn group(text: &str) -> Result<(&str, Vec<&str>), String> {
    let (group, users) = text.split_once(':').ok_or("it has no colon")?;
    let users: Vec<&str> = users.split_whitespace().collect();
    let right = !group.trim().is_empty() && !users.is_empty();
    right
        .then(|| (group.trim(), users))
        .ok_or_else(|| "it has no group or no users".to_owned())
}

fn path(text: &str) -> Result<String, String> {
    if text.contains('?') {
        return Err("paths are compared without the query; see `query_keep`".to_owned());
    }
    if !text.starts_with(['/', '*']) {
        return Err("a path begins with `/`, or with `*`".to_owned());
    }
    if text.contains([' ', '#']) {
        return Err("a path has neither space nor `#`; write %20 or %23".to_owned());
    }
    Ok(text.to_owned())
}

fn parameter(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(['=', '&', '?', '#', ' ']) {
        return Err("it is not the name of a parameter as URLs have it".to_owned());
    }
    Ok(text.to_owned())
}

fn field(text: &str) -> Result<String, String> {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    token(name.trim()).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_form() {
        for (of, right, wrong) in [
            (
                PatternKind::Site,
                &["shop", "forward"][..],
                &["a b", ""][..],
            ),
            (
                PatternKind::Host,
                &["example.com", "*.a.b", "h:8080", "[::1]"],
                &["http://a", "a/b", "", "a b", "a:80"],
            ),
            (
                PatternKind::Path,
                &["/a/*", "*.jpg", "/"],
                &["a", "/a?b=c", "/a b", ""],
            ),
            (
                PatternKind::Parameter,
                &["id", "utm_*", "*"],
                &["", "a=b", "a&b"],
            ),
            (PatternKind::Cookie, &["session"], &["s*", "", "a b"]),
            (PatternKind::CookiePattern, &["s*"], &["", "a=b"]),
            (PatternKind::ClientName, &["*.a.b", "CN=x y"], &["", " "]),
            (
                PatternKind::Field,
                &["X-A", "User-Agent: *curl*"],
                &["", "a b", ": x"],
            ),
        ] {
            for text in right {
                assert!(of.read(text).is_ok(), "{of:?} {text}");
            }
            for text in wrong {
                assert!(of.read(text).is_err(), "{of:?} {text}");
            }
        }
        assert_eq!(
            PatternKind::Host.read("Example.COM").as_deref(),
            Ok("example.com")
        );
    }
}
