//! Fills: fetches that belong to no client.
//!
//! A fill is one writer (the task that reads the origin's answer) and any number of followers
//! (requests, on any worker), joined by shared state under a short lock. Followers are woken by
//! bytes, never by a timer. Unless all bytes are kept, the slowest follower in the window paces the
//! writer. A follower that lags for too long is released: it reads the missed bytes from the store and
//! comes back, or goes on alone. A late follower reads the beginning from the store as well.
//!
//! Offsets are those of the whole body: a fill of a part begins where the part does.
//!
//! `fetch` reads the origin's answer, and writes it into the fill. The room may use origin, mirrors, cache,
//! http, state, sites and access.

mod crowd;
pub(crate) mod fetch;
mod follower;
mod gap;
mod map;
mod order;
mod window;
mod writer;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;

use bytes::Bytes;
use foxy_base::{KeyHash, rule};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::time::Instant;

use crate::origin::UpstreamError;
use window::Window;

pub(crate) use follower::{Follower, HeadEvent, Next, Own};
pub(crate) use gap::{Cover, Gap, GapWanted};
pub(crate) use map::{FillMap, Joined};
pub(crate) use order::{Claim, Order, Selection, Version};
pub(crate) use writer::FillWriter;

/// Why a follower has to go on alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// The follower held the others back, or the fill goes no further: the missing bytes must come from
    /// elsewhere.
    Lagged,
    /// Another fetch for the same key has received its head first: join that one.
    Elsewhere,
    /// The fetch failed.
    Failed(UpstreamError),
}

/// How a fill ended.
#[derive(Clone, Debug)]
enum End {
    /// Every byte was delivered; the text of the trailer fields.
    Complete(Bytes),
    /// Another fill brings the bytes that follow.
    Stopped,
    Failed(UpstreamError),
}

/// One fetch in progress. `H` is what is known at header time.
#[derive(Debug)]
pub(crate) struct Fill<H> {
    /// Where it can be joined.
    slot: KeyHash,
    hash: KeyHash,
    key: Bytes,
    /// Hash of the primary key: what a purge or an unsafe request names.
    base: KeyHash,
    state: Mutex<State<H>>,
    /// The result may be stored; held while it is being stored.
    storable: Mutex<bool>,
    /// Later requests do not join it: it is outdated, or its key was purged.
    closed: AtomicBool,
    /// The place of its head in the order of versions is decided; the head is published a moment later.
    judged: AtomicBool,
    /// The number drawn when the origin was asked; 0 before that.
    number: AtomicU64,
    /// When the first request began to wait.
    started: Instant,
    /// A further fetch, started because another one for the same key waited too long.
    second: bool,
    /// Another fetch for the same key runs that its request could not join any more.
    sequel: bool,
}

#[derive(Debug)]
struct State<H> {
    interim: Vec<Bytes>,
    head: Option<Arc<H>>,
    window: Window,
    /// Where the body begins.
    start: u64,
    /// Bytes to keep at least, even when every follower has them.
    keep: usize,
    /// All bytes before this offset can be read back from the store.
    free: u64,
    /// The bytes of a stored large object that this brings.
    cover: Option<Cover>,
    end: Option<End>,
    readers: Vec<Option<Reader>>,
    /// Further fetches started by waiting requests because the head is overdue.
    seconds: u32,
    /// Another fetch has brought a head first.
    elsewhere: bool,
    /// Those that come are to share the next fetch.
    turns_away: bool,
    /// The writer, waiting for room or for a follower to leave.
    writer: Option<Waker>,
}

#[derive(Debug, Default)]
struct Reader {
    at: u64,
    waker: Option<Waker>,
    lagged: bool,
}

/// Interim responses kept for followers; more are dropped.
const INTERIM_MAX: usize = 8;

impl<H> Fill<H> {
    fn new(slot: KeyHash, hash: KeyHash, key: Bytes, base: KeyHash) -> Self {
        Self {
            slot,
            hash,
            key,
            base,
            state: Mutex::new(State {
                interim: Vec::new(),
                head: None,
                window: Window::default(),
                start: 0,
                keep: usize::MAX,
                free: 0,
                cover: None,
                end: None,
                readers: Vec::new(),
                seconds: 0,
                elsewhere: false,
                turns_away: false,
                writer: None,
            }),
            storable: Mutex::new(true),
            closed: AtomicBool::new(false),
            judged: AtomicBool::new(false),
            number: AtomicU64::new(0),
            started: Instant::now(),
            second: false,
            sequel: false,
        }
    }

    /// A fill that nobody else can join, and its first follower.
    fn start(hash: KeyHash, key: Bytes, base: KeyHash) -> (FillWriter<H>, Follower<H>) {
        Self::new(hash, hash, key, base).started()
    }

    fn started(self) -> (FillWriter<H>, Follower<H>) {
        let fill = Arc::new(self);
        let follower = fill.lead();
        (FillWriter::new(Arc::clone(&fill)), follower)
    }

    /// Forbids storing the result from now on, because its object was purged or changed. Returns after
    /// a store under way is done, so that a removal that follows removes its result as well.
    pub(crate) fn forbid_storing(&self) {
        *self.storable.lock() = false;
    }

    /// Runs `store` unless storing is forbidden; a later prohibition waits for it.
    pub(crate) fn if_storable<R>(&self, store: impl FnOnce() -> R) -> Option<R> {
        let storable = self.storable.lock();
        let storable = rule!("fill: what must not be stored is not", *storable, true);
        storable.then(store)
    }

    /// The key that the fill was started for.
    pub(crate) fn key(&self) -> &Bytes {
        &self.key
    }

    /// Requests that hold a place in it, released ones included.
    pub(crate) fn followers(&self) -> usize {
        self.state.lock().readers.iter().flatten().count()
    }

    /// Hash of [`key`](Self::key).
    pub(crate) fn hash(&self) -> KeyHash {
        self.hash
    }

    pub(crate) fn published(&self) -> Option<Arc<H>> {
        self.state.lock().head.clone()
    }

    fn has_failed(&self) -> bool {
        matches!(self.state.lock().end, Some(End::Failed(_)))
    }

    /// True if several requests want the same answer at the same time: they follow this fill, or they came
    /// too late for an earlier one.
    pub(crate) fn is_shared(&self) -> bool {
        self.sequel || self.followers() > 1
    }

    /// Nobody joins from now on: there is no memory to store it for one request. Those that come share
    /// the next fetch, which has memory of its own.
    pub(crate) fn turn_away(&self) {
        self.state.lock().turns_away = true;
    }

    /// True if nobody can join it now or later: its first bytes are gone and the store does not get them,
    /// or it turns others away.
    fn is_past(&self) -> bool {
        let state = self.state.lock();
        let stored = state.cover.is_some() || state.free > state.start;
        state.turns_away || state.window.base() > state.start && !stored
    }

    /// True if several fetches for the same key are waited for.
    pub(crate) fn has_rivals(&self) -> bool {
        self.second || self.state.lock().seconds > 0
    }

    /// Returns whether the result may be stored, as far as is known now.
    #[cfg(test)]
    pub(crate) fn is_storable(&self) -> bool {
        *self.storable.lock()
    }

    /// The number drawn when the origin was asked; `None` before that.
    pub(crate) fn number(&self) -> Option<u64> {
        Some(self.number.load(Ordering::Acquire)).filter(|number| *number > 0)
    }

    /// Place of the request that starts this fill.
    fn lead(self: &Arc<Self>) -> Follower<H> {
        let mut state = self.state.lock();
        let at = state.start;
        let id = state.enter(at);
        drop(state);
        Follower::leading(Arc::clone(self), id)
    }

    /// A new follower, if it can still have every byte.
    fn join(self: &Arc<Self>) -> Option<Follower<H>> {
        let mut state = self.state.lock();
        let all = rule!(
            "fill: nobody joins whose first bytes are gone",
            state.window.base() <= state.free.max(state.start),
            true
        );
        let ended = matches!(state.end, Some(End::Failed(_) | End::Stopped));
        if !all || ended || state.turns_away {
            return None;
        }
        let at = state.start;
        let id = state.enter(at);
        let waits = state.head.is_none();
        drop(state);
        Some(Follower::joining(Arc::clone(self), id, waits))
    }
}

impl<H> State<H> {
    fn enter(&mut self, at: u64) -> usize {
        let reader = Some(Reader {
            at,
            ..Reader::default()
        });
        if let Some(id) = self.readers.iter().position(Option::is_none) {
            self.readers[id] = reader;
            return id;
        }
        self.readers.push(reader);
        self.readers.len() - 1
    }

    /// The offset of the slowest follower that needs the window; `None` if there is no such follower.
    fn slowest(&self) -> Option<u64> {
        let base = self.window.base();
        self.following()
            .map(|r| r.at)
            .filter(|at| *at >= base)
            .min()
    }

    /// Those that were not released.
    fn following(&self) -> impl Iterator<Item = &Reader> {
        self.readers.iter().flatten().filter(|r| !r.lagged)
    }

    /// Drops the bytes that nobody needs; returns whether there is room for more.
    fn make_room(&mut self) -> bool {
        if self.keep == usize::MAX {
            return true;
        }
        // One byte less than is kept: a full window makes room as soon as nobody needs its start.
        let keep = self.keep.saturating_sub(1);
        let (slowest, base) = (self.slowest(), self.window.base());
        // A follower that reads back from the store still needs bytes that are not there yet. A follower
        // within the window stays there: stored bytes may be overwritten or superseded at any time.
        let behind = self.following().any(|r| r.at < base);
        let limit = if behind { self.free } else { u64::MAX };
        let passed = slowest.unwrap_or(self.window.end());
        self.window.trim(passed.min(limit), keep);
        self.window.len() < self.keep.max(1) || slowest.is_none() && !behind
    }

    fn take_wakers(&mut self) -> Vec<Waker> {
        self.readers
            .iter_mut()
            .flatten()
            .filter_map(|r| r.waker.take())
            .collect()
    }
}

fn wake_all(wakers: Vec<Waker>) {
    for waker in wakers {
        waker.wake();
    }
}
