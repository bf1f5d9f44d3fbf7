//! Lines as the operator's template says. Values are escaped, so that no client writes fields or
//! lines of its own.

use std::fmt::Display;
use std::io::Write;

use foxy_proxy::LogRecord;

use super::redaction::ShownClient;
use super::{Calendar, combined, json, or_dash, squid, url};
use crate::config::{LogField, LogPart, LogTemplate};

/// Appends one line.
pub(super) fn write(
    template: &LogTemplate,
    (record, client): (&LogRecord<'_>, ShownClient),
    out: &mut Vec<u8>,
) {
    for part in template.parts() {
        match part {
            LogPart::Text(text) => out.extend_from_slice(text.as_bytes()),
            LogPart::Field { field, quoted } => {
                value(
                    *field,
                    (record, client),
                    &mut Value {
                        out,
                        quoted: *quoted,
                    },
                );
            }
        }
    }
    out.push(b'\n');
}

/// Where one value goes.
struct Value<'a> {
    out: &'a mut Vec<u8>,
    /// Blanks may stay.
    quoted: bool,
}

impl Value<'_> {
    /// Text that others chose. Quotes and backslashes get a backslash; what is not printable, and
    /// blanks outside of quotes, become `\xhh`.
    fn text(&mut self, text: &[u8]) {
        for byte in or_dash(text) {
            match byte {
                b'"' | b'\\' => self.out.extend_from_slice(&[b'\\', *byte]),
                b' ' if self.quoted => self.out.push(b' '),
                b'!'..=b'~' => self.out.push(*byte),
                _ => {
                    // Writing to a Vec cannot fail.
                    let _ = write!(self.out, "\\x{byte:02x}");
                }
            }
        }
    }

    /// What Foxy writes itself: it has no character to escape.
    fn own(&mut self, value: impl Display) {
        let _ = write!(self.out, "{value}");
    }

    /// The same, or `-`.
    fn own_or_dash(&mut self, value: Option<impl Display>) {
        match value {
            Some(value) => self.own(value),
            None => self.out.push(b'-'),
        }
    }
}

fn value(field: LogField, (record, client): (&LogRecord<'_>, ShownClient), to: &mut Value<'_>) {
    match field {
        LogField::Time => json::time(&Calendar::of(record.at), to.out),
        LogField::TimeCommon => combined::time(&Calendar::of(record.at), to.out),
        LogField::TimeUnix => squid::time(record.at, to.out),
        LogField::Client => to.own(client.address()),
        LogField::ClientPort => to.own(client.with_port()),
        LogField::User => to.text(record.user.as_bytes()),
        LogField::AccessRule => to.text(record.access_rule.as_bytes()),
        LogField::Partition => to.text(record.partition.as_bytes()),
        LogField::Method => to.text(record.method),
        LogField::Url => to.text(&url(record)),
        LogField::Target => to.text(record.target),
        LogField::Host => to.text(record.host),
        LogField::Http => to.own(format_args!("1.{}", record.minor)),
        LogField::Status => to.own(record.status),
        LogField::Outcome => to.own(record.outcome.word()),
        LogField::Code => to.own(squid::code(record.outcome)),
        LogField::Reason => to.text(record.reason.as_bytes()),
        LogField::DurationUs => to.own(record.duration.as_micros()),
        LogField::DurationMs => to.own(record.duration.as_millis()),
        LogField::BytesIn => to.own(record.bytes_in),
        LogField::BytesOut => to.own(record.bytes_out),
        LogField::BodyOut => to.own(record.body_out),
        LogField::Origin => to.own_or_dash(record.origin),
        LogField::OriginStatus => to.own_or_dash(record.origin.map(|_| record.origin_status)),
        LogField::ContentType => to.text(record.content_type),
        LogField::Referer => to.text(record.referer),
        LogField::UserAgent => to.text(record.user_agent),
        detail => write_detail(detail, record, to),
    }
}

fn write_detail(field: LogField, record: &LogRecord<'_>, to: &mut Value<'_>) {
    let Some(details) = &record.details else {
        return to.out.push(b'-');
    };
    match field {
        LogField::Id => to.text(details.id.to_string().as_bytes()),
        LogField::Traceparent => to.text(details.traceparent),
        LogField::FirstByteUs => to.own_or_dash(details.first_byte.map(|time| time.as_micros())),
        LogField::Ttl => to.own_or_dash(details.ttl),
        _ => to.text(details.rule.as_bytes()),
    }
}
