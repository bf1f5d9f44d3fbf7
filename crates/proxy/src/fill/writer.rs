//! The writing end of a fill, for the task that receives the bytes from the origin.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;

use super::window::Window;
use super::{Cover, End, Fill, INTERIM_MAX, wake_all};
use crate::origin::UpstreamError;

/// The writing end of a fill. The task that reads from the origin owns it. If it is dropped before it has
/// ended the fill, the fill fails.
#[derive(Debug)]
pub(crate) struct FillWriter<H> {
    fill: Arc<Fill<H>>,
}

impl<H> FillWriter<H> {
    pub(super) fn new(fill: Arc<Fill<H>>) -> Self {
        Self { fill }
    }

    pub(crate) fn fill(&self) -> &Arc<Fill<H>> {
        &self.fill
    }

    /// Returns the head of the answer, if it was already given to the followers.
    pub(crate) fn published(&self) -> Option<Arc<H>> {
        self.fill.published()
    }

    /// Number of requests that follow the fill, including requests that read missed bytes from the store.
    pub(crate) fn followers(&self) -> usize {
        self.fill.followers()
    }

    /// Sets the offset at which the body begins. If the fill fetches bytes of a stored large object, `cover`
    /// is the range of these bytes. Called before any byte is pushed.
    pub(crate) fn begin(&self, start: u64, cover: Option<Cover>) {
        let mut state = self.fill.state.lock();
        state.start = start;
        state.free = start;
        state.window = Window::starting_at(start);
        for reader in state.readers.iter_mut().flatten() {
            reader.at = reader.at.max(start);
        }
        state.cover = cover;
    }

    /// Notes that all bytes before `offset` can be read back from the store.
    pub(crate) fn readable(&self, offset: u64) {
        let mut state = self.fill.state.lock();
        state.free = state.free.max(offset);
        state.make_room();
    }

    /// True if the fill has reached the offset at which another fill continues.
    pub(crate) fn is_overtaken(&self) -> bool {
        let state = self.fill.state.lock();
        let end = state.window.end();
        state
            .cover
            .is_some_and(|cover| cover.continues && end >= cover.end)
    }

    /// Passes an interim response on to the leader (the request that started the fill).
    pub(crate) fn interim(&self, text: Bytes) {
        let mut state = self.fill.state.lock();
        if state.interim.len() < INTERIM_MAX {
            state.interim.push(text);
        }
        let wakers = state.take_wakers();
        drop(state);
        wake_all(wakers);
    }

    /// Gives the head to the followers. `keep` is the size of the window in bytes (`usize::MAX`: all bytes
    /// stay in memory).
    pub(crate) fn head(&self, head: H, keep: usize) {
        let mut state = self.fill.state.lock();
        state.head = Some(Arc::new(head));
        state.keep = keep;
        let wakers = state.take_wakers();
        drop(state);
        wake_all(wakers);
    }

    /// Sets the size of the window in bytes.
    pub(crate) fn keep(&self, keep: usize) {
        let mut state = self.fill.state.lock();
        state.keep = keep;
        state.make_room();
    }

    /// Number of body bytes pushed so far.
    pub(crate) fn pushed(&self) -> u64 {
        let state = self.fill.state.lock();
        state.window.end() - state.start
    }

    /// Adds body bytes, and wakes followers that wait.
    pub(crate) fn push(&self, bytes: Bytes) {
        let mut state = self.fill.state.lock();
        state.window.push(bytes);
        state.make_room();
        let wakers = state.take_wakers();
        drop(state);
        wake_all(wakers);
    }

    /// Waits until the window has space for more bytes. Followers that slow other followers down for longer
    /// than `lag` are released. Cancel safe.
    pub(crate) async fn room(&self, lag: Duration) {
        if self.fill.state.lock().make_room() {
            // The usual case: no timer is needed.
            return;
        }
        while tokio::time::timeout(lag, self.wait_for_room())
            .await
            .is_err()
        {
            self.release_laggards();
        }
    }

    /// Waits until no request follows the fill any more. Cancel safe.
    pub(crate) async fn abandoned(&self) {
        poll_fn(|cx| {
            let mut state = self.fill.state.lock();
            if state.readers.iter().all(Option::is_none) {
                return Poll::Ready(());
            }
            state.writer = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    async fn wait_for_room(&self) {
        poll_fn(|cx| {
            let mut state = self.fill.state.lock();
            if state.make_room() {
                return Poll::Ready(());
            }
            state.writer = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Releases the followers in the older half of the window, if another follower waits for bytes. If no
    /// follower waits for bytes, all followers are equally slow, and no follower slows another down.
    fn release_laggards(&self) {
        let mut guard = self.fill.state.lock();
        let state = &mut *guard;
        let end = state.window.end();
        let base = state.window.base();
        let someone_waits = state.following().any(|r| r.at == end && !r.aside);
        if !someone_waits {
            return;
        }
        // The window is full. Its oldest half (the bytes before `line`) cannot be dropped, because the
        // followers in this half still need the bytes.
        let line = base + (end - base) / 2;
        let mut wakers = Vec::new();
        for reader in state.readers.iter_mut().flatten() {
            if reader.at <= line && !reader.lagged {
                reader.lagged = true;
                wakers.extend(reader.waker.take());
            }
        }
        drop(guard);
        wake_all(wakers);
    }

    /// Ends the fill with a complete body.
    pub(crate) fn finish(self, trailers: Bytes) {
        self.end(End::Complete(trailers));
    }

    /// Ends the fill, because another fill fetches the bytes that follow.
    pub(crate) fn stop(self) {
        self.end(End::Stopped);
    }

    /// Ends the fill, because the fetch failed.
    pub(crate) fn fail(self, error: UpstreamError) {
        self.end(End::Failed(error));
    }

    fn end(&self, end: End) {
        let mut state = self.fill.state.lock();
        if state.end.is_none() {
            state.end = Some(end);
        }
        let wakers = state.take_wakers();
        drop(state);
        wake_all(wakers);
    }
}

impl<H> Drop for FillWriter<H> {
    fn drop(&mut self) {
        self.end(End::Failed(UpstreamError::GivenUp));
    }
}
