//! The reading end of a fill, for one request that receives its bytes.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use foxy_base::rule;

use super::{End, Fill, FillMap, Released};

/// An event that a follower receives before the body.
#[derive(Debug)]
pub(crate) enum HeadEvent<H> {
    /// An interim response, as text to pass on.
    Interim(Bytes),
    /// The head of the answer.
    Head(Arc<H>),
}

/// An event that a follower receives while the body arrives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// More bytes.
    Data(Bytes),
    /// The end of the body, and the text of the trailer fields.
    End(Bytes),
}

/// Proof that a request itself started the fetch whose answer it gets. Only the [`Follower`] of the request
/// that started the fill (the leader) returns such a proof.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    _private: (),
}

/// One request as a follower of a fill. When this value is dropped, the request leaves the fill.
#[derive(Debug)]
pub(crate) struct Follower<H> {
    pub(super) fill: Arc<Fill<H>>,
    id: usize,
    interim_seen: usize,
    /// True if the request started the fill.
    leads: bool,
    /// True if the head had not arrived when the request joined.
    waits: bool,
    #[cfg(test)]
    taken: u64,
}

impl<H> Follower<H> {
    /// Returns the follower for the request that started the fill.
    pub(super) fn leading(fill: Arc<Fill<H>>, id: usize) -> Self {
        let mut follower = Self::joining(fill, id, true);
        follower.leads = true;
        follower
    }

    /// Returns the follower for a request that did not start the fill. `waits` is true if the request joined
    /// before the head arrived.
    pub(super) fn joining(fill: Arc<Fill<H>>, id: usize, waits: bool) -> Self {
        Self {
            fill,
            id,
            interim_seen: 0,
            leads: false,
            waits,
            #[cfg(test)]
            taken: 0,
        }
    }

    /// Returns the proof for the request that started the fill; `None` for all other requests.
    pub(crate) fn own(&self) -> Option<Own> {
        let leads = rule!(
            "fill: an answer is its own only for the request that started the fetch",
            self.leads,
            true
        );
        leads.then_some(Own { _private: () })
    }

    /// True if another request started the fill, so that this request shares the answer.
    pub(crate) fn collapsed(&self) -> bool {
        !self.leads
    }

    /// True if the request joined before the head arrived.
    pub(crate) fn waited(&self) -> bool {
        self.waits
    }

    /// Offset after the last body byte that this follower has taken.
    #[cfg(test)]
    pub(crate) fn position(&self) -> u64 {
        self.taken
    }

    /// Polls for the next interim response, or the head.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<HeadEvent<H>, Released>> {
        let mut state = self.fill.state.lock();
        // Only the leader gets interim answers, because it is not known yet whether other requests may share
        // the answer.
        let leads = rule!("fill: interim answers are for the leader", self.leads, true);
        if leads && let Some(interim) = state.interim.get(self.interim_seen) {
            self.interim_seen += 1;
            return Poll::Ready(Ok(HeadEvent::Interim(interim.clone())));
        }
        if let Some(head) = &state.head {
            return Poll::Ready(Ok(HeadEvent::Head(Arc::clone(head))));
        }
        if state.elsewhere {
            return Poll::Ready(Err(Released::Elsewhere));
        }
        if let Some(End::Failed(error)) = state.end {
            return Poll::Ready(Err(Released::Failed(error)));
        }
        if let Some(reader) = &mut state.readers[self.id] {
            reader.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Polls until the first bytes have arrived, or until it is clear that none will arrive.
    pub(crate) fn poll_begun(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Released>> {
        let mut state = self.fill.state.lock();
        if state.window.end() > state.start {
            return Poll::Ready(Ok(()));
        }
        match state.end {
            Some(End::Failed(error)) => return Poll::Ready(Err(Released::Failed(error))),
            Some(_) => return Poll::Ready(Ok(())),
            None => {}
        }
        if let Some(reader) = &mut state.readers[self.id] {
            reader.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Polls for the next body bytes, or the end.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Next, Released>> {
        match self.try_next() {
            Some(next) => Poll::Ready(next),
            None => {
                let mut state = self.fill.state.lock();
                let (end, ended) = (state.window.end(), state.end.is_some());
                let Some(reader) = &mut state.readers[self.id] else {
                    return Poll::Ready(Err(Released::Lagged));
                };
                reader.waker = Some(cx.waker().clone());
                if reader.at < end || ended || reader.lagged {
                    // Since `try_next` unlocked the state, bytes or the end have arrived, or the follower was
                    // released. So the task is woken immediately.
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    }

    /// Returns the bytes that are available now, without waiting.
    pub(crate) fn try_next(&mut self) -> Option<Result<Next, Released>> {
        let mut guard = self.fill.state.lock();
        let state = &mut *guard;
        let reader = state.readers[self.id].as_mut()?;
        if reader.lagged || reader.at < state.window.base() {
            reader.lagged = !reader.aside;
            return Some(Err(Released::Lagged));
        }
        reader.aside = false;
        if let Some(bytes) = state.window.read(reader.at) {
            reader.at += bytes.len() as u64;
            #[cfg(test)]
            {
                self.taken = reader.at;
            }
            // A writer that keeps all bytes never waits for space in the window, so it is not woken.
            let held = state.keep != usize::MAX;
            let writer = if held { state.writer.take() } else { None };
            drop(guard);
            if let Some(writer) = writer {
                writer.wake();
            }
            return Some(Ok(Next::Data(bytes)));
        }
        match &state.end {
            Some(End::Complete(trailers)) => Some(Ok(Next::End(trailers.clone()))),
            Some(End::Stopped) => Some(Err(Released::Lagged)),
            Some(End::Failed(error)) => Some(Err(Released::Failed(*error))),
            None => None,
        }
    }

    /// Continues at offset `at`, after the follower has read the missed bytes from the store. Returns false
    /// if the byte at `at` is not in memory and the fill will not fetch it. In this case, a follower that has
    /// stood aside continues to stand aside if the store has this byte and all bytes that have left the
    /// window. Any other follower is released.
    pub(crate) fn resume(&self, at: u64) -> bool {
        let mut guard = self.fill.state.lock();
        let state = &mut *guard;
        let comes = state.can_follow(at);
        let stored = state.is_stored() && (state.start..state.free).contains(&at);
        if let Some(reader) = state.readers[self.id].as_mut() {
            reader.at = at;
            reader.aside &= !comes && stored;
            reader.lagged = !comes && !reader.aside;
        }
        comes
    }

    /// True if this follower can [stand aside](Self::stand_aside) and still receive each byte. This is the
    /// case if the store has the first bytes of the body, and all bytes that have left the window.
    pub(crate) fn can_stand_aside(&self) -> bool {
        self.fill.state.lock().is_stored()
    }

    /// Lets the writer continue without waiting for this follower. From now on this follower reads the bytes
    /// that leave the window from the store. If `needs_all` is true, and the store has the first bytes of the
    /// body and all bytes that have left the window so far, the bytes that are not stored yet stay in the
    /// window. Otherwise the follower is released.
    pub(crate) fn stand_aside(&self, needs_all: bool) {
        let mut state = self.fill.state.lock();
        let aside = needs_all && state.is_stored();
        if let Some(reader) = state.readers[self.id].as_mut() {
            reader.aside = aside;
            reader.lagged = !aside;
        }
        let writer = state.writer.take();
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
    }

    /// Returns the newest form of the head, if it has arrived.
    pub(crate) fn head(&self) -> Option<Arc<H>> {
        self.fill.published()
    }

    /// Returns the hash of the key for which the fill was started.
    pub(crate) fn hash(&self) -> foxy_base::KeyHash {
        self.fill.hash()
    }

    /// See [`Fill::forbid_storing`].
    pub(crate) fn forbid_storing(&self) {
        self.fill.forbid_storing();
    }

    /// True if later requests for the same answer join another fill, and `takes` returns true for the head of
    /// that fill.
    pub(crate) fn is_outdone(&self, map: &FillMap<H>, takes: impl Fn(&H) -> bool) -> bool {
        let now = map.open(self.fill.slot);
        let other = now.filter(|fill| !Arc::ptr_eq(fill, &self.fill));
        other
            .and_then(|fill| fill.published())
            .is_some_and(|head| takes(&head))
    }

    /// Replaces the head by a newer form after a validation. The newer form decides whether later requests
    /// may have the answer.
    pub(crate) fn update_head(&self, head: Arc<H>) {
        self.fill.state.lock().head = Some(head);
    }

    /// Returns the offset of the first byte in memory, if this follower was released or if its next byte has
    /// left the memory. Otherwise returns `None`.
    pub(crate) fn is_behind(&self) -> Option<u64> {
        let state = self.fill.state.lock();
        let (reader, base) = (state.readers[self.id].as_ref(), state.window.base());
        let behind = reader.is_none_or(|reader| reader.lagged || reader.at < base);
        behind.then_some(base)
    }

    /// Returns true if more bytes may arrive.
    pub(crate) fn is_running(&self) -> bool {
        self.fill.state.lock().end.is_none()
    }
}

impl<H> Drop for Follower<H> {
    fn drop(&mut self) {
        let mut state = self.fill.state.lock();
        state.readers[self.id] = None;
        let last = state.readers.iter().all(Option::is_none);
        let held = state.keep != usize::MAX;
        let writer = if last || held {
            state.writer.take()
        } else {
            None
        };
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
    }
}
