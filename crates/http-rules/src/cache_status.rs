//! The Cache-Status field (RFC 9211). It is written directly into an output buffer.

use crate::reason::Fwd;
use crate::text::push_decimal;

/// One member of Cache-Status. Writing it allocates no memory except for the growth of the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus<'a> {
    /// Name of this cache: a token or any printable text. If it is empty, `foxy` is written.
    pub cache: &'a str,
    /// True if the request was answered without being forwarded (section 2.1). Then `fwd` is not written.
    pub hit: bool,
    /// The reason why the request was forwarded (section 2.2).
    pub fwd: Option<Fwd>,
    /// Status of the response to the forwarded request (section 2.3), if it differs from the status
    /// that the client gets.
    pub fwd_status: Option<u16>,
    /// Remaining lifetime in seconds; negative for a stale response (section 2.4).
    pub ttl: Option<i64>,
    /// True if the response was stored (section 2.5).
    pub stored: bool,
    /// True if the request shared the fetch of another request (section 2.6).
    pub collapsed: bool,
    /// The cache key (section 2.7).
    pub key: Option<&'a [u8]>,
    /// The value of the parameter `detail` (section 2.8): a word of [`crate::NoStore`], or a word of the
    /// caller.
    pub detail: Option<&'a str>,
    /// Name of the operator's rule that influenced the decision. It is written as a part of the parameter
    /// `detail`.
    pub rule: Option<&'a str>,
}

impl CacheStatus<'_> {
    /// Appends the member, without field name and line end.
    pub fn write(&self, out: &mut Vec<u8>) {
        let name = if self.cache.is_empty() {
            "foxy"
        } else {
            self.cache
        };
        push_token_or_string(out, name.as_bytes());
        if self.hit {
            out.extend_from_slice(b"; hit");
        } else if let Some(fwd) = self.fwd {
            push_parameter(out, "fwd", |out| {
                out.extend_from_slice(fwd.as_str().as_bytes());
            });
            self.write_forward(out);
        }
        if let Some(ttl) = self.ttl {
            push_parameter(out, "ttl", |out| push_integer(out, ttl));
        }
        if let Some(key) = self.key {
            push_parameter(out, "key", |out| push_string(out, key));
        }
        match (self.detail, self.rule) {
            (Some(detail), None) => push_parameter(out, "detail", |out| {
                push_token_or_string(out, detail.as_bytes());
            }),
            (detail, Some(rule)) => push_parameter(out, "detail", |out| {
                let gap = if detail.is_some() { ", rule " } else { "rule " };
                let texts = [detail.unwrap_or_default(), gap, rule];
                push_strings(out, texts.map(str::as_bytes));
            }),
            (None, None) => {}
        }
    }

    /// Writes the parameters that only make sense for a forwarded request.
    fn write_forward(&self, out: &mut Vec<u8>) {
        if let Some(status) = self.fwd_status {
            push_parameter(out, "fwd-status", |out| {
                push_decimal(out, u64::from(status));
            });
        }
        if self.stored {
            out.extend_from_slice(b"; stored");
        }
        if self.collapsed {
            out.extend_from_slice(b"; collapsed");
        }
    }
}

fn push_parameter(out: &mut Vec<u8>, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"; ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'=');
    value(out);
}

/// Appends an integer. Integers of Structured Fields have at most 15 digits.
fn push_integer(out: &mut Vec<u8>, number: i64) {
    const LIMIT: u64 = 999_999_999_999_999;
    if number < 0 {
        out.push(b'-');
    }
    push_decimal(out, number.unsigned_abs().min(LIMIT));
}

fn push_token_or_string(out: &mut Vec<u8>, text: &[u8]) {
    let first = text
        .first()
        .is_some_and(|b| b.is_ascii_alphabetic() || *b == b'*');
    if first && text.iter().all(|b| TOKEN[usize::from(*b)]) {
        out.extend_from_slice(text);
    } else {
        push_string(out, text);
    }
}

/// The bytes that a Structured Field token may have after its first byte (RFC 9651 section 3.3.4).
static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let others = b"!#$%&'*+-.^_`|~:/";
    let mut i = 0;
    while i < others.len() {
        table[others[i] as usize] = true;
        i += 1;
    }
    i = 0;
    while i < 256 {
        table[i] |= (i as u8).is_ascii_alphanumeric();
        i += 1;
    }
    table
};

/// Appends a quoted string. Bytes outside printable ASCII become `?`, because strings cannot
/// contain them.
fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    push_strings(out, [text]);
}

/// Appends several pieces as one quoted string.
fn push_strings<const N: usize>(out: &mut Vec<u8>, pieces: [&[u8]; N]) {
    out.push(b'"');
    for byte in pieces.into_iter().flatten() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0x20..=0x7e => out.push(*byte),
            _ => out.push(b'?'),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests;
