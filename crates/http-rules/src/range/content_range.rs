//! Parses and writes the Content-Range field (RFC 9110 section 14.4).

use foxy_base::{Fields, first, rule, values};

use super::Span;
use crate::text::{decimal, media_type, push_decimal};

/// A valid Content-Range in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The part that the message contains; `None` for the `*` of a 416.
    pub span: Option<Span>,
    /// Length of the complete representation, if it is known.
    pub complete: Option<u64>,
}

impl ContentRange {
    /// Returns the range of the bytes in a 206 with these fields. Returns `None` if there is not exactly one
    /// valid Content-Range. Also returns `None` for multipart/byteranges: such a body has text between its
    /// parts, so a range in the head does not describe its bytes. A server must not send such a range (RFC
    /// 9110 section 15.3.7.2).
    pub fn of_part<F: Fields + ?Sized>(fields: &F) -> Option<Self> {
        let mut lines = values(fields, "Content-Range");
        let range = lines.next().and_then(Self::parse)?;
        let second = rule!(
            "storing: a part that names two ranges is not stored",
            lines.next(),
            None
        );
        (second.is_none() && !has_parts(fields)).then_some(range)
    }

    /// Parses a field value. `None` if it is invalid in any way (RFC 9110 section 14.4), for instance if the
    /// last byte is before the first byte, or if the last byte is outside of the complete length.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (unit, rest) = text.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes ") {
            return None;
        }
        let slash = rest.iter().position(|b| *b == b'/')?;
        let (range, complete) = (&rest[..slash], &rest[slash + 1..]);
        let complete = if complete == b"*" {
            None
        } else {
            Some(decimal(complete)?)
        };
        if range == b"*" {
            return complete.map(|_| Self {
                span: None,
                complete,
            });
        }
        let dash = range.iter().position(|b| *b == b'-')?;
        let end = decimal(&range[dash + 1..])?.checked_add(1)?;
        let span = Span::new(decimal(&range[..dash])?, end)?;
        complete
            .is_none_or(|length| span.end <= length)
            .then_some(Self {
                span: Some(span),
                complete,
            })
    }

    /// Appends the field value.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"bytes ");
        match self.span {
            Some(span) => {
                push_decimal(out, span.start);
                out.push(b'-');
                push_decimal(out, span.end - 1);
            }
            None => out.push(b'*'),
        }
        out.push(b'/');
        match self.complete {
            Some(length) => push_decimal(out, length),
            None => out.push(b'*'),
        }
    }

    /// The part that arrived, for a 206 whose body had `received` bytes. It is at most the part that the
    /// field states. `None` if the body is longer than the field states, because then the field cannot be
    /// trusted.
    #[must_use]
    pub fn received(&self, received: u64) -> Option<Span> {
        let span = self.span?;
        (received <= span.len()).then_some(())?;
        Span::new(span.start, span.start + received)
    }
}

/// True if the body consists of several parts (RFC 9110 section 14.6).
fn has_parts<F: Fields + ?Sized>(fields: &F) -> bool {
    first(fields, "Content-Type")
        .is_some_and(|line| media_type(line).eq_ignore_ascii_case(b"multipart/byteranges"))
}
