//! One JSON object per line with all details that are known about a request.

use foxy_proxy::{Details, LogRecord};

use super::Calendar;
use super::redaction::ShownClient;
use super::text::{self, digits, number, url};

/// Appends one line. The code writes the text directly and builds no tree of JSON values. The order of the
/// keys is fixed.
pub(super) fn write((record, client): (&LogRecord<'_>, ShownClient), out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"time\":\"");
    time(&Calendar::of(record.at), out);
    out.extend_from_slice(b"\",\"client\":\"");
    client.with_port(out);
    out.push(b'"');
    member(b",\"user\":\"", record.user.as_bytes(), out);
    member(b",\"partition\":\"", record.partition.as_bytes(), out);
    member(b",\"method\":\"", record.method, out);
    if !record.target.is_empty() {
        out.extend_from_slice(b",\"url\":\"");
        url(record).iter().for_each(|piece| escaped(piece, out));
        out.push(b'"');
    }
    out.extend_from_slice(b",\"http\":\"1.");
    number(record.minor, out);
    out.extend_from_slice(b"\",\"status\":");
    number(record.status, out);
    own(b",\"outcome\":\"", record.outcome.as_str(), out);
    own(b",\"reason\":\"", record.reason, out);
    member(b",\"access_rule\":\"", record.access_rule.as_bytes(), out);
    out.extend_from_slice(b",\"duration_us\":");
    number(record.duration.as_micros() as u64, out);
    out.extend_from_slice(b",\"bytes_in\":");
    number(record.bytes_in, out);
    out.extend_from_slice(b",\"bytes_out\":");
    number(record.bytes_out, out);
    out.extend_from_slice(b",\"body_out\":");
    number(record.body_out, out);
    if let Some(origin) = record.origin {
        out.extend_from_slice(b",\"origin\":\"");
        text::display(origin, out);
        out.extend_from_slice(b"\",\"origin_status\":");
        number(record.origin_status, out);
    }
    if let Some(details) = &record.details {
        write_details(details, out);
    }
    member(b",\"content_type\":\"", record.content_type, out);
    member(b",\"referer\":\"", record.referer, out);
    member(b",\"user_agent\":\"", record.user_agent, out);
    out.extend_from_slice(b"}\n");
}

/// Appends a time in the form of RFC 3339.
pub(super) fn time(at: &Calendar, out: &mut Vec<u8>) {
    digits::<4>(at.year as u32, out);
    for (before, part) in [
        (b'-', at.month),
        (b'-', at.day),
        (b'T', at.hour),
        (b':', at.minute),
        (b':', at.second),
    ] {
        out.push(before);
        digits::<2>(part.into(), out);
    }
    out.push(b'.');
    digits::<3>(at.millis.into(), out);
    out.push(b'Z');
}

fn write_details(details: &Details<'_>, out: &mut Vec<u8>) {
    // An id has no character that JSON would escape.
    out.extend_from_slice(b",\"id\":\"");
    text::id(details.id, out);
    out.push(b'"');
    member(b",\"traceparent\":\"", details.traceparent, out);
    if let Some(first_byte) = details.first_byte {
        out.extend_from_slice(b",\"first_byte_us\":");
        number(first_byte.as_micros() as u64, out);
    }
    if let Some(ttl) = details.ttl {
        out.extend_from_slice(b",\"ttl\":");
        number(ttl, out);
    }
    member(b",\"rule\":\"", details.rule.as_bytes(), out);
}

/// Appends a member whose text is one of Foxy's fixed strings. Appends nothing if the string is empty.
/// `begin` is written before the string; it contains the member's name.
fn own(begin: &[u8], text: &str, out: &mut Vec<u8>) {
    if !text.is_empty() {
        out.extend_from_slice(begin);
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    }
}

/// Appends a member. Appends nothing if the value is empty. `begin` is written before the value; it contains
/// the member's name.
fn member(begin: &[u8], value: &[u8], out: &mut Vec<u8>) {
    if !value.is_empty() {
        out.extend_from_slice(begin);
        escaped(value, out);
        out.push(b'"');
    }
}

/// Appends text between quotes. Invalid UTF-8 becomes U+FFFD.
fn escaped(value: &[u8], out: &mut Vec<u8>) {
    let stays = |byte: u8| matches!(byte, b' '..=b'~') & (byte != b'"') & (byte != b'\\');
    if text::all(value, stays) {
        return out.extend_from_slice(value);
    }
    for c in String::from_utf8_lossy(value).chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            c if c.is_control() => text::display(format_args!("\\u{:04x}", u32::from(c)), out),
            c => text::display(c, out),
        }
    }
}
