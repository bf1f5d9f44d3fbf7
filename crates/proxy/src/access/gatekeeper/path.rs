//! Converts paths and hosts of requests to the form that access rules are compared with.

use std::net::{IpAddr, Ipv4Addr};

use foxy_base::rule;
use foxy_http1::Escapes;

/// Returns the IP address if the host is an IPv4 address as text. A dot at the end makes no difference.
pub(crate) fn literal(host: &[u8]) -> Option<IpAddr> {
    if !host.first()?.is_ascii_digit() {
        return None;
    }
    let host = host.strip_suffix(b".").unwrap_or(host);
    let address: Ipv4Addr = std::str::from_utf8(host).ok()?.parse().ok()?;
    Some(address.into())
}

/// Writes the path of a target, without its query, in the form that access rules are compared with. Needless
/// percent escapes are decoded, the segments `.` and `..` are resolved, and empty segments are left out. The
/// reason is that some origins resolve paths in the same way. If rules saw the original form, a client could
/// reach a denied path by another spelling of the path.
pub fn plain_path(target: &[u8], out: &mut Vec<u8>) {
    let end = target.iter().position(|b| matches!(b, b'?' | b'#'));
    let mut normal = Vec::with_capacity(target.len());
    Escapes::Normal.write(&target[..end.unwrap_or(target.len())], &mut normal);
    out.clear();
    let mut segments = normal.split(|b| *b == b'/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        let dots = rule!(
            "access: a path is judged without its dots",
            dots(segment),
            0
        );
        match dots {
            0 if segment.is_empty() => {}
            0 => {
                out.push(b'/');
                out.extend_from_slice(segment);
                continue;
            }
            1 => {}
            _ => {
                let up = out.iter().rposition(|b| *b == b'/');
                out.truncate(up.unwrap_or(0));
            }
        }
        if last {
            out.push(b'/');
        }
    }
    if out.is_empty() {
        out.push(b'/');
    }
}

/// Returns the number of dots if the segment is `.` or `..`, with the dots written as such or as `%2e`.
/// Returns 0 for other segments.
fn dots(segment: &[u8]) -> usize {
    let (mut rest, mut count) = (segment, 0);
    loop {
        rest = match rest {
            [] => return if count <= 2 { count } else { 0 },
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return 0,
        };
        count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_for_what_origins_may_take_for_one_path() {
        for (target, plain) in [
            ("/", "/"),
            ("", "/"),
            ("/admin", "/admin"),
            ("/admin/", "/admin/"),
            ("/admin?x=/../y", "/admin"),
            ("/public/../admin", "/admin"),
            ("/public/%2e%2E/admin/x", "/admin/x"),
            ("/public/.%2e/admin", "/admin"),
            ("/../../admin", "/admin"),
            ("//admin", "/admin"),
            ("/./admin", "/admin"),
            ("/x//y/./z/", "/x/y/z/"),
            ("/%61dmin", "/admin"),
            ("/adm%69n/%7euser", "/admin/~user"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/a/...", "/a/..."),
        ] {
            let mut out = Vec::new();
            plain_path(target.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), plain, "{target}");
        }
    }
}
