//! The address of an origin in the form that users write: `http://127.0.0.1:8080`.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// Scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginUrl {
    /// True if the scheme is `https`, so that the origin speaks TLS.
    pub secure: bool,
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    /// The port of the origin.
    pub port: u16,
}

impl FromStr for OriginUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (secure, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some(_) => return Err("the scheme is neither http nor https".to_owned()),
            None => (false, text),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err("it has a path; name the server only".to_owned());
        }
        if authority.contains('@') {
            return Err("it has a user name; Foxy does not keep passwords".to_owned());
        }
        let (host, port) = split_port(authority)?;
        let port = port.unwrap_or(default_port(secure));
        Ok(Self {
            secure,
            host: check_host(host)?,
            port,
        })
    }
}

/// An origin of a site, in the form that users write: its URL, and optionally `weight=N` and `connections=N`
/// after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginEntry {
    /// Scheme, host and port of the origin.
    pub url: OriginUrl,
    /// The weight of the origin. Among the origins of a site, the origin's share of requests is in proportion
    /// to its weight.
    pub weight: u32,
    /// Largest number of requests under way at the origin; `None`: no limit.
    pub connections: Option<u32>,
}

impl FromStr for OriginEntry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split_ascii_whitespace();
        let mut entry = Self {
            url: words.next().unwrap_or_default().parse()?,
            weight: 1,
            connections: None,
        };
        for word in words {
            let number = |text: &str, most: u32| match text.parse::<u32>() {
                Ok(number) if (1..=most).contains(&number) => Ok(number),
                _ => Err(format!("`{word}` is not a number from 1 to {most}")),
            };
            match word.split_once('=') {
                Some(("weight", text)) => entry.weight = number(text, 1000)?,
                Some(("connections", text)) => entry.connections = Some(number(text, 1_000_000)?),
                _ => return Err(format!("`{word}` is neither weight=N nor connections=N")),
            }
        }
        Ok(entry)
    }
}

const fn default_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let bad_port = |_| "its port is not a number from 1 to 65535".to_owned();
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("its bracket is not closed")?;
        host.parse::<Ipv6Addr>()
            .map_err(|_| "it has no IPv6 address between the brackets".to_owned())?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port.parse().map_err(bad_port)?))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err("something stands behind the bracket".to_owned()),
        };
    }
    match authority.split_once(':') {
        Some((host, port)) => Ok((host, Some(port.parse().map_err(bad_port)?))),
        None => Ok((authority, None)),
    }
}

fn check_host(host: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() || host.len() > 255 || !host.chars().all(fits) {
        return Err("it names no host".to_owned());
    }
    Ok(host.to_ascii_lowercase())
}

impl OriginUrl {
    /// Returns `host` or `host:port`, as in a URL.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == default_port(self.secure) {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

impl fmt::Display for OriginUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, shown) in [
            ("http://Example.com", "http://example.com"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            ("localhost:9000", "http://localhost:9000"),
            ("http://[::1]:81", "http://[::1]:81"),
            ("HTTP://a:80", "http://a"),
            ("HTTPS://A", "https://a"),
            ("https://a:80", "https://a:80"),
            ("https://[::1]:443/", "https://[::1]"),
        ] {
            assert_eq!(
                text.parse::<OriginUrl>().unwrap().to_string(),
                shown,
                "{text}"
            );
        }
    }

    #[test]
    fn words_behind_an_origin() {
        let entry = |text: &str| text.parse::<OriginEntry>();
        let full = entry("http://a:81 weight=3  connections=20").unwrap();
        assert_eq!(
            (full.url.port, full.weight, full.connections),
            (81, 3, Some(20))
        );
        let bare = entry("a").unwrap();
        assert_eq!((bare.weight, bare.connections), (1, None));
        for wrong in [
            "",
            "a weight",
            "a weight=0",
            "a connections=x",
            "a b",
            "a/b weight=1",
        ] {
            assert!(entry(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        for text in [
            "",
            "http://",
            "ftp://a",
            "http://a/b",
            "http://a?b",
            "http://u:p@a",
            "http://a:0x",
            "http://a:99999",
            "http://[::1",
            "http://[x]",
            "http://a b",
        ] {
            assert!(text.parse::<OriginUrl>().is_err(), "{text}");
        }
    }
}
