//! The access log. Each worker (network thread) writes lines into its own buffer, and one thread writes the
//! buffers to the log's target (a file, standard output, or a log service).
//!
//! A worker never waits for the log. When the thread does not keep up, buffers are dropped, and the dropped
//! lines are counted.

mod calendar;
mod combined;
mod datagrams;
mod json;
mod redaction;
mod sink;
mod squid;
mod switch;
mod template;
mod text;
mod writer;

pub use calendar::Calendar;
pub use sink::BufferedSink;
pub use switch::{Log, Prepared};
pub use writer::{LogHandle, LogThread};

use foxy_proxy::LogRecord;

use self::redaction::ShownClient;
use crate::config::LogFormat;

/// Appends one line with its newline. The record is already redacted, except for its client: the line shows
/// the [`ShownClient`] in `shown` in place of the record's client.
fn write_shown(format: &LogFormat, shown: (&LogRecord<'_>, ShownClient), out: &mut Vec<u8>) {
    match format {
        LogFormat::Squid => squid::write(shown, out),
        LogFormat::Common => combined::write_common(shown, out),
        LogFormat::Combined => combined::write(shown, out),
        LogFormat::Json => json::write(shown, out),
        LogFormat::Template(template) => template::write(template, shown, out),
    }
}

#[cfg(test)]
mod tests;
