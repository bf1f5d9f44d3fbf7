//! The answers as the load generator sees them: head, framing, the claimed identity of the body, and the
//! cache's statement about whether the answer was a hit.

use crate::knobs;

/// Greatest accepted length of a head in bytes.
pub(crate) const HEAD_MAX: usize = 32 << 10;
const FIELDS: usize = 96;

/// Source of an answer, as the answer states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Served {
    /// From a cache.
    Hit,
    /// From the origin.
    Miss,
    /// The answer does not state its source.
    Unknown,
}

/// The way in which the end of the body is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// The `Bench-Object` field of an answer, in which the origin states the identity of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim<'b> {
    pub(crate) host: &'b [u8],
    pub(crate) id: u64,
    pub(crate) version: u32,
    pub(crate) size: u64,
}

/// The parsed head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head<'b> {
    pub(crate) length: usize,
    pub(crate) status: u16,
    pub(crate) framing: Framing,
    pub(crate) close: bool,
    pub(crate) served: Served,
    pub(crate) claim: Option<Claim<'b>>,
}

/// Parses a head; `None` if more bytes are needed.
pub(crate) fn parse(input: &[u8]) -> Result<Option<Head<'_>>, &'static str> {
    let mut slots = [const { std::mem::MaybeUninit::uninit() }; FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        input,
        &mut slots,
    );
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() > HEAD_MAX => return Err("head too long"),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err("head not understood"),
    };
    let status = response.code.unwrap_or(0);
    let mut head = Head {
        length,
        status,
        framing: Framing::UntilClose,
        close: response.version == Some(0),
        served: Served::Unknown,
        claim: None,
    };
    let mut chunked = false;
    let mut body = None;
    for field in response.headers.iter() {
        head.field(field.name, field.value, &mut chunked, &mut body)?;
    }
    head.framing = match (chunked, body) {
        (true, Some(_)) => return Err("both Content-Length and Transfer-Encoding"),
        (true, None) => Framing::Chunked,
        (false, Some(n)) => Framing::Length(n),
        (false, None) => Framing::UntilClose,
    };
    if matches!(status, 100..=199 | 204 | 304) {
        head.framing = Framing::Length(0);
    }
    head.close |= head.framing == Framing::UntilClose;
    Ok(Some(head))
}

impl<'b> Head<'b> {
    fn field(
        &mut self,
        name: &str,
        value: &'b [u8],
        chunked: &mut bool,
        body: &mut Option<u64>,
    ) -> Result<(), &'static str> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match name.len() {
            3 if is("age") && self.served == Served::Unknown && value != b"0" => {
                self.served = Served::Hit;
            }
            3 if is("via") => {
                if let Some(served) = via(value) {
                    self.served = served;
                }
            }
            7 if is("x-cache") && self.served == Served::Unknown => {
                self.served = x_cache(value);
            }
            10 if is("connection") => {
                self.close |= value.to_ascii_lowercase().windows(5).any(|w| w == b"close");
            }
            12 if is("bench-object") => {
                if self.claim.is_some() {
                    return Err("two Bench-Object fields");
                }
                self.claim = Some(claim(value).ok_or("Bench-Object is garbled")?);
            }
            12 if is("cache-status") => self.served = cache_status(value),
            14 if is("x-cache-status") => self.served = x_cache(value),
            14 if is("content-length") => {
                let n = knobs::number(value).ok_or("bad Content-Length")?;
                if body.is_some_and(|other| other != n) {
                    return Err("two different Content-Length fields");
                }
                *body = Some(n);
            }
            17 if is("transfer-encoding") => {
                *chunked = true;
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err("unknown Transfer-Encoding");
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn claim(value: &[u8]) -> Option<Claim<'_>> {
    let mut words = value.split(|b| *b == b' ');
    let claim = Claim {
        host: words.next()?,
        id: knobs::number(words.next()?)?,
        version: u32::try_from(knobs::number(words.next()?)?).ok()?,
        size: knobs::number(words.next()?)?,
    };
    words.next().is_none().then_some(claim)
}

/// Reads `Cache-Status` (RFC 9211). The answer is a hit if the last member, which belongs to the nearest
/// cache, contains `hit`.
pub(crate) fn cache_status(value: &[u8]) -> Served {
    let last = split_outside_quotes(value, b',').last().unwrap_or_default();
    for parameter in split_outside_quotes(last, b';').skip(1) {
        let parameter = parameter.trim_ascii();
        if parameter == b"hit" || parameter == b"hit=?1" {
            return Served::Hit;
        }
        if parameter.starts_with(b"fwd=") || parameter == b"fwd" {
            return Served::Miss;
        }
    }
    Served::Unknown
}

fn split_outside_quotes(text: &[u8], at: u8) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |b| {
        let ends = *b == at && !quoted;
        if *b == b'"' && !escaped {
            quoted = !quoted;
        }
        escaped = *b == b'\\' && quoted && !escaped;
        ends
    })
}

/// Reads the codes that Traffic Server writes into `Via`: `[cHs f ]`, or `[uScRs f p eN:t cCHi p sS]`. The
/// pair `c?` is the result of Traffic Server's lookup: `H` is a hit on disk, `R` is a hit in memory.
fn via(value: &[u8]) -> Option<Served> {
    let start = value.iter().rposition(|b| *b == b'[')? + 1;
    let client = if value.get(start) == Some(&b'u') {
        2
    } else {
        0
    };
    match value.get(start + client..start + client + 2)? {
        [b'c', b'H' | b'R'] => Some(Served::Hit),
        [b'c', _] => Some(Served::Miss),
        _ => None,
    }
}

/// Reads `X-Cache: HIT from proxy`, `X-Cache-Status: MISS` and similar fields.
fn x_cache(value: &[u8]) -> Served {
    let upper = value.to_ascii_uppercase();
    let has = |word: &[u8]| upper.windows(word.len()).any(|w| w == word);
    if has(b"HIT") || has(b"REVALIDATED") {
        Served::Hit
    } else if has(b"MISS") || has(b"EXPIRED") || has(b"BYPASS") || has(b"PASS") {
        Served::Miss
    } else {
        Served::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &str) -> Result<Head<'static>, &'static str> {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\nbody");
        parse(Box::leak(text.into_bytes().into_boxed_slice())).map(Option::unwrap)
    }

    #[test]
    fn cache_status_names_hits_and_misses() {
        for (value, served) in [
            ("Foxy; hit; ttl=30", Served::Hit),
            ("Foxy;hit", Served::Hit),
            ("Foxy; fwd=uri-miss; stored", Served::Miss),
            (
                "Far; hit, Foxy; fwd=stale; detail=\"a, b; hit\"",
                Served::Miss,
            ),
            ("Far; fwd=miss, \"Fo,xy\"; hit; detail=ram", Served::Hit),
            ("Foxy", Served::Unknown),
            ("", Served::Unknown),
        ] {
            assert_eq!(cache_status(value.as_bytes()), served, "{value}");
        }
    }

    #[test]
    fn other_caches_speak_too() {
        assert_eq!(head("X-Cache: HIT from a\r\n").unwrap().served, Served::Hit);
        assert_eq!(
            head("X-Cache: MISS from a\r\nAge: 0\r\n").unwrap().served,
            Served::Miss
        );
        assert_eq!(head("Age: 3\r\n").unwrap().served, Served::Hit);
        assert_eq!(
            head("Age: 3\r\nCache-Status: x; fwd=uri-miss\r\n")
                .unwrap()
                .served,
            Served::Miss
        );
        assert_eq!(head("").unwrap().served, Served::Unknown);
        for (codes, served) in [
            ("1.1 proxy (X/9 [uScRs f p eN:t cCHi p sS])", Served::Hit),
            (
                "1.1 a, 1.1 proxy (X/9 [uScMsSfWpSeN:t cCMp sS])",
                Served::Miss,
            ),
            ("http/1.1 proxy (X/9 [cHs f ])", Served::Hit),
            ("http/1.1 proxy (X/9 [cMsSfW])", Served::Miss),
            ("1.1 [u", Served::Unknown),
            ("1.1 [::1]", Served::Unknown),
            ("1.1 squid", Served::Unknown),
        ] {
            let fields = format!("Via: {codes}\r\n");
            assert_eq!(head(&fields).unwrap().served, served, "{codes}");
        }
    }

    #[test]
    fn framing_and_claims() {
        let h = head("Content-Length: 4\r\nBench-Object: 127.1.0.1 5 2 4\r\n").unwrap();
        assert_eq!((h.framing, h.close), (Framing::Length(4), false));
        let claim = Claim {
            host: b"127.1.0.1",
            id: 5,
            version: 2,
            size: 4,
        };
        assert_eq!(h.claim, Some(claim));
        assert_eq!(
            head("Transfer-Encoding: chunked\r\n").unwrap().framing,
            Framing::Chunked
        );
        assert!(
            head("Connection: Close\r\nContent-Length: 1\r\n")
                .unwrap()
                .close
        );
        assert!(head("").unwrap().close);
        for bad in [
            "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 4\r\nContent-Length: 5\r\n",
            "Content-Length: -4\r\n",
            "Transfer-Encoding: gzip\r\n",
            "Bench-Object: h 1 2\r\n",
        ] {
            assert!(head(bad).is_err(), "{bad}");
        }
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n"), Ok(None));
        assert!(parse(b"nonsense\r\n\r\n").is_err());
    }
}
