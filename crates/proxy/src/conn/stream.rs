//! The answer of a fill on its way to one client.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::rc::Rc;

use bytes::Bytes;
use foxy_http_rules::{CacheStatus, freshness};
use foxy_http1::{chunked, write};

use super::follow::Want;
use super::pass::last_chunk;
use super::rest::Rest;
use super::{Conn, Finish};
use crate::ask::Ask;
use crate::fetch::FillHead;
use crate::fill::{Follower, Next, Released};
use crate::net::{Io, Ticks, Transport};
use crate::reply::{Mode, Own, own_fields};
use crate::{Event, Outcome};

impl<T: Transport> Conn<T> {
    /// Sends the head and the body of a fill as it comes.
    pub(super) async fn stream(
        &mut self,
        ask: &Rc<Ask>,
        want: &Want,
        mut follower: Follower<FillHead>,
        head: &FillHead,
        collapsed: bool,
        keep: bool,
    ) -> Finish {
        let version = ask.head().version();
        let mode = match head.status {
            204 | 304 => Mode::Bare,
            _ => Mode::of(head.length, version),
        };
        let keep = keep && mode != Mode::UntilClose;
        self.write_stream_head(want, head, collapsed, mode, keep, ask);
        let mut finish = streamed(want, head, collapsed, keep);
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
                    poll_fn(|cx| follower.poll_next(cx)).await
                }
            };
            let sent = match next {
                Ok(Next::Data(bytes)) => {
                    finish.body += bytes.len() as u64;
                    write_piece(&self.io, &pending, &bytes, mode, patience).await
                }
                Ok(Next::End(trailers)) => {
                    if mode == Mode::Chunked {
                        pending.extend(last_chunk(&self.local, &trailers));
                    }
                    let sent = self.io.write(&pending, patience).await;
                    pending.clear();
                    self.scratch.head = pending;
                    finish.keep &= sent.is_ok();
                    return if sent.is_ok() {
                        finish
                    } else {
                        Finish::gone(head.status)
                    };
                }
                Err(released) => {
                    if !pending.is_empty() && self.io.write(&pending, patience).await.is_err() {
                        return Finish::gone(head.status);
                    }
                    drop(follower);
                    return self.go_on_alone(ask, head, finish, released).await;
                }
            };
            pending.clear();
            if sent.is_err() {
                return Finish::gone(head.status);
            }
        }
    }

    fn write_stream_head(
        &mut self,
        want: &Want,
        head: &FillHead,
        collapsed: bool,
        mode: Mode,
        keep: bool,
        ask: &Ask,
    ) {
        let local = &self.local;
        let out = &mut self.scratch.head;
        out.clear();
        write::status_line(out, head.status);
        out.extend_from_slice(head.fields.text());
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
        let cache = CacheStatus {
            cache: &local.proxy.config.headers.name,
            fwd: Some(want.reason),
            fwd_status: Some(head.status),
            ttl,
            stored: head.not_stored.is_empty(),
            collapsed,
            detail: Some(head.not_stored).filter(|why| !why.is_empty()),
            rule: local.proxy.rule_name(ask.rule),
            ..CacheStatus::default()
        };
        let own = Own {
            mode,
            age: age.filter(|age| *age > 0),
            cache: Some(cache),
            keep,
            version: ask.head().version(),
        };
        own_fields(out, local, &own);
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
        self.io.transport().reset_on_close();
    }
}

/// What is to be logged about a streamed answer.
fn streamed(want: &Want, head: &FillHead, collapsed: bool, keep: bool) -> Finish {
    let outcome = match (collapsed, &want.stored) {
        (true, _) => Outcome::Collapsed,
        (false, Some(_)) => Outcome::Refreshed,
        (false, None) => Outcome::Miss,
    };
    Finish {
        outcome,
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
