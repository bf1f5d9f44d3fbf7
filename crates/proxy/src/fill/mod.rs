//! Fills: fetches that belong to no client, and that several requests can share.
//!
//! A fill has one writer (the task that reads the origin's answer) and any number of followers (requests, on
//! any worker). The writer and the followers share their state under a lock that is held only briefly.
//! Followers are woken when bytes arrive, never by a timer. The window contains the bytes of the body that
//! are still in memory. If the window has a limit, the writer waits for the slowest follower whose next byte
//! is in the window. A follower that lags for too long is released. It then reads the missed bytes from the
//! store and returns to the fill, or gets the rest of its answer without the fill. A follower that joins late
//! reads the beginning of the body from the store.
//!
//! All offsets count from the beginning of the complete body. So a fill that fetches a part begins at the
//! offset of the part.
//!
//! `fetch` reads the origin's answer, and writes it into the fill. This room (top-level module) may use the
//! rooms origin, mirrors, cache, http, state, sites and access.

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

/// The reason why a follower must get the rest of its answer without the fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// The follower slowed other followers down, or the fill ends before the bytes that the follower needs.
    /// The missing bytes must come from another source.
    Lagged,
    /// Another fetch for the same key has received its head before this fetch. The follower joins that other
    /// fetch.
    Elsewhere,
    /// The fetch failed.
    Failed(UpstreamError),
}

/// The end of a fill.
#[derive(Clone, Debug)]
enum End {
    /// Every byte was delivered. The value is the text of the trailer fields.
    Complete(Bytes),
    /// Another fill fetches the bytes that follow.
    Stopped,
    Failed(UpstreamError),
}

/// One fetch in progress. `H` is the type of the data that is known when the head has arrived.
#[derive(Debug)]
pub(crate) struct Fill<H> {
    /// The entry (slot) of the [`FillMap`] in which requests find this fill.
    slot: KeyHash,
    hash: KeyHash,
    key: Bytes,
    /// Hash of the primary key (the key without the values that select a variant). A purge or an unsafe
    /// request, such as a POST, names this key.
    base: KeyHash,
    state: Mutex<State<H>>,
    /// True if the result may be stored. Locked while the result is being stored.
    storable: Mutex<bool>,
    /// True if later requests do not join the fill, because it has ended, it is outdated, or its key was
    /// purged.
    closed: AtomicBool,
    /// True if the head has arrived, and the answer was compared with the other answers of its key and
    /// recorded among them (see [`order`]). Followers get the head immediately afterwards.
    judged: AtomicBool,
    /// The number that the fill drew immediately before it asked the origin; 0 before that. Answers are
    /// ordered by these numbers (see [`order`]).
    number: AtomicU64,
    /// The time when the fill was created for its first request, which then began to wait for the head.
    started: Instant,
    /// True if this is an additional fetch. It was started because requests waited too long for another fetch
    /// of the same key.
    second: bool,
    /// True if an earlier fetch for the same key still ran when this fill started, but this fill's request
    /// came too late to join it.
    sequel: bool,
}

#[derive(Debug)]
struct State<H> {
    interim: Vec<Bytes>,
    head: Option<Arc<H>>,
    window: Window,
    /// Offset at which the body begins.
    start: u64,
    /// Size of the window in bytes. A window with fewer bytes drops no bytes, even if every follower has
    /// received them. A window with this many bytes is full. `usize::MAX` keeps all bytes.
    keep: usize,
    /// Offset before which all bytes can be read back from the store.
    free: u64,
    /// The range of bytes that this fill fetches, if they belong to a large object whose head (fields and
    /// length) is already stored.
    cover: Option<Cover>,
    end: Option<End>,
    readers: Vec<Option<Reader>>,
    /// Number of additional fetches that waiting requests have started because the head of this fetch is
    /// overdue.
    seconds: u32,
    /// True if another fetch for the same key received its head before this fill. Waiting followers then
    /// leave this fill.
    elsewhere: bool,
    /// True if later requests cannot join this fill. They share the next fetch.
    turns_away: bool,
    /// The waker of the writer, while the writer waits for space in the window or until all followers have
    /// left.
    writer: Option<Waker>,
}

#[derive(Debug, Default)]
struct Reader {
    at: u64,
    waker: Option<Waker>,
    /// True if the follower was released.
    lagged: bool,
    /// True if the follower has stood aside: the follower waits for memory in the kernel's send buffers, or
    /// reads bytes from the store. The writer waits for the follower only if bytes that are not stored yet
    /// fill the window.
    aside: bool,
}

/// Largest number of interim responses that are kept for followers. Further responses are dropped.
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

    /// Starts a fill that no other request can join. Also returns its first follower.
    fn start(hash: KeyHash, key: Bytes, base: KeyHash) -> (FillWriter<H>, Follower<H>) {
        Self::new(hash, hash, key, base).started()
    }

    fn started(self) -> (FillWriter<H>, Follower<H>) {
        let fill = Arc::new(self);
        let follower = fill.lead();
        (FillWriter::new(Arc::clone(&fill)), follower)
    }

    /// Forbids storing the result from now on, because its object was purged or changed. If the result is
    /// being stored at this moment, waits until it is stored. So if the caller removes the object after this
    /// call, the stored result is removed too.
    pub(crate) fn forbid_storing(&self) {
        *self.storable.lock() = false;
    }

    /// Runs `store` unless storing is forbidden. A later call of [`forbid_storing`](Self::forbid_storing)
    /// waits until `store` has returned.
    pub(crate) fn if_storable<R>(&self, store: impl FnOnce() -> R) -> Option<R> {
        let storable = self.storable.lock();
        let storable = rule!("fill: what must not be stored is not", *storable, true);
        storable.then(store)
    }

    /// The key that the fill was started for.
    pub(crate) fn key(&self) -> &Bytes {
        &self.key
    }

    /// Number of requests that follow the fill, including requests that were released.
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
    /// too late for an earlier fill.
    pub(crate) fn is_shared(&self) -> bool {
        self.sequel || self.followers() > 1
    }

    /// Lets no further request join. Called if only one request follows this fill, and its answer cannot be
    /// stored because the memory of fills is used up. Later requests share the next fetch. That fetch may use
    /// the memory that is reserved for shared fills.
    pub(crate) fn turn_away(&self) {
        self.state.lock().turns_away = true;
    }

    /// True if no request can join the fill now or later: its first bytes have left the memory and are not
    /// stored, or it turns requests away.
    fn cannot_be_joined(&self) -> bool {
        let state = self.state.lock();
        let stored = state.cover.is_some() || state.free > state.start;
        state.turns_away || state.window.base() > state.start && !stored
    }

    /// True if several fetches of the same key run, because the head of the first fetch is overdue.
    pub(crate) fn has_rivals(&self) -> bool {
        self.second || self.state.lock().seconds > 0
    }

    /// Returns true if nothing has forbidden storing the result so far.
    #[cfg(test)]
    pub(crate) fn is_storable(&self) -> bool {
        *self.storable.lock()
    }

    /// Returns the number that the fill drew when it asked the origin; `None` before that.
    pub(crate) fn number(&self) -> Option<u64> {
        Some(self.number.load(Ordering::Acquire)).filter(|number| *number > 0)
    }

    /// Returns the first follower: the follower of the request that starts this fill.
    fn lead(self: &Arc<Self>) -> Follower<H> {
        let mut state = self.state.lock();
        let at = state.start;
        let id = state.enter(at);
        drop(state);
        Follower::leading(Arc::clone(self), id)
    }

    /// Returns a new follower; `None` if a follower that joins now could no longer get every byte.
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

    /// The offset of the slowest follower that reads from the window; `None` if there is no such follower.
    fn slowest(&self) -> Option<u64> {
        let base = self.window.base();
        self.following()
            .filter(|r| !r.aside)
            .map(|r| r.at)
            .filter(|at| *at >= base)
            .min()
    }

    /// Returns the readers that were not released.
    fn following(&self) -> impl Iterator<Item = &Reader> {
        self.readers.iter().flatten().filter(|r| !r.lagged)
    }

    /// Drops the bytes of the window that no follower needs. Returns true if the window has space for more
    /// bytes.
    fn make_room(&mut self) -> bool {
        if self.keep == usize::MAX {
            return true;
        }
        // Bytes are dropped until fewer than `self.keep` bytes are left. So a full window, which has at least
        // `self.keep` bytes, drops its first bytes as soon as no follower needs them.
        let keep = self.keep.saturating_sub(1);
        let (slowest, base) = (self.slowest(), self.window.base());
        // A follower that is behind the window or stands aside reads from the store. While there is such a
        // follower, the window keeps the bytes that are not stored yet. All other followers read only from
        // the window, because the store may overwrite or supersede stored bytes at any time. So the window
        // keeps even stored bytes until these followers have received them.
        let behind = self.following().any(|r| r.aside || r.at < base);
        let limit = if behind { self.free } else { u64::MAX };
        let passed = slowest.unwrap_or(self.window.end());
        self.window.trim(passed.min(limit), keep);
        self.window.len() < self.keep.max(1) || slowest.is_none() && !behind
    }

    /// True if the store has the first bytes of the body, and all bytes that have left the window.
    fn is_stored(&self) -> bool {
        self.free > self.start && self.free >= self.window.base()
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
