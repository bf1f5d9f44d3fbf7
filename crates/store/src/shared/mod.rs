//! The list of open stores, and the state of each store that network threads and the store's writer
//! share.
//!
//! [`StoreShared`] is made of parts. Most parts have private fields. The fields of the parts `reads`,
//! `inbox` and `journal` are open to the modules that drive the reads and that take the input of the writer.
//! This module uses only `interface`: the module `fleet` handles what stores record about each other, and the
//! module `memory` handles keys.
//!
//! | file | has |
//! |---|---|
//! | `space`, `segment`, `marks` | addresses and incarnations of segments; the summary (list of entries) of a segment; the end of the log, and purge numbers |
//! | `condition` | what the device can do at the moment: quarantine, slowness, failures |
//! | `inbox`, `journal`, `removals` | the input of the writer: objects, purges, removals; the removal log |
//! | `load`, `weight`, `pressure` | bytes that wait to be written, the share of new objects, the reason why writing waits |
//! | `loading`, `removed_keys` | a store that is being loaded, keys that were removed since loading began |
//! | `reads`, `around`, `agreed` | waiting reads, longer reads, reads that a second read confirms |
//! | `registry` | the list of open stores, which lookups read without a lock |
//! | `figures` | the present figures of a store |
//! | `member_state` | the duty of a store among the stores of the engine |

mod agreed;
mod around;
mod condition;
mod figures;
mod inbox;
mod journal;
mod load;
mod loading;
mod marks;
mod member_state;
mod pressure;
mod reads;
mod registry;
mod removals;
mod removed_keys;
mod segment;
mod space;
pub(crate) mod weight;

use std::sync::Arc;

use foxy_base::{KeyHash, MonoTime, rule};
use foxy_disk::Disk;
use foxy_format::Superblock;
use foxy_index::Entry;
use parking_lot::Mutex;

pub(crate) use self::agreed::{read_agreed, write_checked};
use self::around::Around;
use self::condition::Condition;
pub(crate) use self::condition::Failure;
pub(crate) use self::figures::of_store;
use self::inbox::Bell;
pub(crate) use self::inbox::{Inbox, Item, SyncRequest};
pub(crate) use self::journal::JournalInbox;
use self::load::Load;
use self::loading::Loading;
use self::marks::Marks;
use self::member_state::MemberState;
pub(crate) use self::pressure::WaitsFor;
pub(crate) use self::reads::{Mailbox, Parked, StoreReads};
pub(crate) use self::registry::{Registry, Stores};
use self::removals::RemovalLog;
pub(crate) use self::removals::{Numbered, Removal};
pub(crate) use self::removed_keys::RemovedKeys;
#[cfg(test)]
pub(crate) use self::segment::AHEAD_MOST;
pub(crate) use self::segment::{OpenSegment, segments_ahead, summary};
use self::space::Space;
use crate::interface::{Duty, Health, Spot, StoreCounters};
use crate::{ReadPlan, StoreId, StoreOptions};

#[derive(Debug)]
pub(crate) struct StoreShared {
    pub(crate) id: StoreId,
    pub(crate) space: Space,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) load: Load,
    pub(crate) marks: Marks,
    /// The removal log; its lock is taken before the lock of the inbox. When a store grows, it gets a new
    /// [`StoreShared`], which keeps the log of the former `StoreShared`.
    pub(crate) removals: Arc<Mutex<RemovalLog>>,
    pub(crate) inbox: Mutex<Inbox>,
    /// The notes (purges of many objects, and soft purges) that must be written to the purge journal.
    pub(crate) journal: Mutex<JournalInbox>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) loading: Loading,
    pub(crate) condition: Condition,
    pub(crate) reads: StoreReads,
    pub(crate) around: Around,
    pub(crate) counters: Arc<StoreCounters>,
    pub(crate) member: MemberState,
}

impl StoreShared {
    pub(crate) fn new(
        id: StoreId,
        base_sectors: u64,
        superblock: &Superblock,
        disk: Arc<dyn Disk>,
        weight: u32,
        options: &StoreOptions,
        memory_bytes: u64,
    ) -> Self {
        let geometry = superblock.geometry;
        Self {
            id,
            space: Space::new(superblock, base_sectors, u64::from(disk.block_bytes())),
            disk,
            load: Load::new(weight),
            marks: Marks::default(),
            removals: Arc::new(Mutex::new(RemovalLog::new(geometry.removal_places()))),
            inbox: Mutex::default(),
            journal: Mutex::default(),
            bell: Arc::default(),
            loading: Loading::new(
                options
                    .removed_keys_max
                    .min(RemovedKeys::most(memory_bytes)),
            ),
            condition: Condition::new(geometry.segments),
            reads: StoreReads::new(options.reads),
            around: Around::new(memory_bytes, options.buffer_bytes),
            counters: Arc::default(),
            member: MemberState::new(superblock.membership.epoch),
        }
    }

    pub(crate) fn health(&self) -> Health {
        self.condition.health()
    }

    /// Returns whether a read at this spot should be tried. If `patient` is true, a slow disk is read too.
    /// The clock is read only if the result depends on the time.
    pub(crate) fn is_readable(
        &self,
        spot: Spot,
        patient: bool,
        now: impl FnOnce() -> MonoTime,
    ) -> bool {
        let segment = self.space.locate(spot).map_or(0, |(segment, _)| segment);
        self.health() != Health::Offline
            && (patient || !self.condition.is_slow(now))
            && rule!(
                "quarantine: what lies there is not read",
                !self.condition.is_quarantined(segment),
                true
            )
    }

    pub(crate) fn takes_writes(&self) -> bool {
        self.health() == Health::Good
    }

    /// Returns whether new objects should go to this store at the moment.
    pub(crate) fn takes_new(&self, now: impl FnOnce() -> MonoTime) -> bool {
        self.takes_writes() && self.member.duty() == Duty::Serving && !self.condition.is_slow(now)
    }

    /// The health that operators see.
    pub(crate) fn seen_health(&self, now: impl FnOnce() -> MonoTime) -> Health {
        match self.health() {
            Health::Good if self.condition.is_slow(now) => Health::Slow,
            health => health,
        }
    }

    /// Returns the aligned read that covers the record of an index entry.
    pub(crate) fn plan(&self, hash: KeyHash, entry: &Entry) -> Option<ReadPlan> {
        self.space.plan(self.id, hash, entry)
    }

    /// Passes an object to the writer.
    pub(crate) fn push(&self, item: Item) {
        let mut inbox = self.inbox.lock();
        inbox.items.push(item);
        let first = inbox.items.len() == 1;
        drop(inbox);
        if first {
            self.bell.nudge();
        }
    }
}
