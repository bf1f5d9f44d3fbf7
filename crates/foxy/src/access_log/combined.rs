//! Apache's combined format: `client - - [date] "request" status bytes "referer" "agent"`.

use std::io::Write;

use foxy_proxy::LogRecord;

use super::redaction::ShownClient;
use super::{Calendar, or_dash};

/// Appends one line.
pub(super) fn write((record, client): (&LogRecord<'_>, ShownClient), out: &mut Vec<u8>) {
    let at = Calendar::of(record.at);
    // Writing to a Vec cannot fail.
    let _ = write!(
        out,
        "{} - {} [{:02}/{}/{:04}:{:02}:{:02}:{:02} +0000] \"",
        client.address(),
        user(record),
        at.day,
        at.month_name(),
        at.year,
        at.hour,
        at.minute,
        at.second
    );
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
    out.extend_from_slice(b" \"");
    escaped(or_dash(record.referer), out);
    out.extend_from_slice(b"\" \"");
    escaped(or_dash(record.user_agent), out);
    out.extend_from_slice(b"\"\n");
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
