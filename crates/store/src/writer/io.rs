//! The writer's operations on its disk. Each operation has a purpose, and each flush has a number.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use foxy_base::{MonoTime, rule};
use foxy_disk::{AlignedBuf, Completion, Op, Queue};

use crate::interface::add;
use crate::recovery::Piece;
use crate::shared::StoreShared;

/// The purpose of an operation. (The victim is the segment that is reused next.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The write of the cluster with this number.
    Cluster(u64),
    /// The write of those entries of a sealed segment that do not fit into the segment's slot. The
    /// incarnation of the segment has this sequence number.
    Spill(u64),
    /// The write of the summary slot of a sealed segment. Its incarnation has this sequence number.
    SealSlot(u64),
    /// The write of an open header: a segment begins the incarnation with this sequence number.
    OpenSlot(u64),
    /// The read that checks the open header of the incarnation with this sequence number.
    OpenSlotCheck(u64),
    /// The flush with this number.
    Flush(u64),
    /// The read of the summary slot of a victim. The next incarnation of the victim has this sequence number.
    VictimSlot(u64),
    /// The read of a part of a victim. The next incarnation of the victim has this sequence number.
    VictimPart(u64),
    /// The write to the purge journal with this number.
    Journal(u64),
    /// The read that checks the write to the purge journal with this number.
    JournalCheck(u64),
    /// The read of a piece of a summary, for recovery.
    Load(Piece),
}

/// A finished operation.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) purpose: Purpose,
    pub(crate) result: io::Result<()>,
    pub(crate) buf: Option<AlignedBuf>,
}

/// The queue, and numbered flushes: code that waits for durability remembers the number of the next
/// flush that begins *after* its writes have completed.
pub(crate) struct Io {
    store: Arc<StoreShared>,
    queue: Box<dyn Queue>,
    purposes: HashMap<u64, Purpose>,
    next_token: u64,
    completions: Vec<Completion>,
    flush_started: u64,
    flush_durable: u64,
    flush_in_flight: bool,
    flush_wanted: bool,
    flush_failed: u64,
    /// The time when the last flush began.
    flushed_at: MonoTime,
    /// True if a write completed since the last flush began.
    dirty: bool,
}

impl std::fmt::Debug for Io {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io")
            .field("in_flight", &self.purposes)
            .finish_non_exhaustive()
    }
}

impl Io {
    pub(crate) fn new(store: Arc<StoreShared>, queue: Box<dyn Queue>, now: MonoTime) -> Self {
        Self {
            store,
            queue,
            purposes: HashMap::new(),
            next_token: 0,
            completions: Vec::new(),
            flush_started: 0,
            flush_durable: 0,
            flush_in_flight: false,
            flush_wanted: false,
            flush_failed: 0,
            flushed_at: now,
            dirty: false,
        }
    }

    fn token(&mut self, purpose: Purpose) -> u64 {
        self.next_token += 1;
        self.purposes.insert(self.next_token, purpose);
        self.next_token
    }

    pub(crate) fn write(&mut self, purpose: Purpose, at: u64, len: usize, buf: AlignedBuf) {
        add(&self.store.counters.writes, 1);
        let token = self.token(purpose);
        self.queue.submit(Op::write(token, at, len, buf));
    }

    pub(crate) fn read(&mut self, purpose: Purpose, at: u64, len: usize) {
        add(&self.store.counters.reads, 1);
        add(&self.store.counters.read_bytes, len as u64);
        let token = self.token(purpose);
        self.queue
            .submit(Op::read(token, at, len, AlignedBuf::new(len)));
    }

    /// Requests a flush of all operations that have completed so far. Returns the number of this flush.
    pub(crate) fn want_flush(&mut self) -> u64 {
        self.flush_wanted = true;
        self.flush_started
            + rule!(
                "flush: it counts for what was complete when it began",
                1,
                u64::from(!self.flush_in_flight)
            )
    }

    /// Returns whether a write completed since the last flush began.
    pub(crate) const fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// The time when the last flush began.
    pub(crate) const fn flushed_at(&self) -> MonoTime {
        self.flushed_at
    }

    /// The number of the flush that begins next.
    pub(crate) const fn next_flush(&self) -> u64 {
        self.flush_started + 1
    }

    /// Returns `Some(false)` if the flush `number` or a later flush failed. Otherwise returns `Some(true)`
    /// once one of these flushes was carried out, and `None` before that.
    pub(crate) fn flushed(&self, number: u64) -> Option<bool> {
        if self.flush_failed >= number {
            Some(false)
        } else {
            (self.flush_durable >= number).then_some(true)
        }
    }

    /// Begins a requested flush if no other flush is under way. Submits all operations to the disk.
    pub(crate) fn submit(&mut self, now: MonoTime) {
        if self.flush_wanted && !self.flush_in_flight {
            self.flush_wanted = false;
            self.flush_in_flight = true;
            self.flush_started += 1;
            self.flushed_at = now;
            self.dirty = false;
            add(&self.store.counters.flushes, 1);
            let token = self.token(Purpose::Flush(self.flush_started));
            self.queue.submit(Op::flush(token));
        }
        if let Err(error) = self.queue.flush_submissions() {
            tracing::warn!(store = %self.store.disk.describe(), %error, "submission refused; trying again");
        }
    }

    /// Returns the finished operations. Flushes are noted here and returned too.
    pub(crate) fn reap(&mut self) -> Vec<Done> {
        self.queue.reap(&mut self.completions);
        let completions = std::mem::take(&mut self.completions);
        completions
            .into_iter()
            .filter_map(|c| self.finish(c))
            .collect()
    }

    fn finish(&mut self, completion: Completion) -> Option<Done> {
        let purpose = self.purposes.remove(&completion.token)?;
        match purpose {
            Purpose::Flush(number) => {
                self.flush_in_flight = false;
                if rule!(
                    "flush: one that failed makes nothing durable",
                    completion.result.is_ok(),
                    true
                ) {
                    self.flush_durable = number;
                } else {
                    self.flush_failed = number;
                }
            }
            Purpose::Cluster(_)
            | Purpose::SealSlot(_)
            | Purpose::Spill(_)
            | Purpose::OpenSlot(_)
            | Purpose::Journal(_) => {
                self.dirty = rule!(
                    "flush: what was written since the last one asks for another",
                    true,
                    self.dirty
                );
            }
            _ => {}
        }
        Some(Done {
            purpose,
            result: completion.result,
            buf: completion.buf,
        })
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.purposes.len()
    }

    pub(crate) fn wait(&mut self, at_most: std::time::Duration) {
        // A refused submission is reported by the next turn.
        let _ = self.queue.wait(at_most);
    }
}
