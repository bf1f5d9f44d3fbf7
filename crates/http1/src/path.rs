//! The normal form of a path (RFC 3986 section 6.2.2). Escapes of unreserved characters are decoded; all
//! other escapes have upper-case digits. Queries are not changed.
//!
//! This module guarantees three properties. A path in normal form is not changed. No segment becomes `.` or
//! `..`, even for readers that split segments at `\`, `;` and their escapes. An invalid escape is not
//! changed, and never becomes a valid escape.

/// The form of the escapes in paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escapes {
    /// Escapes are in their normal form.
    #[default]
    Normal,
    /// Escapes are not changed.
    AsReceived,
}

impl Escapes {
    /// Appends a path with its query, which begins at the first `?`.
    pub fn write(self, text: &[u8], out: &mut Vec<u8>) {
        // Most paths have no escape, so one search and one copy are enough for them.
        if self == Self::AsReceived || !has_percent(text) {
            out.extend_from_slice(text);
            return;
        }
        let end = memchr::memchr(b'?', text).unwrap_or(text.len());
        write_normal(&text[..end], out);
        out.extend_from_slice(&text[end..]);
    }
}

/// True if there is a percent sign. Eight bytes are examined at a time. A vectorised search would be slower,
/// because paths are short and such a search takes time to start.
fn has_percent(text: &[u8]) -> bool {
    const PERCENTS: u64 = u64::from_ne_bytes([b'%'; 8]);
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let (words, rest) = text.as_chunks::<8>();
    let has = |word: &[u8; 8]| {
        let differs = u64::from_ne_bytes(*word) ^ PERCENTS;
        // The result is not zero if and only if some byte of `differs` is zero.
        differs.wrapping_sub(ONES) & !differs & ONES << 7 != 0
    };
    words.iter().any(has) || rest.contains(&b'%')
}

fn write_normal(path: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let (mut at, mut dots) = (0, only_dots(path, 0));
    while let Some((byte, len)) = next(path, at) {
        let kept = byte == b'.' && dots || completes_escape(&out[start..], byte);
        if len == 1 || is_unreserved(byte) && !kept {
            out.push(byte);
        } else {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value & 15)];
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte)]);
        }
        at += len;
        if separates(byte) {
            dots = only_dots(path, at);
        }
    }
}

/// The decoded byte at `at`, and its encoded length: 3 for an escape, else 1.
fn next(path: &[u8], at: usize) -> Option<(u8, usize)> {
    let first = *path.get(at)?;
    if first == b'%'
        && let Some([high, low]) = path.get(at + 1..at + 3)
        && let (Some(high), Some(low)) = (value(*high), value(*low))
    {
        return Some((high << 4 | low, 3));
    }
    Some((first, 1))
}

fn value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// True for unreserved characters (RFC 3986 section 2.3).
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// True for characters at which some servers end the name of a segment: `/`, `\`, and the `;` before
/// parameters.
const fn separates(byte: u8) -> bool {
    matches!(byte, b'/' | b'\\' | b';')
}

/// True if the name that begins at `at` is `.` or `..`, escaped or not.
fn only_dots(path: &[u8], mut at: usize) -> bool {
    let mut count = 0;
    while let Some((byte, len)) = next(path, at).filter(|(byte, _)| !separates(*byte)) {
        if byte != b'.' || count == 2 {
            return false;
        }
        count += 1;
        at += len;
    }
    count > 0
}

/// True if `written` ends with an incomplete escape (such as `%` or `%4`) and `byte` would continue this
/// escape.
fn completes_escape(written: &[u8], byte: u8) -> bool {
    let open = match written {
        [.., b'%'] => true,
        [.., b'%', digit] => digit.is_ascii_hexdigit(),
        _ => false,
    };
    open && byte.is_ascii_hexdigit()
}
