//! The origin's answer: its status, its head, and the part of the body that follows.

use crate::body::{BodyKey, Identity};
use crate::knobs::{Knobs, push_number};

use super::request::{Range, Request};

/// The answer to a request for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Offset of the first body byte.
    pub(super) from: u64,
    /// Number of body bytes.
    pub(super) length: u64,
    pub(super) key: BodyKey,
    pub(super) chunked: bool,
    /// The origin cuts the body after this many bytes.
    pub(super) die_after: Option<u64>,
    /// True if the origin closes the connection after the answer.
    pub(super) close: bool,
}

/// Writes the head of the answer to `request` for the object of `knobs`.
pub(super) fn write_head(
    request: &Request,
    knobs: &Knobs,
    date: &str,
    out: &mut Vec<u8>,
) -> Answer {
    let identity = Identity {
        host: &request.host,
        id: knobs.id,
        version: knobs.version,
        size: knobs.size,
    };
    let (status, from, length) = selected(request, knobs);
    status_line(out, status);
    text(out, &["Date: ", date, "\r\n"]);
    if status != 304 {
        text(out, &["Content-Type: application/octet-stream\r\n"]);
    }
    let has_body = !matches!(status, 204 | 304);
    if has_body && knobs.chunked {
        text(out, &["Transfer-Encoding: chunked\r\n"]);
    } else if has_body {
        field(out, "Content-Length: ", length + knobs.overstate);
    }
    if status == 206 {
        content_range(out, Some((from, length)), knobs.size);
    } else if status == 416 {
        content_range(out, None, knobs.size);
    } else {
        text(out, &["Accept-Ranges: bytes\r\n"]);
    }
    describe(out, knobs);
    text(out, &["Bench-Object: "]);
    out.extend_from_slice(identity.host);
    for number in [identity.id, u64::from(identity.version), identity.size] {
        out.push(b' ');
        push_number(out, number);
    }
    text(out, &["\r\n\r\n"]);
    Answer {
        status,
        from,
        length: if request.head || !has_body { 0 } else { length },
        key: identity.key(),
        chunked: knobs.chunked && has_body && !request.head,
        die_after: knobs.die_after,
        close: request.close || knobs.overstate > 0,
    }
}

/// Appends the caching fields that the knobs define.
fn describe(out: &mut Vec<u8>, knobs: &Knobs) {
    if knobs.no_store {
        text(out, &["Cache-Control: no-store\r\n"]);
    } else {
        text(
            out,
            &[
                "Cache-Control: ",
                if knobs.private { "private, " } else { "" },
            ],
        );
        field(out, "max-age=", u64::from(knobs.max_age));
    }
    if knobs.etag {
        text(out, &["ETag: "]);
        out.extend_from_slice(&etag(knobs));
        text(out, &["\r\n"]);
    }
    if knobs.vary {
        text(out, &["Vary: Accept-Language\r\n"]);
    }
    if knobs.cookie {
        text(out, &["Vary: Cookie\r\n"]);
    }
    if let Some(tag) = knobs.tag {
        field(out, "Surrogate-Key: tag", u64::from(tag));
    }
}

/// Returns the status, the first byte and the number of bytes, after conditions and ranges were applied.
fn selected(request: &Request, knobs: &Knobs) -> (u16, u64, u64) {
    let whole = (knobs.status, 0, knobs.size);
    if knobs.status != 200 {
        return whole;
    }
    let etag = etag(knobs);
    if knobs.etag
        && request
            .if_none_match
            .as_ref()
            .is_some_and(|list| matches(list, &etag))
    {
        return (304, 0, 0);
    }
    let Some(range) = request.range else {
        return whole;
    };
    if request
        .if_range
        .as_ref()
        .is_some_and(|tag| !knobs.etag || *tag != etag)
    {
        return whole;
    }
    let (from, to) = match range {
        Range::From(from, to) => (from, to.map_or(knobs.size, |to| (to + 1).min(knobs.size))),
        Range::Last(n) => (knobs.size.saturating_sub(n), knobs.size),
    };
    if from >= to {
        (416, 0, 0)
    } else {
        (206, from, to - from)
    }
}

fn etag(knobs: &Knobs) -> Vec<u8> {
    format!("\"{}-{}\"", knobs.version, knobs.size).into_bytes()
}

/// Weak comparison with a list of entity tags.
fn matches(list: &[u8], etag: &[u8]) -> bool {
    list.split(|b| *b == b',')
        .map(<[u8]>::trim_ascii)
        .any(|tag| tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == etag)
}

fn status_line(out: &mut Vec<u8>, status: u16) {
    let reason = match status {
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        304 => "Not Modified",
        404 => "Not Found",
        416 => "Range Not Satisfiable",
        503 => "Service Unavailable",
        _ => "Status",
    };
    text(out, &["HTTP/1.1 "]);
    push_number(out, u64::from(status));
    text(out, &[" ", reason, "\r\n"]);
}

fn content_range(out: &mut Vec<u8>, part: Option<(u64, u64)>, size: u64) {
    text(out, &["Content-Range: bytes "]);
    if let Some((from, length)) = part {
        push_number(out, from);
        out.push(b'-');
        push_number(out, from + length - 1);
    } else {
        out.push(b'*');
    }
    field(out, "/", size);
}

fn text(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

fn field(out: &mut Vec<u8>, name: &str, value: u64) {
    text(out, &[name]);
    push_number(out, value);
    text(out, &["\r\n"]);
}

/// Writes an answer that contains no object, such as the counters or an error.
pub(super) fn write_plain(status: u16, kind: &str, body: &[u8], out: &mut Vec<u8>) {
    status_line(out, status);
    text(
        out,
        &["Content-Type: ", kind, "\r\nCache-Control: no-store\r\n"],
    );
    field(out, "Content-Length: ", body.len() as u64);
    text(out, &["\r\n"]);
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(head: &str) -> (Answer, String) {
        let (request, _) = super::super::request::parse(head.as_bytes())
            .unwrap()
            .unwrap();
        let super::super::request::Target::Object(knobs) = request.target else {
            panic!()
        };
        let mut out = Vec::new();
        let answer = write_head(&request, &knobs, "now", &mut out);
        (answer, String::from_utf8(out).unwrap())
    }

    #[test]
    fn whole_partial_and_not_modified() {
        let get = |fields: &str| {
            answer(&format!(
                "GET /o/1?s=10 HTTP/1.1\r\nHost: h\r\n{fields}\r\n"
            ))
        };
        let (a, head) = get("");
        assert_eq!((a.status, a.from, a.length), (200, 0, 10));
        assert!(head.contains("Content-Length: 10\r\n") && head.contains("ETag: \"0-10\"\r\n"));
        assert!(head.contains("Bench-Object: h 1 0 10\r\n"));
        let (a, head) = get("Range: bytes=-3\r\n");
        assert_eq!((a.status, a.from, a.length), (206, 7, 3));
        assert!(head.contains("Content-Range: bytes 7-9/10\r\n"));
        assert_eq!(get("Range: bytes=2-99\r\n").0.length, 8);
        assert_eq!(get("Range: bytes=10-\r\n").0.status, 416);
        assert_eq!(get("Range: bytes=1-\r\nIf-Range: \"x\"\r\n").0.status, 200);
        assert_eq!(get("If-None-Match: \"x\", W/\"0-10\"\r\n").0.status, 304);
        assert_eq!(get("If-None-Match: \"x\"\r\n").0.status, 200);
        assert_eq!(
            get("Bench-Want: 2 9\r\nIf-None-Match: \"0-10\"\r\n")
                .0
                .length,
            9
        );
    }

    #[test]
    fn knobs_show_in_the_head() {
        let (a, head) = answer("HEAD /o/1?s=10&c=1&n=1&e=0&y=1&t=4 HTTP/1.0\r\n\r\n");
        assert_eq!((a.length, a.close, a.chunked), (0, true, false));
        for part in [
            "Transfer-Encoding: chunked",
            "no-store",
            "Vary: Accept",
            "Surrogate-Key: tag4",
        ] {
            assert!(head.contains(part), "{part} in {head}");
        }
        assert!(!head.contains("ETag"));
        let (a, head) = answer("GET /o/1?s=10&f=5&p=1&m=7 HTTP/1.1\r\n\r\n");
        assert!(a.close && head.contains("Content-Length: 15"));
        assert!(head.contains("private, max-age=7\r\n"));
    }
}
