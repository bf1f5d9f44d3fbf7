//! One JSON object per line with everything known about a request.

use std::io::Write;

use foxy_proxy::{Details, LogRecord};

use super::redaction::ShownClient;
use super::{Calendar, url};

/// Appends one line. Written by hand: no tree is built, and the order of the keys is fixed.
pub(super) fn write((record, client): (&LogRecord<'_>, ShownClient), out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"time\":\"");
    time(&Calendar::of(record.at), out);
    // Writing to a Vec cannot fail.
    let _ = write!(out, "\",\"client\":\"{}\"", client.with_port());
    text("user", record.user.as_bytes(), out);
    text("partition", record.partition.as_bytes(), out);
    text("method", record.method, out);
    text("url", &url(record), out);
    let _ = write!(
        out,
        ",\"http\":\"1.{}\",\"status\":{}",
        record.minor, record.status
    );
    text("outcome", record.outcome.word().as_bytes(), out);
    text("reason", record.reason.as_bytes(), out);
    text("access_rule", record.access_rule.as_bytes(), out);
    let _ = write!(
        out,
        ",\"duration_us\":{},\"bytes_in\":{},\"bytes_out\":{},\"body_out\":{}",
        record.duration.as_micros(),
        record.bytes_in,
        record.bytes_out,
        record.body_out
    );
    if let Some(origin) = record.origin {
        let _ = write!(
            out,
            ",\"origin\":\"{origin}\",\"origin_status\":{}",
            record.origin_status
        );
    }
    if let Some(details) = &record.details {
        write_details(details, out);
    }
    text("content_type", record.content_type, out);
    text("referer", record.referer, out);
    text("user_agent", record.user_agent, out);
    out.extend_from_slice(b"}\n");
}

/// A time as RFC 3339 has it.
pub(super) fn time(at: &Calendar, out: &mut Vec<u8>) {
    let _ = write!(
        out,
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        at.year, at.month, at.day, at.hour, at.minute, at.second, at.millis
    );
}

fn write_details(details: &Details<'_>, out: &mut Vec<u8>) {
    // An id has no character that JSON would escape.
    let _ = write!(out, ",\"id\":\"{}\"", details.id);
    text("traceparent", details.traceparent, out);
    if let Some(first_byte) = details.first_byte {
        let _ = write!(out, ",\"first_byte_us\":{}", first_byte.as_micros());
    }
    if let Some(ttl) = details.ttl {
        let _ = write!(out, ",\"ttl\":{ttl}");
    }
    text("rule", details.rule.as_bytes(), out);
}

/// A member, left out if it is empty.
fn text(name: &str, value: &[u8], out: &mut Vec<u8>) {
    if value.is_empty() {
        return;
    }
    let _ = write!(out, ",\"{name}\":\"");
    for c in String::from_utf8_lossy(value).chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "{c}");
            }
        }
    }
    out.push(b'"');
}
