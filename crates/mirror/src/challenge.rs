//! The servers to which a registry of images sends its clients: a token service, and other servers for blobs
//! (layers and configurations of images).

use serde::Deserialize;

use crate::Upstream;

/// Lifetime in seconds of a token that does not state its own lifetime (the protocol's default).
const TOKEN_SECONDS: u64 = 60;
/// Largest number of bytes of a token.
const TOKEN_MAX: usize = 16 << 10;

/// The authorization that a registry requires before it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// A token from a token service.
    Bearer {
        /// The server of the token service.
        server: Upstream,
        /// Path and query at the token service, without the scope.
        target: String,
    },
    /// User and password.
    Basic,
}

/// Reads a `WWW-Authenticate` value. Returns `None` if the value requires neither a token nor a password.
#[must_use]
pub fn challenge(value: &[u8]) -> Option<Challenge> {
    let text = std::str::from_utf8(value).ok()?;
    let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (server, target) = parse_location(None, parameter(rest, "realm")?.as_bytes())?;
    let mut target = target;
    if let Some(service) = parameter(rest, "service") {
        push_parameter(&mut target, "service", service);
    }
    Some(Challenge::Bearer { server, target })
}

/// Appends a parameter to the query of `target`.
pub fn push_parameter(target: &mut String, name: &str, value: &str) {
    target.push(if target.contains('?') { '&' } else { '?' });
    target.push_str(name);
    target.push('=');
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                target.push(char::from(byte));
            }
            _ => {
                let digit = |half: u8| char::from(b"0123456789ABCDEF"[usize::from(half)]);
                target.extend(['%', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
}

/// Returns the value of a parameter, which may have quotes.
fn parameter<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = text;
    loop {
        let (key, after) = rest.split_once('=')?;
        let value_and_rest = after.strip_prefix('"');
        let (value, next) = match value_and_rest {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if key.trim_matches([' ', ',']).eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = next;
    }
}

/// Splits a URL that the server `from` sent into its server and its path with query. The URL must be
/// absolute, or must begin with a single `/`. Without `from`, it must be absolute. Returns `None` for all
/// other URLs, and for URLs with white space, control characters, `\`, `"`, `<`, `>` or characters outside
/// ASCII.
#[must_use]
pub fn parse_location(from: Option<&Upstream>, url: &[u8]) -> Option<(Upstream, String)> {
    let text = std::str::from_utf8(url).ok()?;
    let plain = |c: char| c.is_ascii_graphic() && !"\\\"<>".contains(c);
    if !text.chars().all(plain) {
        return None;
    }
    let text = text.split('#').next()?;
    if text.starts_with('/') && !text.starts_with("//") {
        return Some((from?.root(), text.to_owned()));
    }
    let (scheme, rest) = text.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let server = format!("{scheme}://{}", &rest[..end]).parse().ok()?;
    let target = match &rest[end..] {
        path if path.starts_with('/') => path.to_owned(),
        query => format!("/{query}"),
    };
    Some((server, target))
}

/// A token and its lifetime.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// The text that the registry expects after `Bearer `.
    pub text: String,
    /// Lifetime of the token in seconds.
    pub seconds: u64,
}

#[derive(Deserialize)]
struct Written {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// Reads the token from an answer of a token service.
#[must_use]
pub fn token(answer: &[u8]) -> Option<Token> {
    let written: Written = serde_json::from_slice(answer).ok()?;
    let text = written.token.or(written.access_token)?;
    // The token becomes part of a head, so its characters are checked.
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/=".contains(&b);
    let good = !text.is_empty() && text.len() <= TOKEN_MAX && text.bytes().all(plain);
    good.then(|| Token {
        text,
        seconds: written.expires_in.unwrap_or(TOKEN_SECONDS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_in_their_forms() {
        let read = |text: &str| challenge(text.as_bytes());
        let bearer = |server: &str, target: &str| {
            Some(Challenge::Bearer {
                server: server.parse().unwrap(),
                target: target.to_owned(),
            })
        };
        for (text, expected) in [
            (
                "Bearer realm=\"https://auth.test/token\",service=\"registry.test\",scope=\"repository:a/b:pull\"",
                bearer("https://auth.test", "/token?service=registry.test"),
            ),
            (
                "bearer scope=\"a,b=c\", realm=\"http://auth.test:81/t?x=1\", service=\"a b\"",
                bearer("http://auth.test:81", "/t?x=1&service=a%20b"),
            ),
            (
                "Bearer realm=\"https://auth.test\"",
                bearer("https://auth.test", "/"),
            ),
            ("Basic realm=\"x\"", Some(Challenge::Basic)),
            ("Bearer service=\"x\"", None),
            ("Bearer realm=\"/token\"", None),
            ("Bearer realm=\"ftp://auth.test/\"", None),
            ("Bearer realm=\"https://u:p@auth.test/\"", None),
            ("Negotiate", None),
            ("", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn locations_of_redirects() {
        let from: Upstream = "https://a.test/x".parse().unwrap();
        let at = |url: &str| {
            let (server, target) = parse_location(Some(&from), url.as_bytes())?;
            Some((server.to_string(), target))
        };
        let some = |server: &str, target: &str| Some((server.to_owned(), target.to_owned()));
        assert_eq!(at("/b?c#d"), some("https://a.test", "/b?c"));
        assert_eq!(
            at("https://B.test:8443?q"),
            some("https://b.test:8443", "/?q")
        );
        assert_eq!(
            at("http://b.test/p?sig=a%2Fb&x"),
            some("http://b.test", "/p?sig=a%2Fb&x")
        );
        for wrong in [
            "b",
            "//b.test/x",
            "https://b.test/ x",
            "https://b\r\nx: y",
            "file:///etc",
        ] {
            assert_eq!(at(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn tokens_that_fit_into_a_head() {
        let read = |text: &str| token(text.as_bytes()).map(|token| (token.text, token.seconds));
        assert_eq!(
            read("{\"token\":\"a.b-c\",\"expires_in\":300}"),
            Some(("a.b-c".into(), 300))
        );
        assert_eq!(read("{\"access_token\":\"x\"}"), Some(("x".into(), 60)));
        for wrong in [
            "{}",
            "{\"token\":\"\"}",
            "{\"token\":\"a\\r\\nX: y\"}",
            "[]",
            "x",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
