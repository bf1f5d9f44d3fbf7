//! This module answers range requests from stored parts of bodies (RFC 9111 section 3.3). The requested range
//! must lie completely inside the part, and the part must be fresh.

use std::io::IoSlice;

use foxy_base::{Fields, WallTime, eq_name};
use foxy_http_rules::conditional::{self, Condition};
use foxy_http_rules::range::{ContentRange, Span, from_part, is_of_content};
use foxy_http_rules::{CachingFacts, RequestFacts};
use foxy_http1::{Method, RequestHead, write};
use foxy_store::Object;

use crate::cache::gate::{Grant, Hit};
use crate::cache::stored::held;
use crate::http::net::{Io, Transport};
use crate::http::reply::{Mode, Scratch, own_fields};
use crate::state::finish::Finish;
use crate::state::local::Local;

/// The bytes of a stored part that answer a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    held: ContentRange,
    wanted: Span,
}

/// Returns the bytes of a stored part that answer a request, and the permission to send them. Returns `None`
/// if the origin must be asked.
pub(crate) fn slice(
    rules: &foxy_http_rules::Config,
    head: &RequestHead<'_>,
    request: &RequestFacts,
    object: &Object,
    stored: &CachingFacts,
    now: WallTime,
) -> Option<(Slice, Grant)> {
    if head.method() != Method::Get || !request.range {
        return None;
    }
    let grant = Grant::shared(request, stored, now, rules).ok()?;
    if grant.is_stale() {
        return None;
    }
    if conditional::evaluate(head, object.fields(), stored, now) != Condition::Send {
        return None;
    }
    let held = held(object)?;
    let wanted = from_part(head, object.fields(), &held, now)?;
    Some((Slice { held, wanted }, grant))
}

/// Sends the bytes of `slice` as a 206 answer.
pub(crate) async fn send<T: Transport>(
    local: &Local,
    io: &Io<T>,
    scratch: &mut Scratch,
    head: &RequestHead<'_>,
    object: &Object,
    slice: &Slice,
    hit: &Hit<'_>,
) -> Finish {
    let Some(body) = bytes(object, slice) else {
        return Finish::gone(206);
    };
    let out = &mut scratch.head;
    out.clear();
    write::status_line(out, 206);
    for i in 0..object.fields().count() {
        let (name, value) = object.fields().field(i);
        if !eq_name(name, b"content-range") && !is_of_content(name) {
            write::field(out, name, value);
        }
    }
    let range = ContentRange {
        span: Some(slice.wanted),
        complete: slice.held.complete,
    };
    out.extend_from_slice(b"Content-Range: ");
    range.write(out);
    out.extend_from_slice(b"\r\n");
    let mode = Mode::Length(slice.wanted.len());
    let own = hit.own_fields(mode, head, object.fields());
    own_fields(out, local, &own);
    let mut slices = [IoSlice::new(out), IoSlice::new(body)];
    match io.write_all(&mut slices, local.timeouts.progress).await {
        Ok(()) => Finish {
            status: 206,
            body: body.len() as u64,
            fields: Some(object.fields().clone()),
            keep: hit.keep,
            ..Finish::default()
        },
        Err(_) => Finish::gone(206),
    }
}

fn bytes<'o>(object: &'o Object, slice: &Slice) -> Option<&'o [u8]> {
    let start = slice.held.span?.start;
    let at = |n: u64| usize::try_from(n.checked_sub(start)?).ok();
    object
        .body()
        .get(at(slice.wanted.start)?..at(slice.wanted.end)?)
}
