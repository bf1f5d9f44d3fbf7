//! A walk over everything that is stored: memory first, then the segments of all stores, with large reads.
//! Segments with higher sequence numbers come first. Sweeps, scrubs, drains and lists use the walk; a request
//! never does.
//!
//! The walk blocks its thread for one read at a time. The caller pauses between the reads.

mod segment;

use std::collections::VecDeque;
use std::sync::Arc;

use foxy_base::KeyHash;

use self::segment::Segment;
use crate::fleet::Fleet;
use crate::interface::Spot;
use crate::memory::Tables;
use crate::shared::StoreShared;
use crate::{Object, StoreId};

/// The place of a stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The object is in the RAM tier (and perhaps on disk).
    Memory,
    /// The object is in memory, on its way to disk.
    Pending,
    /// The object is on disk.
    Store {
        /// The store.
        store: StoreId,
        /// The index of the segment.
        segment: u32,
        /// The offset in the segment, in bytes.
        offset: u64,
        /// The number of segments that will be reused before this segment.
        segments_ahead: u32,
    },
}

/// A stored object that the walk has met.
#[derive(Clone, Debug)]
pub struct Walked {
    /// The object; for a large object, its head.
    pub object: Arc<Object>,
    /// The place of the object.
    pub place: Place,
    /// True if the object is in memory, whether or not it is also on disk.
    pub in_memory: bool,
}

/// One step of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkStep {
    /// The number of bytes read from disks.
    pub read: u64,
    /// True if the walk has not ended.
    pub more: bool,
}

/// A walk under way. The documentation of the module explains it.
#[derive(Debug)]
pub struct Walk {
    tables: Tables,
    fleet: Arc<Fleet>,
    /// The number of the next shard to visit.
    shard: usize,
    segments: VecDeque<(Arc<StoreShared>, u32, u64)>,
    current: Option<Segment>,
    missed: bool,
    /// True if the walk meets every copy of an object in memory. There can be two copies: one in the RAM
    /// tier, and one that reinsertion has read from the disk and that waits to be written again.
    each_copy: bool,
    /// True if the walk checks fragments and dead records too.
    thorough: bool,
    damages: Damages,
    /// The faults that a thorough walk found and the caller has not taken yet.
    faults: Vec<WalkFault>,
    /// True if returned objects get their own memory: the caller keeps them for a while, so they must
    /// not share the buffers of the reads.
    copies: bool,
    /// The number of stores that had left when the walk last checked for departed stores.
    departures: u64,
}

/// A fault that a request could meet when it reads from a disk.
#[derive(Debug)]
pub(crate) enum WalkFault {
    /// A record fails its checks.
    Record {
        store: Arc<StoreShared>,
        hash: KeyHash,
        spot: Spot,
    },
    /// A part of a segment cannot be read.
    Read {
        store: Arc<StoreShared>,
        segment: u32,
        at: u64,
        error: std::io::Error,
    },
}

/// The number of records and bytes that a walk could not read correctly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Damages {
    /// Damaged records that lookups can find.
    pub(crate) live: u64,
    /// Damaged records that lookups cannot find.
    pub(crate) dead: u64,
    /// Bytes in which no cluster could be read although a cluster should be there.
    pub(crate) gap_bytes: u64,
    pub(crate) read_errors: u64,
}

impl Walk {
    /// Makes a walk over everything that is stored now; without `memory`, over the disks only.
    pub(crate) fn new(tables: &Tables, fleet: &Arc<Fleet>, memory: bool) -> Self {
        let mut segments = Vec::new();
        for store in fleet.stores().iter() {
            let incarnations = (0..store.space.geometry().segments)
                .map(|index| (index, store.space.incarnation(index)));
            let used = incarnations.filter(|(_, incarnation)| *incarnation != 0);
            segments.extend(used.map(|(index, incarnation)| (store.clone(), index, incarnation)));
        }
        segments.sort_by_key(|(_, _, incarnation)| std::cmp::Reverse(*incarnation));
        Self {
            tables: tables.clone(),
            fleet: Arc::clone(fleet),
            shard: if memory { 0 } else { usize::MAX },
            segments: segments.into(),
            current: None,
            missed: false,
            each_copy: false,
            thorough: false,
            damages: Damages::default(),
            faults: Vec::new(),
            copies: false,
            departures: fleet.registry().departures(),
        }
    }

    /// Returns whether the walk could not read something that lookups can find.
    #[must_use]
    pub const fn has_missed(&self) -> bool {
        self.missed
    }

    /// Makes the walk meet each copy of an object in memory, and not only the newest copy.
    pub(crate) const fn each_copy(mut self) -> Self {
        self.each_copy = true;
        self
    }

    /// Makes the walk also check fragments, and records that lookups cannot find.
    pub(crate) const fn thorough(mut self) -> Self {
        self.thorough = true;
        self
    }

    /// Makes the walk return objects that have their own memory.
    pub(crate) const fn copying(mut self) -> Self {
        self.copies = true;
        self
    }

    pub(crate) const fn damages(&self) -> Damages {
        self.damages
    }

    /// Takes the faults that were found since the last call.
    pub(crate) fn take_faults(&mut self) -> Vec<WalkFault> {
        std::mem::take(&mut self.faults)
    }

    /// Returns the store of the next read.
    pub(crate) fn next_store(&self) -> Option<&Arc<StoreShared>> {
        let current = self.current.as_ref().map(|segment| &segment.store);
        current.or_else(|| self.segments.front().map(|(store, _, _)| store))
    }

    /// Removes from the walk all segments of the stores for which `out` returns true.
    pub(crate) fn drop_segments(&mut self, out: impl Fn(&StoreShared) -> bool) {
        self.current.take_if(|segment| out(&segment.store));
        self.segments.retain(|(store, _, _)| !out(store));
    }

    /// The number of segments of a store that are still to be walked.
    pub(crate) fn segments_left_of(&self, id: StoreId) -> u32 {
        let current = self.current.iter().map(|segment| &segment.store);
        let rest = self.segments.iter().map(|(store, _, _)| store);
        let own = current.chain(rest).filter(|store| store.id == id);
        u32::try_from(own.count()).unwrap_or(u32::MAX)
    }

    /// The number of segments that are still to be walked.
    #[must_use]
    pub fn segments_left(&self) -> usize {
        self.segments.len() + usize::from(self.current.is_some())
    }

    /// Makes one step: a part of memory, or one read. It blocks for that read.
    pub fn step(&mut self, mut each: impl FnMut(Walked)) -> WalkStep {
        self.leave_departed();
        if self.memory(&mut each) {
            return WalkStep {
                read: 0,
                more: true,
            };
        }
        let Some(mut segment) = self.current.take().or_else(|| self.next_segment()) else {
            return WalkStep::default();
        };
        let read = self.window(&mut segment, &mut each);
        if segment.at < segment.end {
            self.current = Some(segment);
        } else {
            self.damages.gap_bytes += segment.gap_bytes();
            self.missed |= !segment.gaps.is_empty() && self.holds_something(&segment);
        }
        WalkStep { read, more: true }
    }

    /// Drops stores that were taken out, so that the walk does not keep them open.
    fn leave_departed(&mut self) {
        let departures = self.fleet.registry().departures();
        if std::mem::replace(&mut self.departures, departures) != departures {
            let open = self.fleet.store_ids();
            self.drop_segments(|store| !open.contains(&store.id));
        }
    }

    /// Walks the next shard. Returns false if there is none.
    fn memory(&mut self, each: &mut impl FnMut(Walked)) -> bool {
        // The objects are copied out, so that the lock is not held while the caller works.
        let objects: Vec<_> = {
            let Some(shard) = self.tables.shards().get(self.shard) else {
                return false;
            };
            let shard = shard.read();
            let pending = shard.pending.values().map(|p| (&p.object, Place::Pending));
            let ram = shard.ram.iter().map(|(_, object)| (object, Place::Memory));
            let other = |object: &Arc<Object>| {
                let pending = shard.pending.get(&object.hash());
                pending.is_none_or(|p| self.each_copy && !Arc::ptr_eq(&p.object, object))
            };
            let ram = ram.filter(|(object, _)| other(object));
            let all = pending
                .chain(ram)
                .filter(|(object, _)| !object.is_fragment());
            all.map(|(object, place)| (object.clone(), place)).collect()
        };
        self.shard += 1;
        for (object, place) in objects {
            each(Walked {
                object,
                place,
                in_memory: true,
            });
        }
        true
    }

    fn next_segment(&mut self) -> Option<Segment> {
        loop {
            let (store, index, sequence) = self.segments.pop_front()?;
            // Lookups find nothing in this segment while it is in quarantine. After the next start they
            // may find its records again, because the superblock may not list the segment.
            if store.condition.is_quarantined(index) {
                self.missed = true;
                continue;
            }
            // A segment that was reused meanwhile is left out. Its records that were worth keeping were
            // written again, and the writer writes no object that an active purge covers.
            if store.space.incarnation(index) == sequence {
                return Some(Segment::new(store, index, sequence));
            }
        }
    }
}
