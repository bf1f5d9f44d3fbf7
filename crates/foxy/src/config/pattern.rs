//! The names and patterns that rules are written with: what is allowed, and what is wrong.

use super::kind::{name, token};

/// The kind of name that a pattern is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Names of sites; no patterns.
    Site,
    /// Hosts.
    Host,
    /// Paths.
    Path,
    /// Names of query parameters.
    Parameter,
    /// Names of cookies; no patterns.
    Cookie,
    /// Names of cookies.
    CookiePattern,
    /// Request fields, with or without a pattern for the value.
    Field,
    /// Names in certificates of clients.
    ClientName,
}

impl Of {
    /// Returns the allowed values, for messages and the reference.
    pub(super) const fn allowed(self) -> &'static str {
        match self {
            Self::Site => "a list of names of sites, or \"forward\"",
            Self::Host => {
                "a list of hosts such as example.com, *.example.com or example.com:8080 (a port that is not 80 belongs to it)"
            }
            Self::Path => "a list of paths such as /img/* or *.jpg, without a query",
            Self::Parameter => "a list of parameter names such as id or utm_*",
            Self::Cookie => "a list of cookie names",
            Self::CookiePattern => "a list of cookie names such as session or sess*",
            Self::ClientName => "a list of names such as *.nodes.example.com or \"CN=node 1\"",
            Self::Field => "a list of field names, or NAME: VALUE such as \"User-Agent: *curl*\"",
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// The mistake, in a few words.
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
        }
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
            (Of::Site, &["shop", "forward"][..], &["a b", ""][..]),
            (
                Of::Host,
                &["example.com", "*.a.b", "h:8080", "[::1]"],
                &["http://a", "a/b", "", "a b", "a:80"],
            ),
            (
                Of::Path,
                &["/a/*", "*.jpg", "/"],
                &["a", "/a?b=c", "/a b", ""],
            ),
            (Of::Parameter, &["id", "utm_*", "*"], &["", "a=b", "a&b"]),
            (Of::Cookie, &["session"], &["s*", "", "a b"]),
            (Of::CookiePattern, &["s*"], &["", "a=b"]),
            (Of::ClientName, &["*.a.b", "CN=x y"], &["", " "]),
            (
                Of::Field,
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
        assert_eq!(Of::Host.read("Example.COM").as_deref(), Ok("example.com"));
    }
}
