//! The sizes of all parts of a store: the sizes that the engine chooses, and these sizes scaled down for a
//! sample of the objects.

use foxy_base::Budget;
use foxy_store::GATE_MEMORY_PART;

use crate::{model::Drive, systems::Store};

/// Bytes of a usual record besides body and head (decision 0030). The length of a record is a multiple of
/// `UNIT`.
const RECORD: u64 = 80;
const UNIT: u64 = 16;
/// Bytes of an entry in a cluster's table.
const ENTRY: u64 = 24;
/// Length of the longest piece of a large object.
pub(super) const FRAGMENT: u64 = 250 << 10;
/// Share of a segment that records can use. The rest (0.03, measured with small segments) is unused space at
/// the ends of clusters.
const ROOM: f64 = 0.97;
/// Bytes of the buffers of a store's writer. A running engine takes these bytes from its memory, so they are
/// subtracted from the memory tier.
const WRITER: u64 = 4 << 20;

/// All lengths of a store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) segments: usize,
    /// Bytes of a segment that records may take.
    pub(super) segment: u64,
    /// Bytes of the memory tier.
    pub(super) ram: u64,
    /// URL and header lines of a response, bytes.
    pub(super) head: u64,
    /// Bytes of memory in which the admission rule remembers uses of objects; `None`: as many as the rule
    /// needs.
    pub(super) uses: Option<u64>,
}

impl Plan {
    /// The lengths with which the engine divides a disk of `size` bytes and a budget of `memory` bytes. If
    /// `memory` is 0, there is no memory tier. If the disk is too small for a store, the plan has 8 segments,
    /// and the memory tier gets a sixteenth of the engine's part of the budget.
    pub(super) fn of(size: u64, memory: u64, head: u64) -> Self {
        let engine = Budget::of(memory).engine.max(16 << 20);
        let opened = Drive::named("nvme")
            .ok_or_else(String::new)
            .and_then(|drive| Store::new(drive, engine, size, 1));
        let (segments, segment, ram) = opened.map_or((8, size / 8, 0), |store| store.geometry());
        let ram = ram.saturating_sub(WRITER).max(engine / 16);
        Self {
            segments: segments as usize,
            segment: (segment as f64 * ROOM) as u64,
            ram: if memory == 0 { 0 } else { ram },
            head,
            uses: (memory > 0).then_some(engine / GATE_MEMORY_PART),
        }
    }

    /// The lengths for a sample that contains a share `rate` of the objects.
    pub(super) fn scaled(self, rate: f64) -> Self {
        let scaled = |bytes: u64| ((bytes as f64 * rate) as u64).max(1);
        Self {
            segment: scaled(self.segment),
            ram: if self.ram == 0 { 0 } else { scaled(self.ram) },
            uses: self.uses.map(scaled),
            ..self
        }
    }

    /// Bytes that an object of `size` bytes takes on disk.
    pub(super) fn record(&self, size: u64) -> u64 {
        let pieces = size.div_ceil(FRAGMENT).max(1);
        (size + self.head + pieces * (RECORD + UNIT / 2)).next_multiple_of(UNIT) + pieces * ENTRY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_the_engines() {
        let plan = Plan::of(100_000_000, 64 << 20, 300);
        let engine = Budget::of(64 << 20).engine;
        assert!(
            plan.segments > 200 && (engine / 4..engine / 2).contains(&plan.ram),
            "{plan:?}"
        );
        let bytes = plan.segments as u64 * plan.segment;
        assert!((90_000_000..100_000_000).contains(&bytes), "{bytes}");
        assert_eq!(Plan::of(100_000_000, 0, 300).ram, 0);
        assert_eq!(Plan::of(1_000, 0, 300).segments, 8, "too small for a store");
    }
}
