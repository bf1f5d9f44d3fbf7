//! Supplies the bytes of a large body. They come from its fragments in the store, or from a running fill (a
//! fetch that several requests can share). If no running fill fetches a missing byte, a new fill requests it
//! from the origin by a range request.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use foxy_http_rules::range::Span;
use foxy_store::Object;

use crate::Event;
use crate::cache::owned_request::OwnedRequest;
use crate::cache::serve::find::fragment;
use crate::cache::serve::fragments::{FragmentId, HeldFragment};
use crate::fill::fetch::{self, FillHead, strong_etag};
use crate::fill::{Follower, Gap, GapWanted, Next, Released};
use crate::http::connection::Queued;
use crate::origin::UpstreamError;
use crate::state::ledger::Pressure;
use crate::state::local::Local;

/// A fragment that is being read ahead, and the right to hold it in memory.
type Reading = (
    Rc<HeldFragment>,
    tokio::task::JoinHandle<Option<Arc<Object>>>,
);

/// Largest number of fills that are tried for the bytes at one offset. The first fill may have failed for a
/// reason that concerns only another request.
const TRIES: u8 = 3;

/// The sources of the bytes of one large body.
#[derive(Debug)]
pub(crate) struct Supply {
    req: Rc<OwnedRequest>,
    head: Arc<Object>,
    /// A fill that fetches bytes of the body. `behind` is true while this request takes no bytes from the
    /// fill, for example because the fill has moved past the next byte of this request.
    follower: Option<Follower<FillHead>>,
    behind: bool,
    /// Offset of the next byte that the fill delivers to this request.
    position: u64,
    /// True if missing bytes may be requested from the origin.
    divisible: bool,
    /// The fragment that is being sent.
    held: Option<Rc<HeldFragment>>,
    /// The next fragment, which is being read ahead.
    ahead: Option<Reading>,
    /// The offset at which a fill was last searched for or started, and the number of tries at this offset.
    /// At most [`TRIES`] tries are made at one offset.
    asked: (u64, u8),
    /// A fragment that should be in the store, but cannot be read.
    unreadable: Option<u32>,
    /// True if bytes came from a fill that another request had started.
    pub(crate) collapsed: bool,
}

/// A piece of a body.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    /// The end of a body whose length was not known, with its trailers.
    End(Bytes),
}

/// The error that bytes are not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing;

impl Supply {
    /// Creates the supply for the body of a large object. `head` is the stored head of the object.
    pub(crate) fn new(req: &Rc<OwnedRequest>, head: &Arc<Object>) -> Self {
        let divisible = req.may_fetch_parts() && strong_etag(head.fields()).is_some();
        Self {
            req: Rc::clone(req),
            head: Arc::clone(head),
            follower: None,
            behind: false,
            position: 0,
            divisible,
            held: None,
            ahead: None,
            asked: (u64::MAX, 0),
            unreadable: None,
            collapsed: false,
        }
    }

    /// Creates the supply for a request that follows a fill. The next bytes of the answer come from the fill
    /// if the fill has them in memory or will fetch them. Otherwise they come from the store or from another
    /// fill. If `stored` is false, missing bytes are never requested from the origin.
    pub(crate) fn behind(
        req: &Rc<OwnedRequest>,
        head: &Arc<Object>,
        follower: Follower<FillHead>,
        stored: bool,
    ) -> Self {
        let mut supply = Self::new(req, head);
        supply.divisible &= stored;
        supply.follower = Some(follower);
        supply.behind = true;
        supply
    }

    /// The head (fields and length) of the object.
    pub(crate) fn head(&self) -> &Object {
        &self.head
    }

    /// True if the bytes that were not sent yet can be read from the store or requested from the origin
    /// again.
    pub(crate) fn can_pause(&self) -> bool {
        self.follower.is_none() && self.divisible
    }

    /// True if the next bytes come from the store, and not from a fill.
    pub(crate) fn is_stored(&self) -> bool {
        self.follower.is_none()
    }

    /// True if the answer may give up its reservation in the kernel's send buffers (`queued`) and pause: the
    /// store has its next bytes, or missing bytes can be requested from the origin. If missing bytes can come
    /// only from a running fill, the conditions of [`can_continue_from_store`] must be met.
    pub(crate) fn can_stand_aside(&self, local: &Local, queued: &Queued) -> bool {
        let Some(follower) = &self.follower else {
            return true;
        };
        self.divisible || !follower.is_running() || can_continue_from_store(local, queued, follower)
    }

    /// Releases the memory of the next bytes, and lets the fill continue without this request. Called before
    /// a long wait.
    pub(crate) fn stand_aside(&mut self) {
        self.pause();
        if let Some(follower) = &self.follower {
            follower.stand_aside(!self.divisible);
            self.behind = true;
        }
    }

    /// Releases the fragment that is being sent, and the fragment that was read ahead.
    pub(crate) fn pause(&mut self) {
        self.held = None;
        if let Some((_, reading)) = self.ahead.take() {
            reading.abort();
        }
    }

    fn unit(&self) -> u64 {
        u64::from(self.head.fragment_size().max(1))
    }

    fn id(&self, n: u32) -> FragmentId {
        FragmentId::of(&self.head, n)
    }

    fn number(&self, at: u64) -> u32 {
        u32::try_from(at / self.unit()).unwrap_or(u32::MAX)
    }

    fn wanted(&self, at: u64, until: u64) -> GapWanted<'_> {
        GapWanted {
            key: self.head.key(),
            hash: self.head.hash(),
            base: self.req.base_hash,
            version: self.head.meta().version,
            at,
            until,
            unit: self.unit(),
        }
    }

    /// Returns the first byte of `span` whose fragment is not stored, according to the index in memory.
    pub(crate) fn first_missing(&self, local: &Local, span: Span) -> Option<u64> {
        let engine = &local.proxy.engine;
        let (first, last) = (self.number(span.start), self.number(span.end - 1));
        let absent = (first..=last).find(|n| !engine.has_fragment(&self.head, *n))?;
        Some(span.start.max(u64::from(absent) * self.unit()))
    }

    /// Returns true if the head of an answer may promise all of `span`: each byte is stored, is being
    /// fetched, or can be fetched.
    pub(crate) fn can_promise(&self, local: &Local, span: Span) -> bool {
        if self.divisible {
            return true;
        }
        let Some(from) = self.first_missing(local, span) else {
            return true;
        };
        let engine = &local.proxy.engine;
        (self.number(from)..=self.number(span.end - 1)).all(|n| {
            let at = span.start.max(u64::from(n) * self.unit());
            engine.has_fragment(&self.head, n)
                || local.proxy.fills.brings(&self.wanted(at, span.end))
        })
    }

    /// Requests the bytes from `at` on, which are not stored. Called before the head of the answer promises
    /// these bytes, because the origin may have a different version by now. The bytes are read from the fill
    /// later, when they are sent.
    ///
    /// # Errors
    /// Returned if the origin has another version, or does not answer.
    pub(crate) async fn ask_ahead(
        &mut self,
        local: &Rc<Local>,
        at: u64,
        until: u64,
    ) -> Result<(), Missing> {
        self.ask_for(local, self.number(at), at, until)?;
        let Some(follower) = &mut self.follower else {
            return Ok(());
        };
        let begun = poll_fn(|cx| follower.poll_begun(cx)).await;
        begun.map_err(|_| Missing)
    }

    /// Returns the bytes from `at` on, at most up to `until`. Cancel safe.
    ///
    /// # Errors
    /// Returned if the bytes are not available, or if the origin has a different version by now.
    pub(crate) async fn next(
        &mut self,
        local: &Rc<Local>,
        at: u64,
        until: u64,
    ) -> Result<Piece, Missing> {
        // The next part of the answer may begin at another offset.
        self.behind |= at != self.position;
        // A fragment that was sent is released before any wait for memory or for the origin.
        let n = self.number(at);
        let id = self.id(n);
        self.held.take_if(|held| held.id() != id);
        loop {
            if self.follower.is_some() && !self.behind {
                if let Some(piece) = self.followed(local, at, until).await? {
                    return Ok(piece);
                }
                continue;
            }
            if let Some(follower) = &self.follower
                && follower.resume(at)
            {
                self.pause();
                (self.behind, self.position) = (false, at);
                continue;
            }
            if let Some(bytes) = self.stored(local, n, at, until).await {
                return Ok(Piece::Bytes(bytes));
            }
            if self.ask_for(local, n, at, until).is_err() {
                return self.at_last(local, n, at, until).await;
            }
        }
    }

    /// Returns the next piece from the fill. Returns `None` if the fill has no more bytes for this request.
    async fn followed(
        &mut self,
        local: &Local,
        at: u64,
        until: u64,
    ) -> Result<Option<Piece>, Missing> {
        let Some(follower) = &mut self.follower else {
            return Ok(None);
        };
        match poll_fn(|cx| follower.poll_next(cx)).await {
            Ok(Next::Data(bytes)) => {
                self.position = at + bytes.len() as u64;
                return Ok(Some(Piece::Bytes(clip(&bytes, until - at))));
            }
            Ok(Next::End(trailers)) if until == u64::MAX => return Ok(Some(Piece::End(trailers))),
            // A fill that fetches only a part of the body ends before the end of the body.
            Ok(Next::End(_)) => self.follower = None,
            Err(Released::Lagged) if follower.is_running() => self.behind = true,
            // `Elsewhere` occurs only during the wait for a head, which is over here.
            Err(Released::Lagged | Released::Elsewhere) => self.behind = !follower.resume(at),
            Err(Released::Failed(error)) => {
                self.follower = None;
                // If the origin has another version, the rest of this version is not available anywhere.
                // After other errors the request may try again.
                self.divisible &= error != UpstreamError::AnotherVersion;
                local.count(Event::FollowersReleased);
            }
        }
        Ok(None)
    }

    /// Returns the bytes of fragment `n` from the store.
    async fn stored(&mut self, local: &Rc<Local>, n: u32, at: u64, until: u64) -> Option<Bytes> {
        let id = self.id(n);
        let ahead = self.ahead.take().filter(|(held, _)| held.id() == id);
        let present = match ahead {
            Some((held, reading)) => {
                self.held = Some(held);
                reading.await.ok()?
            }
            None => self.read(local, n, false).await,
        }?;
        let bytes = self.clipped(&present, at, until)?;
        let next = at + bytes.len() as u64;
        let roomy = local.proxy.ledger.pressure() == Pressure::Low;
        if next < until
            && roomy
            && local.proxy.engine.has_fragment(&self.head, n + 1)
            && let Some(held) = local.fragments.try_hold(
                &local.proxy.ledger,
                self.id(n + 1),
                self.head.fragment_size(),
            )
        {
            let (local, head) = (Rc::clone(local), Arc::clone(&self.head));
            let there = Rc::clone(&held);
            let reading = tokio::task::spawn_local(async move {
                held_fragment(&local, &there, &head, n + 1, false).await
            });
            self.ahead = Some((held, reading));
        }
        Some(bytes)
    }

    /// Returns fragment `n`. Waits for memory before the read.
    async fn read(&mut self, local: &Local, n: u32, last: bool) -> Option<Arc<Object>> {
        let id = self.id(n);
        let held = match self.held.take().filter(|held| held.id() == id) {
            Some(held) => held,
            None => {
                let bytes = self.head.fragment_size();
                local.fragments.hold(local, id, bytes).await?
            }
        };
        let held = self.held.insert(held);
        held_fragment(local, held, &self.head, n, last).await
    }

    /// Returns bytes from the store even if its disk is slow, because there is no other source of these
    /// bytes.
    async fn at_last(
        &mut self,
        local: &Local,
        n: u32,
        at: u64,
        until: u64,
    ) -> Result<Piece, Missing> {
        let present = self.read(local, n, true).await;
        let bytes = present.and_then(|present| self.clipped(&present, at, until));
        bytes.map(Piece::Bytes).ok_or(Missing)
    }

    /// Returns the bytes of a fragment within `at..until`.
    fn clipped(&self, fragment: &Object, at: u64, until: u64) -> Option<Bytes> {
        let skip = usize::try_from(at % self.unit()).ok()?;
        let bytes = fragment.body().get(skip..).filter(|b| !b.is_empty())?;
        Some(clip(&fragment.body().slice_ref(bytes), until - at))
    }

    /// Joins the fill that fetches fragment `n`, or starts a fill.
    fn ask_for(&mut self, local: &Rc<Local>, n: u32, at: u64, until: u64) -> Result<(), Missing> {
        self.asked = match self.asked {
            (asked, TRIES..) if asked == at => return Err(Missing),
            (asked, times) if asked == at => (at, times + 1),
            _ => (at, 1),
        };
        let proxy = &local.proxy;
        let absent = |n| !proxy.engine.has_fragment(&self.head, n);
        if !self.divisible {
            // The fragment may have been stored since the caller searched for it. Then no fill fetches the
            // fragment any more, and the result is `Missing`.
            let wanted = self.wanted(at, until);
            self.follower = Some(proxy.fills.bringing(&wanted).ok_or(Missing)?);
            (self.behind, self.position, self.collapsed) = (false, at, true);
            return Ok(());
        }
        match proxy.fills.gap(&self.wanted(at, until), absent) {
            Gap::Follows(follower) => {
                local.count(Event::Followers);
                self.follower = Some(follower);
                self.collapsed = true;
            }
            Gap::Starts(writer, follower, cover) => {
                if self.unreadable != Some(n) && !absent(n) {
                    // The fragment is stored by now: its fill has just ended.
                    self.unreadable = Some(n);
                    proxy.fills.leave(writer.fill());
                    return Ok(());
                }
                fetch::spawn_gap(local, &self.req, &self.head, cover, writer);
                self.follower = Some(follower);
            }
        }
        (self.behind, self.position) = (false, at);
        Ok(())
    }
}

/// True if an answer that follows a running fill may stand aside: it lets the fill continue, and later reads
/// the bytes from the store. Reads from the store cost memory, and a fast answer ends soon. So the answer
/// must have had its reservation for some time, and no connection may wait to be served. The stores must
/// not be congested, because a congested store may refuse further bytes. The store must have all bytes that
/// the fill no longer has in memory ([`Follower::can_stand_aside`]).
pub(crate) fn can_continue_from_store(
    local: &Local,
    queued: &Queued,
    follower: &Follower<FillHead>,
) -> bool {
    let has_room = local.entrance.waiting() == 0 && !local.proxy.engine.is_congested();
    has_room && queued.has_lasted(local) && follower.can_stand_aside()
}

/// Returns fragment `n`, from another request that holds it or from the store.
async fn held_fragment(
    local: &Local,
    held: &HeldFragment,
    head: &Arc<Object>,
    n: u32,
    last: bool,
) -> Option<Arc<Object>> {
    if let Some(object) = held.object() {
        return Some(Arc::clone(object));
    }
    let object = fragment(local, head, n, last).await?;
    held.set(&object);
    Some(object)
}

/// Returns at most `want` bytes.
fn clip(bytes: &Bytes, want: u64) -> Bytes {
    let want = usize::try_from(want).unwrap_or(usize::MAX);
    bytes.slice(..bytes.len().min(want))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use foxy_base::{ManualClock, WallTime, key_hash};

    use super::*;
    use crate::testing::{connection, with_worker_at};

    const MEMORY: usize = 64 << 20;

    /// Each condition of [`can_continue_from_store`] is necessary.
    #[test]
    fn a_slow_answer_continues_from_a_store_that_keeps_up_while_no_connection_waits() {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
        let time = Arc::clone(&clock);
        with_worker_at(clock, MEMORY, |local| async move {
            let (engine, hash) = (&local.proxy.engine, key_hash(b"k"));
            let (writer, follower) = local.proxy.fills.uncollapsed(hash, b"k", hash);
            let (_client, link) = connection(&local).await;
            let queued = link.queue(&local, 1 << 20).await.unwrap();
            let continues = || can_continue_from_store(&local, &queued, &follower);
            writer.push(Bytes::from_static(b"stored"));
            writer.readable(6);
            assert!(!continues(), "the time slice has just begun");
            time.advance(Duration::from_secs(3));
            assert!(continues());
            let waiting = local.entrance.count_waiting();
            assert!(!continues(), "a connection waits to be served");
            drop(waiting);
            assert!(continues());
            engine.set_memory(1);
            assert!(engine.is_congested() && !continues());
            engine.set_memory(MEMORY as u64);
            assert!(continues());
            let (other, follower) = local.proxy.fills.uncollapsed(hash, b"k", hash);
            other.push(Bytes::from_static(b"not stored"));
            assert!(!can_continue_from_store(&local, &queued, &follower));
        });
    }
}
