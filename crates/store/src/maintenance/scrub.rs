//! The scrub: it reads everything that is stored, slowly, and drops damaged records before they are
//! requested.
//!
//! The caller drives the scrub step by step, as it drives a sweep. The scrub goes through each store's
//! segments, the newest first. Every record that lookups can find is checked by its checksums. A bad record
//! is read once more by itself, as a request would read it. If that read fails too, the entry of the record
//! is dropped. If the device cannot read a part of a segment, that counts as a failed read of the segment
//! (`shared::condition`).

use std::sync::Arc;

use foxy_base::Clock;

use super::walk::{Walk, WalkFault};
use crate::StoreId;
use crate::fleet::Fleet;
use crate::interface::add;
use crate::memory::Tables;
use crate::read::Reads;
use crate::shared::StoreShared;

/// A pass under way.
#[derive(Debug)]
pub struct Scrub {
    reads: Arc<Reads>,
    walk: Walk,
    clock: Arc<dyn Clock>,
    /// The number of disk reads that lookups had requested up to the last step.
    planned: u64,
}

/// One step of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrubStep {
    /// The step read this number of bytes. Pause before the next step in proportion to this number, so that
    /// reads of requests are not delayed.
    Read {
        /// Number of bytes.
        bytes: u64,
        /// True if requests needed the disks since the last step. Then pause longer.
        busy: bool,
    },
    /// The pass is over.
    Done,
}

impl Scrub {
    /// Begins a pass over everything on disk. Returns `None` while a store is still being loaded.
    pub(crate) fn begin(
        tables: &Tables,
        fleet: &Arc<Fleet>,
        reads: &Arc<Reads>,
        clock: &Arc<dyn Clock>,
    ) -> Option<Self> {
        let loading = |s: &Arc<StoreShared>| s.loading.is_on();
        if fleet.stores().iter().any(loading) {
            return None;
        }
        Some(Self {
            walk: Walk::new(tables, fleet, false).thorough(),
            planned: reads.planned(),
            reads: Arc::clone(reads),
            clock: Arc::clone(clock),
        })
    }

    /// Makes one step. It blocks for one read, and for one more read for every bad record.
    pub fn step(&mut self) -> ScrubStep {
        let clock = &self.clock;
        // A store that is slow or offline is not read.
        while let Some(store) = self.walk.store()
            && !store.is_sound(|| clock.mono())
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
        // A valid record that the scrub reads ends the store's series of failed reads, even if no request
        // reads from the store. Otherwise a few bad records, far apart, would count as one series and take
        // the store offline.
        if whole {
            store.condition.read_well();
        }
        // The walk takes the segments of all stores in one mixed order, so the pass over each store ends at
        // a different step.
        if self.walk.segments_left_of(store.id) == 0 {
            add(&store.counters.scrub_passes, 1);
        }
        let planned = self.reads.planned();
        let busy = planned != self.planned;
        self.planned = planned;
        ScrubStep::Read {
            bytes: step.read,
            busy,
        }
    }

    fn found(&self, fault: WalkFault) {
        match fault {
            WalkFault::Record { store, hash, spot } => {
                if self.reads.recheck(&store, hash, spot) {
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
    /// Returns whether the store is neither offline nor slow.
    fn is_sound(&self, now: impl FnOnce() -> foxy_base::MonoTime) -> bool {
        self.health() != crate::Health::Offline && !self.condition.is_slow(now)
    }
}

impl Walk {
    /// Returns the store whose segment comes next.
    fn store(&self) -> Option<Arc<StoreShared>> {
        self.next_store().cloned()
    }

    fn skip_store(&mut self, id: StoreId) {
        self.drop_segments(|store| store.id == id);
    }
}
