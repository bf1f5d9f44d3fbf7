//! Apache's common format, `client - user [date] "request" status bytes`, and Apache's combined format, which
//! also has `"referer" "agent"`.

use foxy_proxy::LogRecord;

use super::Calendar;
use super::redaction::ShownClient;
use super::text::{self, digits, number, or_dash};

/// Appends one line of the common format.
pub(super) fn write_common(shown: (&LogRecord<'_>, ShownClient), out: &mut Vec<u8>) {
    common(shown, out);
    out.push(b'\n');
}

/// Appends one line of the combined format.
pub(super) fn write(shown: (&LogRecord<'_>, ShownClient), out: &mut Vec<u8>) {
    common(shown, out);
    let (record, _) = shown;
    out.extend_from_slice(b" \"");
    escaped(or_dash(record.referer), out);
    out.extend_from_slice(b"\" \"");
    escaped(or_dash(record.user_agent), out);
    out.extend_from_slice(b"\"\n");
}

/// Appends a time in the form that both formats use, without the brackets.
pub(super) fn time(at: &Calendar, out: &mut Vec<u8>) {
    digits::<2>(at.day.into(), out);
    out.push(b'/');
    out.extend_from_slice(at.month_name().as_bytes());
    out.push(b'/');
    digits::<4>(at.year as u32, out);
    for part in [at.hour, at.minute, at.second] {
        out.push(b':');
        digits::<2>(part.into(), out);
    }
    out.extend_from_slice(b" +0000");
}

fn common((record, client): (&LogRecord<'_>, ShownClient), out: &mut Vec<u8>) {
    client.address(out);
    out.extend_from_slice(b" - ");
    user(record.user, out);
    out.extend_from_slice(b" [");
    time(&Calendar::of(record.at), out);
    out.extend_from_slice(b"] \"");
    escaped(or_dash(record.method), out);
    out.push(b' ');
    escaped(or_dash(record.target), out);
    out.extend_from_slice(b" HTTP/1.");
    number(record.minor, out);
    out.extend_from_slice(b"\" ");
    number(record.status, out);
    out.push(b' ');
    match record.body_out {
        0 => out.push(b'-'),
        bytes => number(bytes, out),
    }
}

/// Appends the user's name as one word. Blanks, and characters that are not printable ASCII, become `_`.
fn user(name: &str, out: &mut Vec<u8>) {
    let word = |c: char| if c.is_ascii_graphic() { c as u8 } else { b'_' };
    match name {
        "" => out.push(b'-'),
        name => out.extend(name.chars().map(word)),
    }
}

/// Appends the escaped form of a byte: a quote or backslash gets a backslash, and any other byte becomes
/// `\xhh`.
pub(super) fn backslashed(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        _ => {
            out.extend_from_slice(b"\\x");
            text::hex(&[byte], out);
        }
    }
}

/// Appends text between quotes. Quotes and backslashes get a backslash, and bytes that are not printable
/// become `\xhh`.
fn escaped(text: &[u8], out: &mut Vec<u8>) {
    text::escaped(
        text,
        out,
        |byte| matches!(byte, b' '..=b'~') & (byte != b'"') & (byte != b'\\'),
        backslashed,
    );
}
