//! The scrub: reads everything that is stored, slowly, and drops what has gone bad, before
//! somebody asks for it.
//!
//! It is driven step by step, like a sweep, and goes through each store's segments, the newest
//! first. Every record that lookups can find is checked by its checksums. A bad one is read once
//! more by itself, as a request would read it, and its entry is dropped if that fails as well. A
//! part that the device cannot read counts against its segment ([`crate::condition`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use foxy_base::KeyHash;
use foxy_disk::AlignedBuf;

use crate::purge::{Walk, WalkFault};
use crate::shared::StoreShared;
use crate::spot::Spot;
use crate::stats::add;
use crate::{Engine, ReadPlan, StoreId};

/// A pass under way.
#[derive(Debug)]
pub struct Scrub {
    engine: Arc<Engine>,
    walk: Walk,
    /// Disk reads of requests, when it was last asked.
    reads: u64,
}

/// One step of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrubStep {
    /// So many bytes were read; pause accordingly.
    Read {
        /// Bytes.
        bytes: u64,
        /// Requests read from disks since the last step: pause longer.
        busy: bool,
    },
    /// The pass is over.
    Done,
}

impl Engine {
    /// Begins a pass over everything on disk; `None` while something is still being loaded.
    #[must_use]
    pub fn scrub(self: &Arc<Self>) -> Option<Scrub> {
        let loading = |s: &Arc<StoreShared>| s.loading.is_on();
        if self.stores().iter().any(loading) {
            return None;
        }
        Some(Scrub {
            walk: self.walk(false).thorough(),
            reads: self.counters.disk_plans.load(Ordering::Relaxed),
            engine: self.clone(),
        })
    }

    /// Checks a record by itself; true if it was dropped.
    fn recheck(&self, store: &StoreShared, hash: KeyHash, spot: Spot) -> bool {
        let entry = self.tables.entry_at(hash, spot);
        let Some(plan) = entry.and_then(|entry| store.plan(hash, &entry)) else {
            return false;
        };
        match read(store, &plan) {
            Ok(buf) => self.check_record(&plan, buf).is_err(),
            Err(error) => {
                self.fail_read(&plan, &error);
                true
            }
        }
    }
}

fn read(store: &StoreShared, plan: &ReadPlan) -> std::io::Result<AlignedBuf> {
    let mut buf = AlignedBuf::new(plan.len as usize);
    buf.set_len(plan.len as usize);
    store.disk.read_at(plan.at, &mut buf)?;
    Ok(buf)
}

impl Scrub {
    /// Goes on. Blocks for one read, and one more for every bad record.
    pub fn step(&mut self) -> ScrubStep {
        let engine = &self.engine;
        // A store in trouble is left alone.
        while let Some(store) = self.walk.store()
            && !store.is_sound(|| engine.clock.mono())
        {
            self.walk.skip_store(store.id);
        }
        let Some(store) = self.walk.store() else {
            return ScrubStep::Done;
        };
        let mut whole = false;
        let step = self.walk.step(|_| whole = true);
        add(&store.counters.scrubbed_bytes, step.read);
        for fault in self.walk.take_faults() {
            self.found(fault);
        }
        // Whether anybody asks for anything or not: what is bad here and there is no row.
        if whole {
            store.condition.read_well();
        }
        if self.walk.store().is_none_or(|next| next.id != store.id) {
            add(&store.counters.scrub_passes, 1);
        }
        let reads = self.engine.counters.disk_plans.load(Ordering::Relaxed);
        let busy = reads != self.reads;
        self.reads = reads;
        ScrubStep::Read {
            bytes: step.read,
            busy,
        }
    }

    fn found(&self, fault: WalkFault) {
        match fault {
            WalkFault::Record { store, hash, spot } => {
                if self.engine.recheck(&store, hash, spot) {
                    add(&store.counters.scrub_errors, 1);
                    add(&store.counters.scrub_dropped, 1);
                }
            }
            WalkFault::Read {
                store,
                segment,
                at,
                error,
            } => {
                add(&store.counters.scrub_errors, 1);
                store.read_failed(Some(segment), at, &error);
            }
        }
    }
}

impl StoreShared {
    /// Neither offline nor slow.
    fn is_sound(&self, now: impl FnOnce() -> foxy_base::MonoTime) -> bool {
        self.health() != crate::Health::Offline && !self.condition.is_slow(now)
    }
}

impl Walk {
    /// The store whose segment comes next.
    fn store(&self) -> Option<Arc<StoreShared>> {
        self.next_store().cloned()
    }

    fn skip_store(&mut self, id: StoreId) {
        self.drop_segments(|store| store.id == id);
    }
}
