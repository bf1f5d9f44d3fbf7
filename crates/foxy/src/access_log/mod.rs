//! The access log: workers write lines into buffers of their own, one thread writes them out.
//!
//! A worker never waits for the log: when the thread does not keep up, whole buffers are dropped
//! and their lines counted.

mod calendar;
mod combined;
mod json;
mod sink;
mod squid;
mod writer;

pub use calendar::Calendar;
pub use sink::BufferedSink;
pub use writer::{LogHandle, LogThread, start};

use foxy_proxy::LogRecord;

use crate::config::LogFormat;

/// Appends one line, newline included.
pub fn write_line(format: LogFormat, record: &LogRecord<'_>, out: &mut Vec<u8>) {
    match format {
        LogFormat::Squid => squid::write(record, out),
        LogFormat::Combined => combined::write(record, out),
        LogFormat::Json => json::write(record, out),
    }
}

/// The record without the queries of its URLs: queries carry names, keys and sessions. The `?`
/// stays, so that a page with a query differs from the page without.
fn without_queries<'a>(record: &LogRecord<'a>) -> LogRecord<'a> {
    let cut = |url: &'a [u8]| match url.iter().position(|b| *b == b'?') {
        Some(at) => &url[..=at],
        None => url,
    };
    LogRecord {
        target: cut(record.target),
        referer: cut(record.referer),
        ..*record
    }
}

/// The URL asked for: targets in origin form get the scheme and host they were meant for.
fn url(record: &LogRecord<'_>) -> Vec<u8> {
    let mut url = Vec::with_capacity(record.target.len() + record.host.len() + 8);
    if record.target.first() == Some(&b'/') && !record.host.is_empty() {
        url.extend_from_slice(b"http://");
        url.extend_from_slice(record.host);
    }
    url.extend_from_slice(record.target);
    url
}

/// `text`, or `-` if there is none.
fn or_dash(text: &[u8]) -> &[u8] {
    if text.is_empty() { b"-" } else { text }
}

#[cfg(test)]
mod tests;
