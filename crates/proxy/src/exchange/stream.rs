//! Sends an answer to one client, while a fill (a fetch that several requests can share) receives it.

use foxy_base::{Fields, eq_name};
use foxy_http_rules::range::{ContentRange, Span, is_of_content};
use foxy_http_rules::{CacheStatus, freshness, size_is_right};
use foxy_http1::{Version, write};

use super::body::Streaming;
use super::join::Want;
use super::not_modified::has_it;
use super::ranged::ClientSlice;
use super::{Exchange, Finish};
use crate::Outcome;
use crate::cache::gate::Grant;
use crate::fill::Follower;
use crate::fill::fetch::FillHead;
use crate::http::net::Transport;
use crate::http::reply::{Mode, OwnFields, own_fields};
use crate::http::rewriting::ResponseContext;
use crate::state::local::Local;

/// The form in which a fill's answer is sent to one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) slice: ClientSlice,
    /// True if another request had started the fill.
    pub(super) collapsed: bool,
}

/// Returns the framing, the number of bytes to skip at the start, and the number of bytes to send
/// (`u64::MAX`: all).
fn framing(head: &FillHead, slice: ClientSlice, version: Version) -> (Mode, u64, u64) {
    match (head.status, slice) {
        (_, ClientSlice::Slice { skip, range, .. }) => {
            let length = range.span.map_or(0, Span::len);
            (Mode::Length(length), skip, length)
        }
        (204 | 304, _) => (Mode::Bare, 0, u64::MAX),
        _ => (Mode::of(head.length, version), 0, u64::MAX),
    }
}

/// Returns the range of the complete object that this client's answer contains. Returns `None` if the answer
/// does not announce this range, or announces a range and a length that contradict each other.
fn part(head: &FillHead, slice: ClientSlice) -> Option<ContentRange> {
    let said = match (head.status, slice) {
        (206, ClientSlice::Slice { range, .. }) => return Some(range),
        (206, _) => head.part,
        (200, _) => head.length.map(|length| ContentRange {
            span: Span::new(0, length),
            complete: Some(length),
        }),
        _ => None,
    };
    said.filter(|said| said.span.map(Span::len) == head.length)
}

impl<T: Transport> Exchange<'_, T> {
    /// Sends the head and the body of a fill while they arrive. While this request waits for memory in the
    /// kernel's send buffers, the first bytes of the body may leave the memory of the fill. If these bytes
    /// cannot be read back from the store, nothing is sent and `None` is returned.
    pub(super) async fn stream(
        &mut self,
        want: &Want,
        (grant, head): (Grant, &FillHead),
        follower: Follower<FillHead>,
        how: How,
    ) -> Option<Finish> {
        if has_it(&self.local, &self.req, want, head) {
            return Some(self.not_modified(want, head, how).await);
        }
        let (slice, collapsed) = (how.slice, how.collapsed);
        let version = self.req.head().version();
        let (mode, skip, left) = framing(head, slice, version);
        let length = left.min(head.length.unwrap_or(0));
        let queued = match self.link.queue(&self.local, length).await {
            Ok(queued) => queued,
            Err(lost) => return Some(self.without_room(lost).await),
        };
        let lost = |from| !can_read_back(&self.local, head, from);
        if follower.is_behind().is_some_and(lost) {
            return None;
        }
        self.keep &= mode != Mode::UntilClose;
        self.write_stream_head(want, (grant, head), how, mode);
        let mut finish = streamed(want, head, collapsed, self.keep);
        finish.ttl = head.facts.as_ref().map(|facts| {
            let left = freshness::ttl_ms(facts, facts.response_time);
            left.div_euclid(1000)
        });
        let streaming = Streaming {
            link: self.link,
            local: &self.local,
            req: &self.req,
            head,
            part: part(head, slice),
            mode,
            queued,
            finish,
        };
        Some(streaming.run(follower, skip, left).await)
    }

    fn write_stream_head(
        &mut self,
        want: &Want,
        (_grant, head): (Grant, &FillHead),
        how: How,
        mode: Mode,
    ) {
        let (local, req) = (&self.local, &self.req);
        let out = &mut self.link.ends().scratch.head;
        out.clear();
        write::status_line(out, head.status);
        if let ClientSlice::Slice { range, .. } = how.slice {
            for i in 0..head.fields.count() {
                let (name, value) = head.fields.field(i);
                if !eq_name(name, b"content-range") && !is_of_content(name) {
                    write::field(out, name, value);
                }
            }
            out.extend_from_slice(b"Content-Range: ");
            range.write(out);
            out.extend_from_slice(b"\r\n");
        } else {
            out.extend_from_slice(head.fields.text());
        }
        let now = local.wall();
        let age = head.facts.as_ref().map(|facts| freshness::age(facts, now));
        if age.is_none()
            && let Some(age) = &head.age
        {
            write::field(out, b"Age", age);
        }
        let ttl = head
            .facts
            .as_ref()
            .map(|d| freshness::ttl_ms(d, now).div_euclid(1000));
        // The size of a body without Content-Length is not known yet.
        let sizes = |config| head.status == 206 || size_is_right(head.length, config);
        let cache = CacheStatus {
            cache: &local.proxy.config.headers.name,
            fwd: Some(want.reason),
            fwd_status: Some(head.status),
            ttl,
            stored: head.not_stored.is_empty() && sizes(local.proxy.rules(req.rule)),
            collapsed: how.collapsed,
            detail: Some(head.not_stored).filter(|why| !why.is_empty()),
            rule: local.proxy.rule_name(req.rule),
            ..CacheStatus::default()
        };
        let to = ResponseContext::new(&req.role, &req.client);
        let own = OwnFields {
            mode,
            age: age.filter(|age| *age > 0),
            cache: Some(&cache),
            keep: self.keep,
            head: Some(&req.head()),
            to: Some(to),
            varies: to.varies(&head.fields),
        };
        own_fields(out, local, &own);
    }
}

/// True if the bytes of this answer before `from` are in the store.
fn can_read_back(local: &Local, head: &FillHead, from: u64) -> bool {
    let Some(readable_body) = head.readable_body.get() else {
        return false;
    };
    let unit = u64::from(readable_body.head.fragment_size().max(1));
    let engine = &local.proxy.engine;
    (0..from.div_ceil(unit)).all(|n| {
        let number = u32::try_from(n).unwrap_or(u32::MAX);
        engine.has_fragment(&readable_body.head, number)
    })
}

/// Returns the outcome (the word for log and metrics) of a fetched answer.
pub(super) fn streamed_outcome(want: &Want, collapsed: bool) -> Outcome {
    match (collapsed, &want.stored) {
        (true, _) => Outcome::Collapsed,
        (false, Some(_)) => Outcome::Refreshed,
        (false, None) => Outcome::Miss,
    }
}

/// Returns the log entry of a streamed answer.
fn streamed(want: &Want, head: &FillHead, collapsed: bool, keep: bool) -> Finish {
    Finish {
        outcome: streamed_outcome(want, collapsed),
        reason: head.not_stored,
        status: head.status,
        origin_status: head.status,
        origin: Some(head.origin),
        fields: Some(head.fields.clone()),
        keep,
        ..Finish::default()
    }
}
