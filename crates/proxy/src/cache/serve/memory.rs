//! Sends an object that is in memory: all of it, one part, several parts, or only its head. To send a
//! complete object, Foxy allocates nothing and makes one vectored write.

use std::io::{self, IoSlice};

use foxy_base::{Fields, WallTime};
use foxy_http_rules::conditional::{self, Condition};
use foxy_http_rules::range::{ContentRange, Resolved, Span, answer, is_of_content};
use foxy_http_rules::{CachingFacts, RequestFacts};
use foxy_http1::{Method, RequestHead, write};
use foxy_store::Object;

use super::multipart::Multipart;
use crate::cache::gate::Hit;
use crate::http::net::{Io, Transport};
use crate::http::reply::{Mode, Scratch, own_fields};
use crate::state::local::Local;

/// The form of an answer that is made from a stored object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// An answer with the stored status and the complete body.
    Whole,
    /// A 304 answer.
    NotModified,
    /// A 206 answer with one part.
    One(Span),
    /// A 206 answer with several parts.
    Many(Vec<Span>),
    /// A 416 answer.
    Unsatisfiable,
    /// No answer from the object, because the origin must judge the request's conditions.
    AskOrigin,
}

/// Returns the shape of the answer from this object. It follows from the conditions and ranges of the
/// request.
pub(crate) fn shape(
    local: &Local,
    head: &RequestHead<'_>,
    request: &RequestFacts,
    object: &Object,
    stored: &CachingFacts,
    now: WallTime,
) -> Shape {
    if request.conditional || request.precondition {
        match conditional::evaluate(head, object.fields(), stored, now) {
            Condition::Send => {}
            Condition::NotModified => return Shape::NotModified,
            Condition::AskOrigin => return Shape::AskOrigin,
        }
    }
    let (fields, length) = (object.fields(), object.total_length());
    let config = &local.proxy.config.rules;
    match answer(request, head, fields, stored, length, now, config) {
        Resolved::One(span) => Shape::One(span),
        Resolved::Many(spans) => Shape::Many(spans),
        Resolved::Unsatisfiable => Shape::Unsatisfiable,
        Resolved::Whole => Shape::Whole,
    }
}

/// The status and the number of body bytes that were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) status: u16,
    pub(crate) body: u64,
}

/// Writes the status line and Foxy's own fields for `shape` into `scratch`. The head of the answer is
/// `scratch.head`, then the text of [`stored_text`], then `scratch.tail`. Returns the status.
pub(crate) fn write_heads(
    local: &Local,
    scratch: &mut Scratch,
    head: &RequestHead<'_>,
    object: &Object,
    shape: &Shape,
    hit: &Hit<'_>,
) -> u16 {
    let length = object.total_length();
    let (status, body) = match shape {
        Shape::NotModified => (304, None),
        Shape::One(span) => (206, Some(span.len())),
        Shape::Unsatisfiable => (416, Some(0)),
        _ => (object.meta().status, Some(length)),
    };
    scratch.head.clear();
    scratch.tail.clear();
    write::status_line(&mut scratch.head, status);
    let range = match shape {
        Shape::One(span) => Some(Some(*span)),
        Shape::Unsatisfiable => Some(None),
        _ => None,
    };
    if let Some(span) = range {
        scratch.tail.extend_from_slice(b"Content-Range: ");
        let complete = Some(length);
        ContentRange { span, complete }.write(&mut scratch.tail);
        scratch.tail.extend_from_slice(b"\r\n");
    }
    let mode = match body {
        Some(n) if status != 204 => Mode::Length(n),
        _ => Mode::Bare,
    };
    let own = hit.own_fields(mode, head, object.fields());
    match shape {
        Shape::NotModified => push_fields(scratch, object, conditional::is_sent_with_304),
        _ if lacks_some(object, shape) => push_fields(scratch, object, |name| !is_of_content(name)),
        _ => {}
    }
    if hit.to.rules().is_some() {
        // The rules for fields are applied to the complete head, so all fields are written into one buffer.
        scratch.head.extend_from_slice(match shape {
            Shape::NotModified => &[],
            _ if lacks_some(object, shape) => &[],
            _ => object.fields().text(),
        });
        scratch.head.append(&mut scratch.tail);
        own_fields(&mut scratch.head, local, &own);
    } else {
        own_fields(&mut scratch.tail, local, &own);
    }
    status
}

/// Returns the stored fields that are sent between the two texts of [`write_heads`], `scratch.head` and
/// `scratch.tail`.
#[inline]
pub(crate) fn stored_text<'o>(object: &'o Object, shape: &Shape, hit: &Hit<'_>) -> &'o [u8] {
    match shape {
        Shape::NotModified => &[],
        _ if hit.to.rules().is_some() => &[],
        _ if lacks_some(object, shape) => &[],
        _ => object.fields().text(),
    }
}

/// Returns true if some stored fields would be wrong in an answer of this shape.
#[inline]
fn lacks_some(object: &Object, shape: &Shape) -> bool {
    let fields = object.fields();
    matches!(shape, Shape::One(_) | Shape::Unsatisfiable)
        && (0..fields.count()).any(|i| is_of_content(fields.field(i).0))
}

/// Sends an object whose body is in memory. It must not be a large object, of which only the head is in
/// memory.
pub(crate) async fn send<T: Transport>(
    local: &Local,
    io: &Io<T>,
    scratch: &mut Scratch,
    head: &RequestHead<'_>,
    object: &Object,
    shape: &Shape,
    hit: &Hit<'_>,
) -> io::Result<Sent> {
    if let Shape::Many(spans) = shape {
        return send_parts(local, io, scratch, head, object, spans, hit).await;
    }
    let status = write_heads(local, scratch, head, object, shape, hit);
    if matches!(shape, Shape::NotModified) {
        let mut slices = [IoSlice::new(&scratch.head), IoSlice::new(&scratch.tail)];
        io.write_all(&mut slices, local.timeouts.progress).await?;
        return Ok(Sent { status, body: 0 });
    }
    let whole: &[u8] = object.body();
    let body = match shape {
        _ if head.method() == Method::Head => &[],
        Shape::One(span) => part(whole, *span),
        Shape::Unsatisfiable => &[],
        _ => whole,
    };
    let mut slices = [
        IoSlice::new(&scratch.head),
        IoSlice::new(stored_text(object, shape, hit)),
        IoSlice::new(&scratch.tail),
        IoSlice::new(body),
    ];
    io.write_all(&mut slices, local.timeouts.progress).await?;
    Ok(Sent {
        status,
        body: body.len() as u64,
    })
}

fn push_fields(scratch: &mut Scratch, object: &Object, is_sent: impl Fn(&[u8]) -> bool) {
    let fields = object.fields();
    for i in 0..fields.count() {
        let (name, value) = fields.field(i);
        if is_sent(name) {
            write::field(&mut scratch.head, name, value);
        }
    }
}

fn part(whole: &[u8], span: Span) -> &[u8] {
    let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(whole.len());
    &whole[at(span.start)..at(span.end)]
}

/// Sends several parts as multipart/byteranges (RFC 9110 section 14.6).
async fn send_parts<T: Transport>(
    local: &Local,
    io: &Io<T>,
    scratch: &mut Scratch,
    head: &RequestHead<'_>,
    object: &Object,
    spans: &[Span],
    hit: &Hit<'_>,
) -> io::Result<Sent> {
    let parts = Multipart::new(local);
    scratch.head.clear();
    parts.head(local, &mut scratch.head, head, object, spans, hit);
    let mut body = Vec::new();
    for (i, span) in spans.iter().enumerate() {
        body.extend(parts.before(object, *span, i == 0));
        body.extend_from_slice(part(object.body(), *span));
    }
    body.extend(parts.end());
    let mut slices = [IoSlice::new(&scratch.head), IoSlice::new(&body)];
    io.write_all(&mut slices, local.timeouts.progress).await?;
    Ok(Sent {
        status: 206,
        body: body.len() as u64,
    })
}
