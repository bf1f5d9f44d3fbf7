//! The answer of a fill on its way to one client.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::rc::Rc;

use bytes::Bytes;
use foxy_base::{Fields, eq_name};
use foxy_http_rules::range::{Span, is_of_content};
use foxy_http_rules::{CacheStatus, freshness, size_is_right};
use foxy_http1::{Version, chunked, write};

use super::join::Want;
use super::pass::last_chunk;
use super::ranged::Cut;
use super::rest::Rest;
use super::{CLOSED, Conn, Finish};
use crate::ask::Ask;
use crate::fetch::FillHead;
use crate::fill::{Follower, Next, Released};
use crate::gate::Grant;
use crate::net::{Io, Ticks, Transport};
use crate::reply::{Mode, Own, own_fields};
use crate::rewriting::Recipient;
use crate::serve::supply::{Missing, Piece, Supply};
use crate::{Event, Outcome};

/// How a fill's answer goes to one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) cut: Cut,
    /// Another request had started the fill.
    pub(super) collapsed: bool,
    /// The connection can carry another request.
    pub(super) keep: bool,
}

/// Framing, bytes to leave out at the start, and bytes to send (`u64::MAX`: all).
fn framing(head: &FillHead, cut: Cut, version: Version) -> (Mode, u64, u64) {
    match (head.status, cut) {
        (_, Cut::Slice { skip, range, .. }) => {
            let length = range.span.map_or(0, Span::len);
            (Mode::Length(length), skip, length)
        }
        (204 | 304, _) => (Mode::Bare, 0, u64::MAX),
        _ => (Mode::of(head.length, version), 0, u64::MAX),
    }
}

impl<T: Transport> Conn<T> {
    /// Sends the head and the body of a fill as it comes. Returns `None`, with nothing sent, if the
    /// first bytes have left the window while this request waited for room in the send queues.
    pub(super) async fn stream(
        &mut self,
        ask: &Rc<Ask>,
        want: &Want,
        (grant, head): (Grant, &FillHead),
        follower: Follower<FillHead>,
        how: How,
    ) -> Option<Finish> {
        if self.has_it(ask, want, head) {
            return Some(self.not_modified(ask, want, head, how).await);
        }
        let (cut, collapsed) = (how.cut, how.collapsed);
        let version = ask.head().version();
        let (mode, skip, left) = framing(head, cut, version);
        let keep = how.keep && mode != Mode::UntilClose;
        let how = How { keep, ..how };
        let Some(_queue) = self.queue(left.min(head.length.unwrap_or(0)), 0).await else {
            return Some(self.without_memory(ask, keep).await);
        };
        let lost = |from| !self.can_read_back(head, from);
        if follower.is_behind().is_some_and(lost) {
            return None;
        }
        self.write_stream_head(want, (grant, head), how, mode, ask);
        let finish = streamed(want, head, collapsed, keep);
        self.noted.ttl = head.digest.as_ref().map(|digest| {
            let left = freshness::ttl_ms(digest, digest.response_time);
            left.div_euclid(1000)
        });
        let parts = (mode, skip, left);
        Some(self.stream_body(ask, head, follower, parts, finish).await)
    }

    /// True if the bytes of this answer before `from` are in the store.
    fn can_read_back(&self, head: &FillHead, from: u64) -> bool {
        let Some(running) = head.running.get() else {
            return false;
        };
        let unit = u64::from(running.head.fragment_size().max(1));
        let engine = &self.local.proxy.engine;
        (0..from.div_ceil(unit)).all(|n| {
            let number = u32::try_from(n).unwrap_or(u32::MAX);
            engine.has_fragment(&running.head, number)
        })
    }

    /// Sends the head that is written, and the body.
    async fn stream_body(
        &mut self,
        ask: &Rc<Ask>,
        head: &FillHead,
        mut follower: Follower<FillHead>,
        (mode, mut skip, mut left): (Mode, u64, u64),
        mut finish: Finish,
    ) -> Finish {
        let mut pending = std::mem::take(&mut self.scratch.head);
        let patience = self.local.patience.progress;
        loop {
            let next = match follower.try_next() {
                Some(next) => next,
                None => {
                    if !pending.is_empty() {
                        if self.io.write(&pending, patience).await.is_err() {
                            return Finish::gone(head.status);
                        }
                        pending.clear();
                    }
                    tokio::select! {
                        biased;
                        next = poll_fn(|cx| follower.poll_next(cx)) => next,
                        () = self.io.gone(CLOSED) => return Finish::gone(head.status),
                    }
                }
            };
            let sent = match next {
                Ok(Next::Data(bytes)) => {
                    let bytes = sliced(&bytes, &mut skip, &mut left);
                    if bytes.is_empty() {
                        continue;
                    }
                    finish.body += bytes.len() as u64;
                    write_piece(&self.io, &pending, &bytes, mode, patience).await
                }
                Ok(Next::End(_)) if left > 0 && left != u64::MAX => {
                    // Less than the part that was announced.
                    self.abort();
                    finish.keep = false;
                    return finish;
                }
                Ok(Next::End(trailers)) => {
                    return self.end(pending, &trailers, mode, finish).await;
                }
                Err(released) => {
                    if !pending.is_empty() && self.io.write(&pending, patience).await.is_err() {
                        return Finish::gone(head.status);
                    }
                    if let Some(running) = head.running.get() {
                        let stored = head.length.is_some() && running.is_sized();
                        let supply = Supply::behind(ask, &running.head, follower, stored);
                        return Box::pin(self.go_on(supply, head, mode, finish)).await;
                    }
                    drop(follower);
                    return Box::pin(self.go_on_alone(ask, head, finish, released)).await;
                }
            };
            pending.clear();
            if sent.is_err() {
                return Finish::gone(head.status);
            }
        }
    }

    /// Sends what is left of an answer whose body is complete.
    async fn end(
        &mut self,
        mut pending: Vec<u8>,
        trailers: &Bytes,
        mode: Mode,
        mut finish: Finish,
    ) -> Finish {
        if mode == Mode::Chunked {
            pending.extend(last_chunk(&self.local, trailers));
        }
        let sent = self.io.write(&pending, self.local.patience.progress).await;
        pending.clear();
        self.scratch.head = pending;
        finish.keep &= sent.is_ok();
        if sent.is_ok() {
            finish
        } else {
            Finish::gone(finish.status)
        }
    }

    fn write_stream_head(
        &mut self,
        want: &Want,
        (_grant, head): (Grant, &FillHead),
        how: How,
        mode: Mode,
        ask: &Ask,
    ) {
        let local = &self.local;
        let out = &mut self.scratch.head;
        out.clear();
        write::status_line(out, head.status);
        if let Cut::Slice { range, .. } = how.cut {
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
        let age = head
            .digest
            .as_ref()
            .map(|digest| freshness::age(digest, now));
        if age.is_none()
            && let Some(age) = &head.age
        {
            write::field(out, b"Age", age);
        }
        let ttl = head
            .digest
            .as_ref()
            .map(|d| freshness::ttl_ms(d, now).div_euclid(1000));
        // The size of a body without Content-Length is not known yet.
        let sizes = |config| head.status == 206 || size_is_right(head.length, config);
        let cache = CacheStatus {
            cache: &local.proxy.config.headers.name,
            fwd: Some(want.reason),
            fwd_status: Some(head.status),
            ttl,
            stored: head.not_stored.is_empty() && sizes(local.proxy.rules(ask.rule)),
            collapsed: how.collapsed,
            detail: Some(head.not_stored).filter(|why| !why.is_empty()),
            rule: local.proxy.rule_name(ask.rule),
            ..CacheStatus::default()
        };
        let to = Recipient::new(&ask.role, &ask.client);
        let own = Own {
            mode,
            age: age.filter(|age| *age > 0),
            cache: Some(&cache),
            keep: how.keep,
            head: Some(&ask.head()),
            to: Some(to),
            varies: to.varies(&head.fields),
        };
        own_fields(out, local, &own);
    }

    /// Goes on with what the fill has in the store already: this request came late or is slow.
    async fn go_on(
        &mut self,
        mut supply: Supply,
        head: &FillHead,
        mode: Mode,
        mut finish: Finish,
    ) -> Finish {
        let local = Rc::clone(&self.local);
        let patience = local.patience.progress;
        let until = head.length.unwrap_or(u64::MAX);
        let mut trailers = Bytes::new();
        while finish.body < until {
            match supply.next(&local, finish.body, until).await {
                Ok(Piece::Bytes(bytes)) => {
                    finish.body += bytes.len() as u64;
                    let sent = write_piece(&self.io, &[], &bytes, mode, patience).await;
                    if sent.is_err() {
                        return Finish::gone(head.status);
                    }
                }
                Ok(Piece::End(text)) => {
                    trailers = text;
                    break;
                }
                Err(Missing) => {
                    self.local.count(Event::FollowersReleased);
                    self.abort();
                    finish.keep = false;
                    finish.reason = "fragment-missing";
                    return finish;
                }
            }
        }
        if mode == Mode::Chunked {
            let end = last_chunk(&local, &trailers);
            finish.keep &= self.io.write(&end, patience).await.is_ok();
        }
        finish
    }

    /// The fill let this request down in the middle of the body: the rest comes by its own range
    /// request if it can be told to be the same, else the connection is cut so that the client
    /// sees that something is missing.
    async fn go_on_alone(
        &mut self,
        ask: &Rc<Ask>,
        head: &FillHead,
        mut finish: Finish,
        released: Released,
    ) -> Finish {
        self.local.count(Event::FollowersReleased);
        let rest = head
            .length
            .zip(head.strong_etag.as_ref())
            .map(|(length, etag)| Rest {
                from: finish.body,
                until: length,
                complete: length,
                etag: etag.clone(),
            });
        if let Some(rest) = rest
            && head.status == 200
            && let Ok(sent) = self.rest(ask, &rest).await
        {
            finish.body += sent;
            return finish;
        }
        self.abort();
        finish.keep = false;
        if let Released::Failed(error) = released {
            finish.outcome = error.outcome();
            finish.reason = error.reason();
        } else {
            finish.reason = "lagged";
        }
        finish
    }

    /// Cuts the connection: what was sent must not look complete.
    pub(crate) fn abort(&self) {
        self.local.count(Event::Aborted);
        self.aborted.set(true);
        self.io.transport().reset_on_close();
    }
}

/// Returns the bytes of a piece that belong to the part that is sent.
fn sliced(bytes: &Bytes, skip: &mut u64, left: &mut u64) -> Bytes {
    let bound = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(bytes.len());
    let from = bound(*skip);
    let until = bound(skip.saturating_add(*left));
    *skip -= from as u64;
    *left -= if *left == u64::MAX {
        0
    } else {
        (until - from) as u64
    };
    bytes.slice(from..until)
}

/// Returns the outcome of a fetched answer.
pub(super) fn streamed_outcome(want: &Want, collapsed: bool) -> Outcome {
    match (collapsed, &want.stored) {
        (true, _) => Outcome::Collapsed,
        (false, Some(_)) => Outcome::Refreshed,
        (false, None) => Outcome::Miss,
    }
}

/// Returns the entry for the log about a streamed answer.
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

/// Writes a piece of a body with what is to go before it.
async fn write_piece<T: Transport>(
    io: &Io<T>,
    before: &[u8],
    bytes: &Bytes,
    mode: Mode,
    patience: Ticks,
) -> io::Result<()> {
    if mode == Mode::Chunked {
        let line = chunked::chunk_header(bytes.len() as u64);
        let mut slices = [
            IoSlice::new(before),
            IoSlice::new(line.as_bytes()),
            IoSlice::new(bytes),
            IoSlice::new(chunked::CHUNK_END),
        ];
        return io.write_all(&mut slices, patience).await;
    }
    let mut slices = [IoSlice::new(before), IoSlice::new(bytes)];
    io.write_all(&mut slices, patience).await
}
