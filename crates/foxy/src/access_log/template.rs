//! Lines in the form of the operator's template. Values are escaped, so that a client cannot forge fields or
//! lines.

use foxy_proxy::LogRecord;

use super::redaction::ShownClient;
use super::text::{self, or_dash, url};
use super::{Calendar, combined, json, squid};
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

/// Writes the value of one field of the template.
struct Value<'a> {
    out: &'a mut Vec<u8>,
    /// True if the field is between quotes in the template. Then blanks in the value are not escaped.
    quoted: bool,
}

impl Value<'_> {
    /// Appends text that clients or origins chose. Quotes and backslashes get a backslash. Characters that
    /// are not printable, and blanks outside of quotes, become `\xhh`.
    fn text(&mut self, text: &[u8]) {
        self.piece(or_dash(text));
    }

    /// Appends a part of a text that clients or origins chose, with the same escapes as [`text`](Self::text).
    fn piece(&mut self, text: &[u8]) {
        let first = if self.quoted { b' ' } else { b'!' };
        let stays = |byte| (first..=b'~').contains(&byte) & (byte != b'"') & (byte != b'\\');
        text::escaped(text, self.out, stays, combined::backslashed);
    }

    /// Appends one of Foxy's fixed strings, which needs no escape.
    fn own(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn number(&mut self, value: impl itoa::Integer) {
        text::number(value, self.out);
    }

    fn number_or_dash(&mut self, value: Option<impl itoa::Integer>) {
        match value {
            Some(value) => self.number(value),
            None => self.out.push(b'-'),
        }
    }
}

fn value(field: LogField, (record, client): (&LogRecord<'_>, ShownClient), to: &mut Value<'_>) {
    match field {
        LogField::Time => json::time(&Calendar::of(record.at), to.out),
        LogField::TimeCommon => combined::time(&Calendar::of(record.at), to.out),
        LogField::TimeUnix => squid::time(record.at, to.out),
        LogField::Client => client.address(to.out),
        LogField::ClientPort => client.with_port(to.out),
        LogField::User => to.text(record.user.as_bytes()),
        LogField::AccessRule => to.text(record.access_rule.as_bytes()),
        LogField::Partition => to.text(record.partition.as_bytes()),
        LogField::Method => to.text(record.method),
        LogField::Url => match url(record) {
            [b"", b"", b""] => to.text(b""),
            pieces => pieces.iter().for_each(|piece| to.piece(piece)),
        },
        LogField::Target => to.text(record.target),
        LogField::Host => to.text(record.host),
        LogField::Http => to.own(if record.minor == 0 { "1.0" } else { "1.1" }),
        LogField::Status => to.number(record.status),
        LogField::Outcome => to.own(record.outcome.as_str()),
        LogField::Code => to.own(squid::code(record.outcome)),
        LogField::Reason => to.text(record.reason.as_bytes()),
        LogField::DurationUs => to.number(record.duration.as_micros()),
        LogField::DurationMs => to.number(record.duration.as_millis()),
        LogField::BytesIn => to.number(record.bytes_in),
        LogField::BytesOut => to.number(record.bytes_out),
        LogField::BodyOut => to.number(record.body_out),
        LogField::Origin => match record.origin {
            Some(origin) => text::display(origin, to.out),
            None => to.out.push(b'-'),
        },
        LogField::OriginStatus => to.number_or_dash(record.origin.map(|_| record.origin_status)),
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
        LogField::Id => text::id(details.id, to.out),
        LogField::Traceparent => to.text(details.traceparent),
        LogField::FirstByteUs => to.number_or_dash(details.first_byte.map(|time| time.as_micros())),
        LogField::Ttl => to.number_or_dash(details.ttl),
        _ => to.text(details.rule.as_bytes()),
    }
}
