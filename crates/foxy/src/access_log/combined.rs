//! Apache's common format, `client - user [date] "request" status bytes`, and its combined one, which adds
//! `"referer" "agent"`.

use std::io::Write;

use foxy_proxy::LogRecord;

use super::redaction::ShownClient;
use super::{Calendar, or_dash};

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

/// A time as both have it, without its brackets.
pub(super) fn time(at: &Calendar, out: &mut Vec<u8>) {
    let _ = write!(
        out,
        "{:02}/{}/{:04}:{:02}:{:02}:{:02} +0000",
        at.day,
        at.month_name(),
        at.year,
        at.hour,
        at.minute,
        at.second
    );
}

fn common((record, client): (&LogRecord<'_>, ShownClient), out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{} - {} [", client.address(), user(record));
    time(&Calendar::of(record.at), out);
    out.extend_from_slice(b"] \"");
    escaped(or_dash(record.method), out);
    out.push(b' ');
    escaped(or_dash(record.target), out);
    let _ = write!(out, " HTTP/1.{}\" {} ", record.minor, record.status);
    match record.body_out {
        0 => out.push(b'-'),
        bytes => {
            let _ = write!(out, "{bytes}");
        }
    }
}

/// The user in one word.
fn user(record: &LogRecord<'_>) -> String {
    let word = |c: char| if c.is_ascii_graphic() { c } else { '_' };
    match record.user {
        "" => "-".to_owned(),
        name => name.chars().map(word).collect(),
    }
}

/// Inside quotes: quotes and backslashes get a backslash, other bytes than printable ones `\xhh`.
fn escaped(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b' '..=b'~' => out.push(*byte),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
}
