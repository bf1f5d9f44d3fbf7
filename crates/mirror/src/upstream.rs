//! A server to which a mirror may send requests: scheme, host, port, and the path below which its
//! documents are.

use std::fmt;
use std::str::FromStr;

/// A server of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// True if the server uses TLS.
    pub secure: bool,
    /// Host in lower case, with IPv6 addresses in brackets, and with the port if it is not the
    /// scheme's default.
    pub authority: String,
    /// Path without the last `/`. Empty for the root.
    pub path: String,
}

impl Upstream {
    /// Returns host and port in the form that a resolver accepts.
    #[must_use]
    pub fn host_and_port(&self) -> (String, u16) {
        let default = if self.secure { 443 } else { 80 };
        let (host, port) = match self.authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(default)),
            _ => (&self.authority[..], default),
        };
        (host.trim_matches(['[', ']']).to_owned(), port)
    }

    /// Returns the segment of a mirror's path that names the server. Clients would encode some characters of
    /// an authority, so brackets are left out, and `:` becomes `~`.
    #[must_use]
    pub fn segment(&self) -> String {
        self.authority.replace(['[', ']'], "").replace(':', "~")
    }

    /// Returns the same server without a path.
    #[must_use]
    pub fn root(&self) -> Self {
        Self {
            path: String::new(),
            ..self.clone()
        }
    }

    /// Returns true if both are the same server. Their paths may differ.
    #[must_use]
    pub fn is_server_of(&self, other: &Self) -> bool {
        (self.secure, &self.authority) == (other.secure, &other.authority)
    }
}

impl FromStr for Upstream {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (secure, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            _ => return Err("it begins with neither http:// nor https://".to_owned()),
        };
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        if authority.is_empty() || authority.len() > 255 || !authority.chars().all(fits) {
            return Err("it names no host (a user name has no place in it)".to_owned());
        }
        let plain = |c: char| c.is_ascii_graphic() && !"?#%\\\"'<>{}".contains(c);
        let dots = path.split('/').any(|part| part == "." || part == "..");
        if !path.chars().all(plain) || dots || path.contains("//") {
            return Err(
                "its path has a query, an escape, or a part `.`, `..` or nothing".to_owned(),
            );
        }
        let authority = authority.to_ascii_lowercase();
        let default = if secure { ":443" } else { ":80" };
        let authority = authority.strip_suffix(default).unwrap_or(&authority);
        Ok(Self {
            secure,
            authority: authority.to_owned(),
            path: path.trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, shown, host, port) in [
            ("https://A.test/", "https://a.test", "a.test", 443),
            ("https://a.test:443/x/", "https://a.test/x", "a.test", 443),
            (
                "HTTP://127.0.0.1:81/a/b",
                "http://127.0.0.1:81/a/b",
                "127.0.0.1",
                81,
            ),
            ("http://[::1]:8/", "http://[::1]:8", "::1", 8),
            ("http://[::1]", "http://[::1]", "::1", 80),
        ] {
            let read: Upstream = text.parse().unwrap();
            assert_eq!(read.to_string(), shown);
            assert_eq!(read.host_and_port(), (host.to_owned(), port), "{text}");
        }
        for wrong in [
            "a.test",
            "ftp://a",
            "http://",
            "http://u:p@a",
            "http://a/../b",
            "http://a/?x",
            "http://a//b",
        ] {
            assert!(wrong.parse::<Upstream>().is_err(), "{wrong}");
        }
    }
}
