//! Facts from a URL: the ids of object and server, the class, and the presence of a query.

use foxy_base::hash64;

use crate::{Class, Flags, Request};

/// Fills in object, server, class and the query flag from a logged URL (an absolute URL, the `host:port` of a
/// tunnel, or a path).
pub(super) fn describe(url: &[u8], request: &mut Request) {
    let url = url.split(|b| *b == b'#').next().unwrap_or(url);
    request.object = hash64(0, url);
    request.server = host(url).map_or(0, short_hash);
    request.class = Class::from_path(path(url));
    let dynamic = url.contains(&b'?') || contains(url, b"cgi_bin") || contains(url, b"cgi-bin");
    request.flags = request.flags.with_if(Flags::QUERY, dynamic);
}

/// A 32-bit id for a name. It is never 0.
pub(super) fn short_hash(name: &[u8]) -> u32 {
    (hash64(1, name) as u32).max(1)
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).any(|window| window == what)
}

/// Host and port of an absolute URL or of a tunnel's `host:port`.
fn host(url: &[u8]) -> Option<&[u8]> {
    if url.starts_with(b"/") {
        return None;
    }
    let after = after_scheme(url);
    let end = after
        .iter()
        .position(|b| matches!(b, b'/' | b'?'))
        .unwrap_or(after.len());
    Some(&after[..end])
}

fn path(url: &[u8]) -> &[u8] {
    if url.starts_with(b"/") {
        return url;
    }
    let after = after_scheme(url);
    let start = after.iter().position(|b| matches!(b, b'/' | b'?'));
    start.map_or(b"/", |at| &after[at..])
}

fn after_scheme(url: &[u8]) -> &[u8] {
    let at = url.windows(3).position(|window| window == b"://");
    at.map_or(url, |at| &url[at + 3..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_paths() {
        for (url, wanted_host, wanted_path) in [
            (&b"http://h:80/a/b"[..], Some(&b"h:80"[..]), &b"/a/b"[..]),
            (b"http://h", Some(b"h"), b"/"),
            (b"h:443", Some(b"h:443"), b"/"),
            (b"/a?u=http://x/", None, b"/a?u=http://x/"),
        ] {
            assert_eq!(
                (host(url), path(url)),
                (wanted_host, wanted_path),
                "{url:?}"
            );
        }
    }

    #[test]
    fn fragments_do_not_count_and_queries_do() {
        let (mut a, mut b) = (Request::default(), Request::default());
        describe(b"http://h/x#1", &mut a);
        describe(b"http://h/x", &mut b);
        assert_eq!(a, b);
        describe(b"http://h/x?1", &mut b);
        assert!(b.flags.has(Flags::QUERY) && a.object != b.object && a.server == b.server);
    }
}
