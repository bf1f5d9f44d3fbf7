//! A request head, as far as the origin uses it.

use crate::knobs::{self, Knobs};

/// Greatest number of header fields that the origin reads.
const FIELDS: usize = 64;
/// Greatest length of a head in bytes.
pub(super) const HEAD_MAX: usize = 64 << 10;

/// Parts of a request that the origin uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) head: bool,
    pub(super) target: Target,
    /// Host to which the body belongs.
    pub(super) host: Vec<u8>,
    pub(super) range: Option<Range>,
    pub(super) if_range: Option<Vec<u8>>,
    pub(super) if_none_match: Option<Vec<u8>>,
    pub(super) body: Body,
    pub(super) close: bool,
}

/// Requested resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Object(Knobs),
    Counters,
    Unknown,
}

/// The requested byte range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    From(u64, Option<u64>),
    Last(u64),
}

/// Form of the request's own body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Length(u64),
    Chunked,
}

/// Parses a head. Returns the request and the length of its head; `None` if more bytes are needed.
pub(super) fn parse(input: &[u8]) -> Result<Option<(Request, usize)>, &'static str> {
    let mut slots = [httparse::EMPTY_HEADER; FIELDS];
    let mut head = httparse::Request::new(&mut slots);
    let length = match head.parse(input) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() > HEAD_MAX => return Err("head too long"),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err("head not understood"),
    };
    let (host_in_target, path) = split_target(head.path.unwrap_or("/").as_bytes());
    let mut request = Request {
        head: head.method == Some("HEAD"),
        target: target(path),
        host: host_in_target.unwrap_or_default().to_vec(),
        range: None,
        if_range: None,
        if_none_match: None,
        body: Body::Length(0),
        close: head.version == Some(0),
    };
    for field in head.headers.iter() {
        request.field(field.name, field.value)?;
    }
    if let Target::Object(knobs) = &request.target {
        request.host = knobs.body_host(&request.host);
    }
    Ok(Some((request, length)))
}

impl Request {
    fn field(&mut self, name: &str, value: &[u8]) -> Result<(), &'static str> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match name.len() {
            6 if is("cookie") => self.selected_by(value, |knobs| knobs.cookie),
            4 if is("host") && self.host.is_empty() => self.host = value.to_vec(),
            5 if is("range") => self.range = range(value),
            8 if is("if-range") => self.if_range = Some(value.to_vec()),
            10 if is("connection") => {
                self.close |= value.to_ascii_lowercase().windows(5).any(|w| w == b"close");
            }
            10 if is("bench-want") => self.want(value).ok_or("Bench-Want: version and size")?,
            13 if is("if-none-match") => self.if_none_match = Some(value.to_vec()),
            14 if is("content-length") => {
                let length = knobs::number(value.trim_ascii()).ok_or("bad Content-Length")?;
                self.body = Body::Length(length);
            }
            15 if is("accept-language") => self.selected_by(value, |knobs| knobs.vary),
            17 if is("transfer-encoding") => self.body = Body::Chunked,
            _ => {}
        }
        Ok(())
    }

    /// Replaces version and size of the URL with the version and the size in a `Bench-Want` field.
    fn want(&mut self, value: &[u8]) -> Option<()> {
        let mut words = value.split(|b| *b == b' ').filter(|w| !w.is_empty());
        let version = u32::try_from(knobs::number(words.next()?)?).ok()?;
        let size = knobs::number(words.next()?)?;
        if let Target::Object(knobs) = &mut self.target {
            knobs.version = version;
            knobs.size = size;
        }
        Some(())
    }

    /// If the object varies by this field, selects a different version for each language or cookie.
    fn selected_by(&mut self, value: &[u8], varies: fn(&Knobs) -> bool) {
        if let Target::Object(knobs) = &mut self.target
            && varies(knobs)
        {
            knobs.version = variant_version(knobs.version, value);
        }
    }
}

/// The version of a varying object for one value of the field that selects the variant.
pub(crate) fn variant_version(version: u32, value: &[u8]) -> u32 {
    version.wrapping_add((foxy_base::hash64(2, value) as u32) << 8)
}

/// Splits a target into the host, if the target is absolute, and path with query.
fn split_target(target: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let Some(rest) = target.strip_prefix(b"http://") else {
        return (None, target);
    };
    let slash = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
    (Some(&rest[..slash]), &rest[slash..])
}

fn target(path: &[u8]) -> Target {
    if path == b"/__counters" {
        return Target::Counters;
    }
    Knobs::parse(path).map_or(Target::Unknown, Target::Object)
}

fn range(value: &[u8]) -> Option<Range> {
    let spec = value.strip_prefix(b"bytes=")?;
    let dash = spec.iter().position(|b| *b == b'-')?;
    let (from, to) = (&spec[..dash], &spec[dash + 1..]);
    match (from, to) {
        ([], last) => Some(Range::Last(knobs::number(last)?)),
        (from, []) => Some(Range::From(knobs::number(from)?, None)),
        (from, to) => {
            let (from, to) = (knobs::number(from)?, knobs::number(to)?);
            (from <= to).then_some(Range::From(from, Some(to)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_matters() {
        let text = b"GET http://127.0.0.9:80/o/5?s=10&v=1 HTTP/1.1\r\nHost: x\r\n\
            Range: bytes=2-\r\nBench-Want: 3 20\r\nIf-None-Match: \"a\"\r\n\
            Connection: keep-alive, Close\r\n\r\nrest";
        let (r, length) = parse(text).unwrap().unwrap();
        assert_eq!(length, text.len() - 4);
        assert_eq!(r.host, b"127.0.0.9");
        assert_eq!(
            r.target,
            Target::Object(Knobs {
                version: 3,
                ..Knobs::new(5, 20)
            })
        );
        assert_eq!(r.range, Some(Range::From(2, None)));
        assert!(r.close && !r.head);
        assert_eq!(parse(&text[..40]), Ok(None));
        assert!(parse(b"nonsense\r\n\r\n").is_err());
    }

    #[test]
    fn ranges() {
        assert_eq!(range(b"bytes=-5"), Some(Range::Last(5)));
        assert_eq!(range(b"bytes=1-2"), Some(Range::From(1, Some(2))));
        for bad in [
            "bytes=2-1",
            "bytes=1-2,4-5",
            "lines=1-2",
            "bytes=-",
            "bytes=",
        ] {
            assert_eq!(range(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn languages_are_versions_of_varying_objects_only() {
        let version = |url: &str, language: &str| {
            let text = format!("GET {url} HTTP/1.1\r\nAccept-Language: {language}\r\n\r\n");
            match parse(text.as_bytes()).unwrap().unwrap().0.target {
                Target::Object(knobs) => knobs.version,
                other => panic!("{other:?}"),
            }
        };
        assert_ne!(version("/o/1?s=1&y=1", "de"), version("/o/1?s=1&y=1", "en"));
        assert_eq!(version("/o/1?s=1", "de"), 0);
    }
}
