//! Sends the body of an answer to one client, while a fill (a fetch that several requests can share) receives
//! it.

use std::future::poll_fn;
use std::rc::Rc;

use bytes::Bytes;
use foxy_http_rules::range::ContentRange;

use super::Finish;
use super::rest::Rest;
use crate::Event;
use crate::cache::owned_request::OwnedRequest;
use crate::exchange::supply::{Missing, Piece, Supply, can_continue_from_store};
use crate::fill::fetch::FillHead;
use crate::fill::{Follower, Next, Released};
use crate::http::connection::{Link, MEMORY, Queued, SliceLost, last_chunk, write_piece};
use crate::http::net::Transport;
use crate::http::reply::Mode;
use crate::state::local::Local;

/// An answer whose head is already in the scratch buffer, but not sent yet.
#[derive(Debug)]
pub(super) struct Streaming<'x, T> {
    pub(super) link: &'x mut Link<T>,
    pub(super) local: &'x Rc<Local>,
    pub(super) req: &'x Rc<OwnedRequest>,
    pub(super) head: &'x FillHead,
    /// The range of the complete object that the answer contains. `None` if this range is not known for
    /// certain.
    pub(super) part: Option<ContentRange>,
    pub(super) mode: Mode,
    pub(super) queued: Queued,
    /// The result so far.
    pub(super) finish: Finish,
}

impl<T: Transport> Streaming<'_, T> {
    /// Sends the written head and the body. Leaves out the first `skip` bytes of the body, and sends at most
    /// `left` bytes of the rest (`u64::MAX`: all).
    pub(super) async fn run(
        mut self,
        mut follower: Follower<FillHead>,
        mut skip: u64,
        mut left: u64,
    ) -> Finish {
        let (head, is_chunk) = (self.head, self.mode == Mode::Chunked);
        let mut pending = std::mem::take(&mut self.link.ends().scratch.head);
        let timeout = self.local.timeouts.progress;
        loop {
            if let Err(lost) = self.share_reservation(&follower, pending.is_empty()).await {
                return self.without_reservation(lost);
            }
            let next = match follower.try_next() {
                Some(next) => next,
                None => {
                    if !pending.is_empty() {
                        if self.link.send(self.local, &pending).await.is_err() {
                            return Finish::gone(head.status);
                        }
                        pending.clear();
                    }
                    tokio::select! {
                        biased;
                        next = poll_fn(|cx| follower.poll_next(cx)) => next,
                        () = self.link.gone() => return Finish::gone(head.status),
                    }
                }
            };
            let sent = match next {
                Ok(Next::Data(bytes)) => {
                    let bytes = sliced(&bytes, &mut skip, &mut left);
                    if bytes.is_empty() {
                        continue;
                    }
                    self.finish.body += bytes.len() as u64;
                    write_piece(self.link.io(), &pending, &bytes, is_chunk, timeout).await
                }
                Ok(Next::End(_)) if left > 0 && left != u64::MAX => {
                    // The body is shorter than the announced part.
                    return self.truncated("");
                }
                Ok(Next::End(trailers)) => {
                    return self.end(pending, &trailers).await;
                }
                Err(released) => {
                    let link = &self.link;
                    if !pending.is_empty() && link.send(self.local, &pending).await.is_err() {
                        return Finish::gone(head.status);
                    }
                    if let Some(readable_body) = head.readable_body.get() {
                        let sized = head.sized().is_some();
                        let supply = Supply::behind(self.req, &readable_body.head, follower, sized);
                        return Box::pin(self.go_on(supply)).await;
                    }
                    drop(follower);
                    return Box::pin(self.go_on_alone(released)).await;
                }
            };
            pending.clear();
            if sent.is_err() {
                return Finish::gone(head.status);
            }
            if left == 0 {
                // The client has received its part. The fill continues without this client.
                return self.end(pending, &Bytes::new()).await;
            }
        }
    }

    /// If another answer needs the reserved memory in the kernel's send buffers, gives up the reservation and
    /// waits for a new one. Does so only if the head was sent, and if the rest of the body can be requested
    /// from the origin again or read from the store later.
    async fn share_reservation(
        &mut self,
        follower: &Follower<FillHead>,
        head_is_sent: bool,
    ) -> Result<(), SliceLost> {
        let (local, head, io) = (self.local, self.head, self.link.io());
        if !head_is_sent || !self.queued.is_over(local, io) {
            return Ok(());
        }
        let has_tag = head.strong_etag.is_some() && self.req.may_fetch_parts();
        let divisible = has_tag && head.sized().is_some();
        let readable = head.readable_body.get().is_some();
        if divisible || readable && can_continue_from_store(local, &self.queued, follower) {
            follower.stand_aside(!divisible);
            self.queued.next_slice(local, io).await?;
        }
        Ok(())
    }

    /// Returns the result of an answer that lost its reservation in the kernel's send buffers.
    fn without_reservation(self, lost: SliceLost) -> Finish {
        match lost {
            SliceLost::Client => Finish::gone(self.head.status),
            SliceLost::Memory => self.truncated(MEMORY.reason),
        }
    }

    /// Sends the remaining bytes of an answer whose body is complete.
    async fn end(mut self, mut pending: Vec<u8>, trailers: &Bytes) -> Finish {
        if self.mode == Mode::Chunked {
            pending.extend(last_chunk(self.local, trailers));
        }
        let sent = self.link.send(self.local, &pending).await;
        pending.clear();
        self.link.ends().scratch.head = pending;
        self.finish.keep &= sent.is_ok();
        match sent {
            Ok(()) => self.finish,
            Err(_) => Finish::gone(self.head.status),
        }
    }

    /// Continues with bytes that the fill has already stored, because this request arrived late or is slow.
    async fn go_on(mut self, mut supply: Supply) -> Finish {
        let (local, head) = (self.local, self.head);
        let is_chunk = self.mode == Mode::Chunked;
        let timeout = local.timeouts.progress;
        let until = head.length.unwrap_or(u64::MAX);
        let mut trailers = Bytes::new();
        while self.finish.body < until {
            if self.queued.is_over(local, self.link.io())
                && supply.can_stand_aside(local, &self.queued)
            {
                supply.stand_aside();
                if let Err(lost) = self.queued.next_slice(local, self.link.io()).await {
                    return self.without_reservation(lost);
                }
            }
            match supply.next(local, self.finish.body, until).await {
                Ok(Piece::Bytes(bytes)) => {
                    self.finish.body += bytes.len() as u64;
                    let sent = write_piece(self.link.io(), &[], &bytes, is_chunk, timeout).await;
                    if sent.is_err() {
                        return Finish::gone(head.status);
                    }
                }
                Ok(Piece::End(text)) => {
                    trailers = text;
                    break;
                }
                Err(Missing) => {
                    local.count(Event::FollowersReleased);
                    return self.truncated("fragment-missing");
                }
            }
        }
        if is_chunk {
            let end = last_chunk(local, &trailers);
            self.finish.keep &= self.link.send(local, &end).await.is_ok();
        }
        self.finish
    }

    /// Called when the fill failed or released this request in the middle of the body. A separate range
    /// request fetches the rest, if a strong ETag can prove that the rest belongs to the same body. Otherwise
    /// the connection is aborted, so that the client sees that bytes are missing.
    async fn go_on_alone(mut self, released: Released) -> Finish {
        let head = self.head;
        self.local.count(Event::FollowersReleased);
        let span = self
            .part
            .and_then(|part| part.span.zip(Some(part.complete)));
        let rest = span
            .zip(head.strong_etag.as_ref())
            .map(|((span, complete), etag)| Rest {
                from: span.start + self.finish.body,
                until: span.end,
                complete,
                etag: etag.clone(),
            });
        if let Some(rest) = rest
            && let Ok(sent) = rest.send(self.local, self.req, self.link).await
        {
            self.finish.body += sent;
            return self.finish;
        }
        let Released::Failed(error) = released else {
            return self.truncated("lagged");
        };
        self.finish.outcome = error.outcome();
        self.truncated(error.reason())
    }

    /// Aborts the connection because bytes of the answer are missing.
    fn truncated(mut self, reason: &'static str) -> Finish {
        self.link.abort(self.local);
        self.finish.keep = false;
        if !reason.is_empty() {
            self.finish.reason = reason;
        }
        self.finish
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
