//! The head of an answer of the upstream (or of another server of the registry), in the form that the cache
//! gets. Freshness follows from the class of the URL (artefact, index document or other), and redirects lead
//! to the mirror.

use foxy_base::eq_name;

use crate::{Kind, Mirror, MirrorTarget, etag};

/// The values that rewriting writes into an index document and its ETag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Scheme and authority by which clients reach Foxy.
    pub base: String,
    /// A hash of the values on which the rewriting depends (see [`Mirror::mark`]).
    pub mark: String,
}

/// The head of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status of the answer.
    pub status: u16,
    /// Names and values of the fields, with line ends.
    pub lines: Vec<u8>,
    /// Set if a redirect led to a host that the mirror does not list. The answer is then an error.
    pub unlisted: Option<Unlisted>,
}

/// A redirect to a host that the mirror does not list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unlisted;

/// Fields that concern only the upstream's connection, users or caches.
const DROPPED: &[&str] = &[
    "alt-svc",
    "nel",
    "report-to",
    "set-cookie",
    "strict-transport-security",
];

/// Fields about freshness and selection. They are dropped if the class of the URL decides about freshness.
const DECIDED: &[&str] = &[
    "age",
    "cache-control",
    "cdn-cache-control",
    "date",
    "expires",
    "foxy-cache-control",
    "pragma",
    "surrogate-control",
    "vary",
];

/// Fields that describe the bytes before rewriting.
const OF_BYTES: &[&str] = &[
    "accept-ranges",
    "content-digest",
    "content-encoding",
    "content-md5",
    "digest",
    "repr-digest",
    "x-goog-hash",
];

/// Converts the fields of an upstream's answer into the head that the cache gets. Fields that delimit the
/// message (framing) stay. `fresh` limits the lifetime that the class determines, in seconds.
pub fn answer<'a>(
    mirror: &Mirror,
    target: MirrorTarget,
    document: Option<&Document>,
    (status, fresh): (u16, Option<u32>),
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> Answer {
    let kind = mirror.class(target.class).kind;
    let kind = fresh.map_or(kind, |seconds| kind.at_most(seconds));
    let has = |list: &[&str], name: &[u8]| list.iter().any(|own| eq_name(name, own.as_bytes()));
    let mut answer = Answer {
        // A stored response may be served in place of an error only if the status is 500, 502, 503 or 504. So
        // 429, 501, and the statuses from 505 on become 503.
        status: match status {
            429 | 505..=599 | 501 => 503,
            _ => status,
        },
        lines: Vec::new(),
        unlisted: None,
    };
    let whole = matches!(status, 200 | 206 | 304);
    for (name, value) in fields {
        if has(DROPPED, name) || kind != Kind::Pass && has(DECIDED, name) {
            continue;
        }
        if document.is_some() && whole && has(OF_BYTES, name) {
            continue;
        }
        let own = match document {
            Some(document) if eq_name(name, b"etag") => etag::of_mirror(value, &document.mark),
            _ if (300..400).contains(&status) && eq_name(name, b"location") => {
                let path = mirror.path_of(target.server, value);
                if path.is_none() && is_elsewhere(value) {
                    answer.unlisted = Some(Unlisted);
                    answer.status = 502;
                    continue;
                }
                path
            }
            _ => None,
        };
        push(&mut answer.lines, name, own.as_deref().unwrap_or(value));
    }
    if (whole || matches!(status, 301 | 308))
        && let Some(control) = kind.cache_control()
    {
        push(&mut answer.lines, b"Cache-Control", control.as_bytes());
    }
    answer
}

/// Returns true if a URL has a scheme, or begins with `/` or `\`. All other URLs are relative to the
/// document's folder.
fn is_elsewhere(url: &[u8]) -> bool {
    let end = url
        .iter()
        .position(|b| matches!(b, b'/' | b'?' | b'#' | b'\\'));
    let start = &url[..end.unwrap_or(url.len())];
    start.contains(&b':') || matches!(url.first(), Some(b'/' | b'\\'))
}

fn push(lines: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    lines.extend_from_slice(name);
    lines.extend_from_slice(b": ");
    lines.extend_from_slice(value);
    lines.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    fn head(path: &str, document: bool, status: u16, lines: &str) -> (u16, String) {
        let preset = preset("pypi").unwrap();
        let (upstream, hosts) = (preset.upstream.clone(), preset.hosts.clone());
        let mirror = Mirror::new(
            "pypi".into(),
            "/pypi",
            upstream,
            hosts,
            preset.classes.clone(),
        );
        let target = mirror.target(path.as_bytes()).unwrap();
        let document = document.then(|| Document {
            base: "http://foxy".into(),
            mark: "m".into(),
        });
        let fields = lines.lines().map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.as_bytes(), value.as_bytes())
        });
        let answer = answer(&mirror, target, document.as_ref(), (status, None), fields);
        (
            answer.status,
            String::from_utf8(answer.lines)
                .unwrap()
                .replace("\r\n", "\n"),
        )
    }

    #[test]
    fn the_class_decides_about_freshness() {
        let fields = "Cache-Control: no-store\nExpires: 0\nAge: 9\nVary: Accept\nETag: \"a\"\nSet-Cookie: a=b\nX: y\n";
        let (_, got) = head("/pypi/packages/a.whl", false, 200, fields);
        assert_eq!(
            got,
            "ETag: \"a\"\nX: y\nCache-Control: public, max-age=31536000, immutable, stale-if-error=31536000\n"
        );
        let (_, got) = head("/pypi/simple/a/", true, 304, fields);
        assert_eq!(
            got,
            "ETag: \"a;m\"\nX: y\nCache-Control: public, max-age=60, stale-if-error=31536000\n"
        );
        let (_, got) = head("/pypi/other", false, 200, fields);
        assert!(
            got.starts_with("Cache-Control: no-store\nExpires: 0\n") && !got.contains("Cookie")
        );
        let (status, got) = head(
            "/pypi/simple/a/",
            true,
            404,
            "Content-Encoding: gzip\nAge: 1\n",
        );
        assert_eq!((status, &got[..]), (404, "Content-Encoding: gzip\n"));
    }

    #[test]
    fn redirects_stay_on_the_mirror() {
        for (location, expected) in [
            ("/simple/a/", "Location: /pypi/simple/a/\n"),
            (
                "https://files.pythonhosted.org/x",
                "Location: /pypi/~files.pythonhosted.org/x\n",
            ),
            ("../b/", "Location: ../b/\n"),
            ("b?u=http://x", "Location: b?u=http://x\n"),
        ] {
            let (status, got) = head(
                "/pypi/simple/A/",
                false,
                302,
                &format!("Location: {location}\n"),
            );
            assert_eq!((status, &got[..]), (302, expected), "{location}");
        }
        for away in [
            "http://169.254.169.254/x",
            "//evil.test/",
            "http:x",
            "\\\\evil.test",
            "ftp://a/b",
            "/\\evil",
        ] {
            let (status, got) = head(
                "/pypi/simple/A/",
                false,
                302,
                &format!("Location: {away}\n"),
            );
            let stays = got.starts_with("Location: /pypi/");
            assert!(
                (status, &got[..]) == (502, "") || stays,
                "{away}: {status} {got}"
            );
        }
    }

    #[test]
    fn a_registry_that_wants_a_pause_has_failed() {
        for (status, expected) in [
            (429, 503),
            (520, 503),
            (500, 500),
            (503, 503),
            (404, 404),
            (403, 403),
        ] {
            assert_eq!(
                head("/pypi/simple/a/", true, status, "Retry-After: 3\n").0,
                expected
            );
        }
    }
}
