//! The origin's URLs: `/o/<id>?s=<size>&...`. The URL contains the properties of the object, and the faults
//! that the origin makes while it sends the object. So the origin keeps no state.

use std::io::Write;

/// Behaviour that a URL of the origin selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// Object number.
    pub id: u64,
    /// `s`: length of the body in bytes.
    pub size: u64,
    /// `v`: version. A request field `Bench-Want: <version> <size>` overrides version and size.
    pub version: u32,
    /// `h`: server number, if the host does not identify the server (reverse mode). Then the body belongs to
    /// the host `h<number>`.
    pub server: Option<u32>,
    /// `m`: `max-age` in seconds.
    pub max_age: u32,
    /// `n=1`: `no-store`.
    pub no_store: bool,
    /// `p=1`: `private`.
    pub private: bool,
    /// `e=0`: no `ETag`.
    pub etag: bool,
    /// `y=1`: `Vary: Accept-Language`; then the language also changes the version of the body.
    pub vary: bool,
    /// `k=1`: `Vary: Cookie`; then the cookie also changes the version of the body.
    pub cookie: bool,
    /// `c=1`: chunked instead of `Content-Length`.
    pub chunked: bool,
    /// `l`: time before the head, in ms. Without it, the origin's own distribution applies.
    pub latency_ms: Option<u32>,
    /// `b`: greatest number of bytes per second. Without it, the origin's own limit applies.
    pub bandwidth: Option<u64>,
    /// `d`: the origin closes the connection after this many body bytes.
    pub die_after: Option<u64>,
    /// `f`: the origin announces this many bytes more than it sends, and then closes the connection.
    pub overstate: u64,
    /// `st`: status; 200 by default.
    pub status: u16,
    /// `t`: number of a tag, sent as `Surrogate-Key: tag<number>`.
    pub tag: Option<u32>,
}

/// `max-age` in seconds if the URL does not contain it: one day.
pub const MAX_AGE: u32 = 86_400;

impl Knobs {
    /// A cacheable object with default settings.
    #[must_use]
    pub const fn new(id: u64, size: u64) -> Self {
        Self {
            id,
            size,
            version: 0,
            server: None,
            max_age: MAX_AGE,
            no_store: false,
            private: false,
            etag: true,
            vary: false,
            cookie: false,
            chunked: false,
            latency_ms: None,
            bandwidth: None,
            die_after: None,
            overstate: 0,
            status: 200,
            tag: None,
        }
    }

    /// Parses path and query; `None` if they do not have the form `/o/<id>?<name>=<number>&...`, if a name is
    /// unknown, or if a number is not permitted for its name.
    #[must_use]
    pub fn parse(target: &[u8]) -> Option<Self> {
        let rest = target.strip_prefix(b"/o/")?;
        let question = rest.iter().position(|b| *b == b'?').unwrap_or(rest.len());
        let mut knobs = Self::new(number(&rest[..question])?, 0);
        for pair in rest
            .get(question + 1..)
            .unwrap_or_default()
            .split(|b| *b == b'&')
        {
            let equals = pair.iter().position(|b| *b == b'=').unwrap_or(pair.len());
            let value = number(pair.get(equals + 1..)?)?;
            knobs.set(&pair[..equals], value)?;
        }
        Some(knobs)
    }

    fn set(&mut self, name: &[u8], value: u64) -> Option<()> {
        let small = || u32::try_from(value).ok();
        match name {
            b"s" => self.size = value,
            b"v" => self.version = small()?,
            b"h" => self.server = Some(small()?),
            b"m" => self.max_age = small()?,
            b"n" => self.no_store = value != 0,
            b"p" => self.private = value != 0,
            b"e" => self.etag = value != 0,
            b"y" => self.vary = value != 0,
            b"k" => self.cookie = value != 0,
            b"c" => self.chunked = value != 0,
            b"l" => self.latency_ms = Some(small()?),
            b"b" => self.bandwidth = Some(value),
            b"d" => self.die_after = Some(value),
            b"f" => self.overstate = value,
            b"st" => {
                let status = u16::try_from(value).ok();
                self.status = status.filter(|s| (200..600).contains(s))?;
            }
            b"t" => self.tag = Some(small()?),
            _ => return None,
        }
        Some(())
    }

    /// Appends path and query. The query contains only values that differ from the defaults.
    pub fn write(&self, out: &mut Vec<u8>) {
        let plain = Self::new(self.id, self.size);
        out.extend_from_slice(b"/o/");
        push_number(out, self.id);
        out.extend_from_slice(b"?s=");
        push_number(out, self.size);
        let optional: [(&str, Option<u64>); 15] = [
            ("v", (self.version != 0).then_some(u64::from(self.version))),
            ("h", self.server.map(u64::from)),
            (
                "m",
                (self.max_age != plain.max_age).then_some(u64::from(self.max_age)),
            ),
            ("n", self.no_store.then_some(1)),
            ("p", self.private.then_some(1)),
            ("e", (!self.etag).then_some(0)),
            ("y", self.vary.then_some(1)),
            ("k", self.cookie.then_some(1)),
            ("c", self.chunked.then_some(1)),
            ("l", self.latency_ms.map(u64::from)),
            ("b", self.bandwidth),
            ("d", self.die_after),
            ("f", (self.overstate != 0).then_some(self.overstate)),
            ("st", (self.status != 200).then_some(u64::from(self.status))),
            ("t", self.tag.map(u64::from)),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                out.push(b'&');
                out.extend_from_slice(name.as_bytes());
                out.push(b'=');
                push_number(out, value);
            }
        }
    }

    /// The host to which the body belongs: `h<number>` if the URL names a server, otherwise `host` without
    /// its port.
    #[must_use]
    pub fn body_host(&self, host: &[u8]) -> Vec<u8> {
        match self.server {
            Some(server) => format!("h{server}").into_bytes(),
            None => without_port(host).to_ascii_lowercase(),
        }
    }
}

/// Returns a host without `:port`. Brackets of an IPv6 address stay.
#[must_use]
pub fn without_port(host: &[u8]) -> &[u8] {
    match host.iter().rposition(|b| *b == b':') {
        Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => &host[..colon],
        _ => host,
    }
}

/// Parses a decimal number.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |sum, b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

pub(crate) fn push_number(out: &mut Vec<u8>, value: u64) {
    let mut buffer = itoa::Buffer::new();
    // Writing into a Vec cannot fail.
    let _ = out.write_all(buffer.format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_it_reads() {
        let mut text = Vec::new();
        Knobs::new(7, 4096).write(&mut text);
        assert_eq!(text, b"/o/7?s=4096");
        let all = Knobs {
            version: 3,
            server: Some(9),
            max_age: 1,
            no_store: true,
            private: true,
            etag: false,
            vary: true,
            cookie: true,
            chunked: true,
            latency_ms: Some(5),
            bandwidth: Some(1000),
            die_after: Some(0),
            overstate: 4,
            status: 404,
            tag: Some(2),
            ..Knobs::new(1, 2)
        };
        for knobs in [all, Knobs::new(0, 0)] {
            let mut text = Vec::new();
            knobs.write(&mut text);
            assert_eq!(Knobs::parse(&text), Some(knobs), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn refuses_the_rest() {
        for bad in [
            "/",
            "/o/",
            "/o/x?s=1",
            "/o/1?s=",
            "/o/1?s",
            "/o/1?zz=1",
            "/o/1?st=99",
        ] {
            assert_eq!(Knobs::parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(Knobs::parse(b"/o/5").map(|k| k.size), None);
    }

    #[test]
    fn hosts() {
        assert_eq!(without_port(b"127.0.0.1:80"), b"127.0.0.1");
        assert_eq!(without_port(b"[::1]"), b"[::1]");
        assert_eq!(without_port(b"[::1]:80"), b"[::1]");
        let knobs = Knobs {
            server: Some(4),
            ..Knobs::new(1, 1)
        };
        assert_eq!(knobs.body_host(b"x"), b"h4");
    }
}
