//! The one normal form of a path (RFC 3986 section 6.2.2): escapes of unreserved characters are
//! decoded, the digits of all others are in upper case. Queries stay as received.
//!
//! Promises: a path in normal form stays as it is; no segment becomes `.` or `..` that was not
//! one before, for readers that also part segments at `\`, `;` and their escapes; what is no escape
//! stays as received, and never becomes one.

/// How the escapes of a path are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escapes {
    /// In their normal form.
    #[default]
    Normal,
    /// As they came.
    AsReceived,
}

impl Escapes {
    /// Appends a path with its query, which begins at the first `?`.
    pub fn write(self, text: &[u8], out: &mut Vec<u8>) {
        // Most paths have no escape: one look, in vector instructions, and one copy.
        let escaped = text.iter().fold(false, |found, b| found | (*b == b'%'));
        if self == Self::AsReceived || !escaped {
            out.extend_from_slice(text);
            return;
        }
        let end = memchr::memchr(b'?', text).unwrap_or(text.len());
        write_normal(&text[..end], out);
        out.extend_from_slice(&text[end..]);
    }
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

/// The byte meant at `at`, and how many bytes it takes there: three for an escape.
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

/// RFC 3986 section 2.3.
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Where some servers see the end of a segment's name: `/`, `\` and the parameters after `;`.
const fn separates(byte: u8) -> bool {
    matches!(byte, b'/' | b'\\' | b';')
}

/// Whether what begins at `at` is `.` or `..`, escaped or not, up to the end of the name.
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

/// Whether a digit after these bytes would turn a `%` that begins no escape into one.
fn completes_escape(written: &[u8], byte: u8) -> bool {
    let open = match written {
        [.., b'%'] => true,
        [.., b'%', digit] => digit.is_ascii_hexdigit(),
        _ => false,
    };
    open && byte.is_ascii_hexdigit()
}
