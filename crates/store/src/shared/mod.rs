//! The part of a store that network threads and its writer share.

mod load;
mod loading;
mod marks;
mod role;
mod space;

use std::sync::Arc;

use foxy_base::{KeyHash, MonoTime, rule};
use foxy_disk::Disk;
use foxy_format::Superblock;
use foxy_index::Entry;
use parking_lot::Mutex;

use self::load::Load;
use self::loading::Loading;
use self::marks::Marks;
use self::role::Role;
use self::space::Space;
use crate::around::Around;
use crate::condition::Condition;
use crate::gone::Gone;
use crate::inbox::{Bell, Inbox, Item};
use crate::purge::JournalInbox;
use crate::reads::StoreReads;
use crate::removals::RemovalLog;
use crate::spot::Spot;
use crate::stats::{Duty, Health, StoreCounters};
use crate::{ReadPlan, StoreId, StoreOptions};

#[derive(Debug)]
pub(crate) struct StoreShared {
    pub(crate) id: StoreId,
    pub(crate) space: Space,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) load: Load,
    pub(crate) marks: Marks,
    /// Locked before the inbox. A store that grows keeps it.
    pub(crate) removals: Arc<Mutex<RemovalLog>>,
    pub(crate) inbox: Mutex<Inbox>,
    /// Notes that the purge journal has to take.
    pub(crate) journal: Mutex<JournalInbox>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) loading: Loading,
    pub(crate) condition: Condition,
    pub(crate) reads: StoreReads,
    pub(crate) around: Around,
    pub(crate) counters: Arc<StoreCounters>,
    pub(crate) role: Role,
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
            loading: Loading::new(options.gone_max.min(Gone::most(memory_bytes))),
            condition: Condition::new(geometry.segments),
            reads: StoreReads::new(options.reads),
            around: Around::new(memory_bytes, options.buffer_bytes),
            counters: Arc::default(),
            role: Role::new(superblock.company.epoch),
        }
    }

    pub(crate) fn health(&self) -> Health {
        self.condition.health()
    }

    /// Returns whether a read of this place is worth trying. On a slow disk, only a `patient` caller
    /// should try. Reads the clock only if it may matter.
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

    /// Returns whether new objects shall go to this store at the moment.
    pub(crate) fn takes_new(&self, now: impl FnOnce() -> MonoTime) -> bool {
        self.takes_writes() && self.role.duty() == Duty::Serving && !self.condition.is_slow(now)
    }

    /// The health as people see it.
    pub(crate) fn seen_health(&self, now: impl FnOnce() -> MonoTime) -> Health {
        match self.health() {
            Health::Good if self.condition.is_slow(now) => Health::Slow,
            health => health,
        }
    }

    /// The aligned read that covers the record of an index entry.
    pub(crate) fn plan(&self, hash: KeyHash, entry: &Entry) -> Option<ReadPlan> {
        self.space.plan(self.id, hash, entry)
    }

    /// Hands an object to the writer.
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
