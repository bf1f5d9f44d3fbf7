//! Trailer sections (RFC 9110 section 6.5).

use foxy_base::eq_name;

use crate::connection::is_hop_by_hop;
use crate::slots::{FieldSlots, FieldView};
use crate::{Limits, Reject, diagnose};

/// Fields that affect framing, routing, authentication, caching or the interpretation of the content. In a
/// trailer section, these fields would arrive too late, or would bypass the checks of the head (RFC 9110
/// section 6.5.1).
const FORBIDDEN: &[&str] = &[
    "age",
    "authorization",
    "cache-control",
    "cache-status",
    "cdn-cache-control",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "expect",
    "expires",
    "forwarded",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "location",
    "max-forwards",
    "pragma",
    "range",
    "retry-after",
    "set-cookie",
    "trailer",
    "vary",
    "via",
    "warning",
    "www-authenticate",
];

/// True if a field may be sent in a trailer section. Other fields in a trailer section are dropped. They are
/// not a reason to refuse the message, because Foxy does not read them.
#[must_use]
pub fn is_trailer_allowed(name: &[u8]) -> bool {
    !is_hop_by_hop(name) && !FORBIDDEN.iter().any(|f| eq_name(name, f.as_bytes()))
}

/// Largest number of fields in a trailer section, even if the limits permit more.
const FIELDS: usize = 64;

/// Parses a complete section. `room` receives its fields.
fn read<'b, 'h>(
    section: &'b [u8],
    room: &'h mut [httparse::Header<'b>],
) -> Result<&'h [httparse::Header<'b>], Reject> {
    match httparse::parse_headers(section, room) {
        Ok(httparse::Status::Complete((len, fields))) if len == section.len() => Ok(fields),
        Err(httparse::Error::TooManyHeaders) => Err(Reject::TRAILERS_TOO_LARGE),
        _ => Err(diagnose::fields(section)),
    }
}

/// Checks that a complete section can be read.
///
/// # Errors
/// The same errors as [`parse_trailers`].
pub(super) fn check(section: &[u8], fields: usize) -> Result<(), Reject> {
    if section.is_empty() {
        return Ok(());
    }
    let mut room = [httparse::EMPTY_HEADER; FIELDS];
    read(section, &mut room[..fields.min(FIELDS)]).map(|_| ())
}

/// Parses a complete trailer section from [`BodyStep::End`](crate::BodyStep::End). The section is empty, or
/// ends with its blank line. Fields that are not permitted in a trailer section are left out.
///
/// # Errors
/// Malformed fields (400), or too many fields (431). A section that the decoder returns has neither of these
/// errors.
pub fn parse_trailers<'b>(
    section: &'b [u8],
    slots: &'b mut FieldSlots,
    limits: &Limits,
) -> Result<FieldView<'b>, Reject> {
    slots.clear();
    if section.is_empty() {
        return Ok(FieldView::empty());
    }
    let mut room = [httparse::EMPTY_HEADER; FIELDS];
    for field in read(section, &mut room[..limits.trailer_fields.min(FIELDS)])? {
        if is_trailer_allowed(field.name.as_bytes()) {
            slots.push(section, field.name.as_bytes(), field.value);
        }
    }
    Ok(FieldView {
        bytes: section,
        spans: slots.spans(),
    })
}
