//! Answers of any size from the cache. The bytes of a large body come from memory, from a disk, from a
//! running fill or from the origin.

use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use foxy_http_rules::range::Span;
use foxy_store::Object;

use super::objects::lost;
use super::{Exchange, Finish};
use crate::Outcome;
use crate::cache::gate::{Hit, Shown};
use crate::cache::owned_request::OwnedRequest;
use crate::cache::serve::memory::{self, Shape, stored_text, write_heads};
use crate::cache::serve::multipart::Multipart;
use crate::exchange::supply::{Missing, Piece, Supply};
use crate::fill::Follower;
use crate::fill::fetch::FillHead;
use crate::http::connection::{Ends, MEMORY, Queued, SliceLost};
use crate::http::net::{Io, Transport};
use crate::http::reply::Scratch;
use crate::http::rewriting::ResponseContext;
use crate::state::local::Local;

/// Reason why the answer was not sent completely.
enum Broken {
    Client,
    Truncated,
    /// There is no memory for the rest.
    Memory,
}

impl From<SliceLost> for Broken {
    fn from(lost: SliceLost) -> Self {
        match lost {
            SliceLost::Client => Self::Client,
            SliceLost::Memory => Self::Memory,
        }
    }
}

impl From<Missing> for Broken {
    fn from(_: Missing) -> Self {
        Self::Truncated
    }
}

/// Returns the parts of a large body that an answer of this `shape` needs; `None` if the answer needs no
/// body, or if the object is not large.
pub(crate) fn spans(object: &Object, shape: &Shape) -> Option<Vec<Span>> {
    match shape {
        _ if !object.is_large() => None,
        Shape::Whole => Some(vec![Span::new(0, object.total_length())?]),
        Shape::One(span) => Some(vec![*span]),
        Shape::Many(spans) => Some(spans.clone()),
        _ => None,
    }
}

impl<T: Transport> Exchange<'_, T> {
    /// Sends an object of any size from the cache. If `arriving` is set, the object is still being fetched,
    /// and `arriving` follows this fetch. If missing bytes cannot be fetched, or the origin has another
    /// version, nothing is sent and `None` is returned: the request is then a miss.
    pub(crate) async fn large(
        &mut self,
        object: &Arc<Object>,
        shape: &Shape,
        shown: &Shown,
        arriving: Option<Follower<FillHead>>,
    ) -> Option<Finish> {
        let body = self.req.head().method() != foxy_http1::Method::Head;
        let Some(spans) = spans(object, shape).filter(|_| body) else {
            return Some(self.in_memory(object, shape, shown).await);
        };
        let queued = match self.link.queue_for(&self.local, &spans).await {
            Ok(queued) => queued,
            Err(lost) => return Some(self.without_room(lost).await),
        };
        let stored = (object, shape, shown);
        let sent = self.large_in(stored, (spans, queued), arriving);
        sent.await
    }

    /// Does the same as [`large`](Self::large), for parts of the body that already have a reservation in the
    /// kernel's send buffers.
    pub(crate) async fn large_in(
        &mut self,
        (object, shape, shown): (&Arc<Object>, &Shape, &Shown),
        (spans, queued): (Vec<Span>, Queued),
        arriving: Option<Follower<FillHead>>,
    ) -> Option<Finish> {
        let (local, req, keep) = (Rc::clone(&self.local), Rc::clone(&self.req), self.keep);
        let arrives = arriving.is_some();
        let mut supply = match arriving {
            Some(follower) => Supply::behind(&req, object, follower, true),
            None => Supply::new(&req, object),
        };
        // The head of the answer must not promise bytes that turn out to be missing.
        if !spans.iter().all(|span| supply.can_promise(&local, *span)) {
            return None;
        }
        let missing = spans
            .iter()
            .find_map(|span| Some((supply.first_missing(&local, *span)?, span.end)));
        if let Some((at, until)) = missing.filter(|_| !arrives) {
            supply.ask_ahead(&local, at, until).await.ok()?;
        }
        let missing = missing.is_some();
        let first = supply
            .next(&local, spans[0].start, spans[0].end)
            .await
            .ok()?;
        let shown = match (missing && !shown.is_fetched(), supply.collapsed) {
            (false, _) => *shown,
            (true, false) => shown.partly(Outcome::Miss, false),
            (true, true) => shown.partly(Outcome::Collapsed, true),
        };
        let (hit, outcome) = (
            shown.hit(
                &local.proxy,
                ResponseContext::new(&req.role, &req.client),
                keep,
            ),
            shown.outcome,
        );
        let scratch = self.link.ends().scratch;
        let (pending, parts, status) = heads(&local, scratch, &req, (object, shape), &spans, &hit);
        let mut finish = Finish {
            outcome,
            status,
            object: Some(Arc::clone(object)),
            keep,
            ..Finish::default()
        };
        let mut sending = Sending {
            spans,
            parts,
            pending,
            ready: Some(first),
            queued,
        };
        let io = self.link.io();
        let run = sending.run(&local, io, &mut supply, &mut finish.body);
        let reason = match run.await {
            Ok(()) => return Some(finish),
            Err(Broken::Client) => return Some(Finish::gone(finish.status)),
            Err(Broken::Memory) => MEMORY.reason,
            Err(Broken::Truncated) => {
                if req.role.objects().is_some() {
                    lost(&local, object);
                }
                "fragment-missing"
            }
        };
        self.link.abort(&local);
        finish.keep = false;
        finish.reason = reason;
        Some(finish)
    }

    /// Sends an answer that needs no fragments.
    async fn in_memory(&mut self, object: &Arc<Object>, shape: &Shape, shown: &Shown) -> Finish {
        let (local, req, keep) = (&self.local, &self.req, self.keep);
        let Ends { io, scratch, .. } = self.link.ends();
        let hit = shown.hit(
            &local.proxy,
            ResponseContext::new(&req.role, &req.client),
            keep,
        );
        let sent = memory::send(local, io, scratch, &req.head(), object, shape, &hit).await;
        match sent {
            Ok(sent) => Finish {
                outcome: shown.outcome,
                object: Some(Arc::clone(object)),
                status: sent.status,
                body: sent.body,
                keep,
                ..Finish::default()
            },
            Err(_) => Finish::gone(object.meta().status),
        }
    }
}

/// Returns the text before the body, the framing of several parts, and the status.
fn heads(
    local: &Local,
    scratch: &mut Scratch,
    req: &OwnedRequest,
    (object, shape): (&Object, &Shape),
    spans: &[Span],
    hit: &Hit<'_>,
) -> (Vec<u8>, Option<Multipart>, u16) {
    let head = req.head();
    let mut text = Vec::new();
    if matches!(shape, Shape::Many(_)) {
        let parts = Multipart::new(local);
        parts.head(local, &mut text, &head, object, spans, hit);
        return (text, Some(parts), 206);
    }
    let status = write_heads(local, scratch, &head, object, shape, hit);
    text.extend_from_slice(&scratch.head);
    text.extend_from_slice(stored_text(object, shape, hit));
    text.extend_from_slice(&scratch.tail);
    (text, None, status)
}

/// An answer that is being sent.
struct Sending {
    spans: Vec<Span>,
    parts: Option<Multipart>,
    /// Text to send before the next bytes.
    pending: Vec<u8>,
    /// The first bytes of the body, which were read or fetched before the head was written.
    ready: Option<Piece>,
    queued: Queued,
}

impl Sending {
    async fn run<T: Transport>(
        &mut self,
        local: &Rc<Local>,
        io: &Io<T>,
        supply: &mut Supply,
        sent: &mut u64,
    ) -> Result<(), Broken> {
        for (i, span) in std::mem::take(&mut self.spans).iter().enumerate() {
            if let Some(parts) = &self.parts {
                let text = parts.before(supply.head(), *span, i == 0);
                *sent += text.len() as u64;
                self.pending.extend(text);
            }
            let mut at = span.start;
            while at < span.end {
                if self.queued.is_over(local, io) && supply.can_stand_aside(local, &self.queued) {
                    supply.stand_aside();
                    self.queued.next_slice(local, io).await?;
                }
                let piece = match self.ready.take() {
                    Some(piece) => piece,
                    None => supply.next(local, at, span.end).await?,
                };
                let Piece::Bytes(mut bytes) = piece else {
                    return Err(Broken::Truncated);
                };
                // While other answers wait for a reservation, the client gets only a limited number of bytes
                // in one time slice. This limit ends when Foxy knows that the client reads. The rest of a
                // stored fragment follows in the next time slice.
                let trial = self.queued.left_in_trial(io);
                if let Some(left) = trial.filter(|left| *left > 0 && supply.is_stored()) {
                    bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                }
                let taken = self.write(local, io, bytes, supply).await?;
                at += taken;
                *sent += taken;
            }
        }
        if let Some(parts) = &self.parts {
            let end = parts.end();
            let written = io.write(&end, local.timeouts.progress);
            written.await.map_err(|_| Broken::Client)?;
            *sent += end.len() as u64;
        }
        Ok(())
    }

    /// Writes these bytes. Returns the number of bytes that the socket accepted. If the client reads nothing
    /// for a while, the fragment that is being sent is dropped from memory, but only if its bytes can be read
    /// or requested again. When the client reads again, the caller gets the rest from the store or the
    /// origin.
    async fn write<T: Transport>(
        &mut self,
        local: &Local,
        io: &Io<T>,
        mut bytes: Bytes,
        supply: &mut Supply,
    ) -> Result<u64, Broken> {
        let timeouts = &local.timeouts;
        let gone = |_| Broken::Client;
        if io.is_slowed() {
            let mut slices = [IoSlice::new(&self.pending), IoSlice::new(&bytes)];
            let written = io.write_all(&mut slices, timeouts.progress).await;
            written.map_err(gone)?;
            self.pending.clear();
            return Ok(bytes.len() as u64);
        }
        let mut taken = 0;
        loop {
            io.turn().await;
            let slices = [IoSlice::new(&self.pending), IoSlice::new(&bytes[taken..])];
            match io.try_write(&slices) {
                Ok(0) => return Err(Broken::Client),
                Ok(n) => {
                    let text = n.min(self.pending.len());
                    self.pending.drain(..text);
                    taken += n - text;
                    if taken == bytes.len() {
                        return Ok(taken as u64);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut paused = false;
                    let silent = || {
                        paused = supply.can_pause();
                        if paused {
                            supply.pause();
                            bytes = Bytes::new();
                        }
                    };
                    let late = io.deadline(timeouts.progress);
                    let waited = io.writable_or_silent(late, silent).await;
                    waited.map_err(gone)?;
                    if paused {
                        return Ok(taken as u64);
                    }
                }
                Err(error) => return Err(gone(error)),
            }
        }
    }
}
