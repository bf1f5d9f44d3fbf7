//! A walk over everything that is stored: memory first, then each store's segments, the newest
//! first, by large reads. For sweeps, lists and checks; never on the way of a request.
//!
//! The walk blocks its thread for one read at a time; pauses between them are its caller's.

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

/// Where something lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the RAM tier (and perhaps on disk).
    Memory,
    /// In memory, on its way to disk.
    Pending,
    /// On disk.
    Store {
        /// The store.
        store: StoreId,
        /// The index of the segment.
        segment: u32,
        /// Where in the segment, in bytes.
        offset: u64,
        /// Segments that are reused before this one.
        segments_ahead: u32,
    },
}

/// Something stored.
#[derive(Clone, Debug)]
pub struct Walked {
    /// The object; of a large one, its head.
    pub object: Arc<Object>,
    /// Where it lies.
    pub place: Place,
    /// It is in memory (too).
    pub in_memory: bool,
}

/// One step of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkStep {
    /// Bytes read from disks.
    pub read: u64,
    /// There is more to come.
    pub more: bool,
}

/// A walk under way. See the module's head.
#[derive(Debug)]
pub struct Walk {
    tables: Tables,
    fleet: Arc<Fleet>,
    /// The next part of the tables in memory.
    shard: usize,
    segments: VecDeque<(Arc<StoreShared>, u32, u64)>,
    current: Option<Segment>,
    missed: bool,
    /// Every copy of an object in memory: one that is written again has been read anew for that.
    each_copy: bool,
    /// Fragments and dead records too.
    thorough: bool,
    damages: Damages,
    /// Faults that a thorough walk found and nobody has taken yet.
    faults: Vec<WalkFault>,
    /// Found objects are kept for a while, so they do not share the buffers of their reads.
    copies: bool,
    /// Number of stores that had left at the last look.
    departures: u64,
}

/// Something bad that lookups could meet.
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

/// Counts of the records and bytes that a walk could not read as it should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Damages {
    /// Records that lookups can find.
    pub(crate) live: u64,
    /// Records that they cannot find.
    pub(crate) dead: u64,
    /// Bytes before a segment's end without a cluster.
    pub(crate) gap_bytes: u64,
    pub(crate) read_errors: u64,
}

impl Walk {
    /// A walk over everything stored now; without `memory`, over the disks alone.
    pub(crate) fn new(tables: &Tables, fleet: &Arc<Fleet>, memory: bool) -> Self {
        let mut segments = Vec::new();
        for store in fleet.stores().iter() {
            let lives =
                (0..store.space.geometry().segments).map(|index| (index, store.space.life(index)));
            let used = lives.filter(|(_, life)| *life != 0);
            segments.extend(used.map(|(index, life)| (store.clone(), index, life)));
        }
        segments.sort_by_key(|(_, _, life)| std::cmp::Reverse(*life));
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

    /// Something that lookups can find could not be read.
    #[must_use]
    pub const fn has_missed(&self) -> bool {
        self.missed
    }

    /// Makes the walk meet each copy of an object that memory has.
    pub(crate) const fn each_copy(mut self) -> Self {
        self.each_copy = true;
        self
    }

    /// Makes the walk check fragments, and records that nobody can find, too.
    pub(crate) const fn thorough(mut self) -> Self {
        self.thorough = true;
        self
    }

    /// Makes the walk give objects in memory of their own.
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

    /// The store of the next read.
    pub(crate) fn next_store(&self) -> Option<&Arc<StoreShared>> {
        let current = self.current.as_ref().map(|segment| &segment.store);
        current.or_else(|| self.segments.front().map(|(store, _, _)| store))
    }

    /// Leaves out segments of some stores.
    pub(crate) fn drop_segments(&mut self, out: impl Fn(&StoreShared) -> bool) {
        self.current.take_if(|segment| out(&segment.store));
        self.segments.retain(|(store, _, _)| !out(store));
    }

    /// Segments of a store still to be walked.
    pub(crate) fn segments_left_of(&self, id: StoreId) -> u32 {
        let current = self.current.iter().map(|segment| &segment.store);
        let rest = self.segments.iter().map(|(store, _, _)| store);
        let own = current.chain(rest).filter(|store| store.id == id);
        u32::try_from(own.count()).unwrap_or(u32::MAX)
    }

    /// Segments still to be walked.
    #[must_use]
    pub fn segments_left(&self) -> usize {
        self.segments.len() + usize::from(self.current.is_some())
    }

    /// Goes on: a part of memory, or one read. Blocks for that read.
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

    /// A store that was taken out is not held open by a walk.
    fn leave_departed(&mut self) {
        let departures = self.fleet.registry().departures();
        if std::mem::replace(&mut self.departures, departures) != departures {
            let open = self.fleet.store_ids();
            self.drop_segments(|store| !open.contains(&store.id));
        }
    }

    /// Walks the next shard. False if there is none.
    fn memory(&mut self, each: &mut impl FnMut(Walked)) -> bool {
        // Copied out, so that the lock is not held while the caller works.
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
            // Lookups find nothing in this segment now; after the next start they may.
            if store.condition.is_quarantined(index) {
                self.missed = true;
                continue;
            }
            // Reused meanwhile: records worth keeping were written again, and the walk meets them
            // there.
            if store.space.life(index) == sequence {
                return Some(Segment::new(store, index, sequence));
            }
        }
    }
}
