//! Inspection of a store that is not in use: [`inspect`] reads its tables, and [`verify`] checks all of its
//! contents.
//!
//! Nothing is written to the disk. [`verify`] opens the store with the code that a start runs. In place of
//! the disk, this code gets an `Overlay`, which keeps all writes in memory. So `verify` finds exactly what a
//! restart would load.
//!
//! This is the top module of the crate: it uses `recovery`, `engine` and `maintenance`, and no other
//! module uses it.

mod overlay;

use std::io;
use std::sync::Arc;

use foxy_base::Clock;
use foxy_disk::Disk;
use foxy_format::{
    EntryKind, FormatError, Geometry, JournalHalf, SLOT_HEADER_BYTES, SUPERBLOCK_BYTES,
    SegmentState, SlotHeader, StoreUuid, Superblock, read_journal_half, read_removals,
};
use thiserror::Error;

use self::overlay::Overlay;
use crate::recovery::{other_format, summary_entries};
use crate::{Engine, EngineConfig, OpenError, Place, StoreOptions};

/// The reason why a store could not be inspected.
#[derive(Debug, Error)]
pub enum OfflineError {
    /// There is no store on the disk.
    #[error("{disk}: holds no Foxy store (superblock A {a}, B {b})")]
    NoStore {
        /// The name of the disk.
        disk: String,
        /// The error of superblock A.
        a: FormatError,
        /// The error of superblock B.
        b: FormatError,
    },
    /// A start would refuse the store.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The device failed.
    #[error("{disk}: cannot be read: {source}; check the device")]
    Io {
        /// The name of the disk.
        disk: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The contents of the tables of a store.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The name of the disk.
    pub disk: String,
    /// Superblocks A and B, or the error of each.
    pub superblocks: [Result<Superblock, FormatError>; 2],
    /// The superblock in force: the valid superblock with the higher generation.
    pub superblock: Superblock,
    /// The valid halves of the purge journal.
    pub journal: [Option<JournalHalf>; 2],
    /// The number of valid entries in the removal log.
    pub removals: usize,
    /// The report on every segment.
    pub segments: Vec<SegmentReport>,
}

/// The contents of the summary slot of a segment.
#[derive(Clone, Debug, Default)]
pub struct SegmentReport {
    /// Index of the segment.
    pub index: u32,
    /// The state of the segment, or `None` if the slot or the summary is damaged.
    pub state: Option<SegmentWord>,
    /// The sequence number of the segment's present incarnation; 0 if the segment is unused or its slot is
    /// damaged.
    pub sequence: u64,
    /// The number of filled bytes, if the slot states this number.
    pub used_bytes: u64,
    /// The numbers of whole objects, heads of large objects, fragments, tombstones of keys, and tombstones of
    /// records; all are zero if only the segment's clusters list the entries.
    pub entries: [u64; 5],
}

/// The state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentWord {
    /// The segment was never used.
    Unused,
    /// The segment is being written.
    Open,
    /// The segment is full, and its slot lists its contents.
    Sealed,
    /// The segment is full, and only its clusters list its contents.
    Overflow,
    /// The segment is out of use.
    Retired,
}

impl SegmentWord {
    /// Returns the state as a word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Open => "open",
            Self::Sealed => "sealed",
            Self::Overflow => "overflow",
            Self::Retired => "retired",
        }
    }
}

/// Reads the tables of a store. Nothing is written.
///
/// # Errors
/// An error if there is no store, if another version of Foxy wrote the store and this version cannot read it,
/// or if the device fails.
pub fn inspect(disk: &dyn Disk) -> Result<Inspection, OfflineError> {
    let failed = |source| OfflineError::Io {
        disk: disk.describe(),
        source,
    };
    let mut bytes = vec![0; 2 * SUPERBLOCK_BYTES];
    disk.read_at(0, &mut bytes).map_err(failed)?;
    let superblocks = Superblock::decode_both(&bytes);
    let superblock = match superblocks.clone() {
        [Ok(a), Ok(b)] => {
            if a.generation > b.generation {
                a
            } else {
                b
            }
        }
        [Ok(one), _] | [_, Ok(one)] => one,
        [Err(a), Err(b)] => {
            let disk = disk.describe();
            let [first, second] = &superblocks;
            let other = other_format(&disk, first, second).map(OfflineError::from);
            return Err(other.unwrap_or(OfflineError::NoStore { disk, a, b }));
        }
    };
    let geometry = superblock.geometry;
    let half_bytes = geometry.journal_bytes as usize / 2;
    let mut halves = vec![0; 2 * half_bytes];
    disk.read_at(geometry.journal_at(), &mut halves)
        .map_err(failed)?;
    let (first, second) = halves.split_at(half_bytes);
    let mut removals = vec![0; geometry.removals_bytes as usize];
    disk.read_cached(geometry.removals_at(), &mut removals)
        .map_err(failed)?;
    let segments = 0..geometry.segments;
    let segments: io::Result<_> = segments
        .map(|index| segment(disk, &geometry, superblock.uuid, index))
        .collect();
    Ok(Inspection {
        disk: disk.describe(),
        superblocks,
        journal: [first, second].map(|half| read_journal_half(half, superblock.uuid)),
        removals: read_removals(&removals, superblock.uuid).0.len(),
        segments: segments.map_err(failed)?,
        superblock,
    })
}

fn segment(
    disk: &dyn Disk,
    geometry: &Geometry,
    uuid: StoreUuid,
    index: u32,
) -> io::Result<SegmentReport> {
    let mut slot = vec![0; geometry.slot_bytes as usize];
    disk.read_at(geometry.slot_at(index), &mut slot)?;
    let mut report = SegmentReport {
        index,
        ..SegmentReport::default()
    };
    let header = match SlotHeader::decode(&slot[..SLOT_HEADER_BYTES]) {
        Ok(header) if header.uuid == uuid && header.segment == index => header,
        Err(FormatError::Empty) => {
            report.state = Some(SegmentWord::Unused);
            return Ok(report);
        }
        _ => return Ok(report),
    };
    report.sequence = header.sequence;
    report.used_bytes = u64::from(header.used_units) * foxy_format::UNIT;
    report.state = match header.state {
        SegmentState::Open => Some(SegmentWord::Open),
        SegmentState::SealedOverflow => Some(SegmentWord::Overflow),
        SegmentState::Retired => Some(SegmentWord::Retired),
        SegmentState::Sealed => {
            let entries = summary_entries(disk, geometry, &header, &slot);
            for entry in entries.iter().flatten() {
                report.entries[match entry.kind {
                    EntryKind::Object => 0,
                    EntryKind::Head => 1,
                    EntryKind::Fragment => 2,
                    EntryKind::Tombstone => 3,
                    EntryKind::RecordTombstone => 4,
                }] += 1;
            }
            entries.is_some().then_some(SegmentWord::Sealed)
        }
    };
    Ok(report)
}

/// The result of [`verify`], which reads the whole store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Objects that a restart would load; a large object counts once.
    pub objects: u64,
    /// Bytes of the bodies of these objects.
    pub object_bytes: u64,
    /// Fragments of large objects that a restart would load.
    pub fragments: u64,
    /// Objects that a purge covers: they are on the disk, but never returned.
    pub purged: u64,
    /// Live records that are damaged: lookups of them would miss.
    pub damaged: u64,
    /// Damaged records that no lookup would find.
    pub damaged_dead: u64,
    /// Bytes in full segments that belong to no recognised cluster.
    pub gap_bytes: u64,
    /// Tables, summaries and other parts of the store that could not be read correctly.
    pub damaged_tables: u64,
    /// The reads that failed at the device.
    pub read_errors: u64,
    /// Entries that recovery left out because they were removed or superseded.
    pub superseded: u64,
    /// Bytes that were read to check records.
    pub read_bytes: u64,
}

impl Verification {
    /// Returns whether the check found no damage and no read error.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.damaged == 0
            && self.damaged_dead == 0
            && self.gap_bytes == 0
            && self.damaged_tables == 0
            && self.read_errors == 0
    }
}

/// Reads the whole store and checks every checksum. `progress` gets the number of processed segments
/// and the number of all segments. Nothing is written.
///
/// # Errors
/// An error if there is no store, if a start would refuse the store, or if one of the first reads fails.
pub fn verify(
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    mut progress: impl FnMut(u64, u64),
) -> Result<Verification, OfflineError> {
    inspect(&*disk)?;
    // The memory budget of 1 TiB is only a limit: nothing is allocated in advance, and only the index
    // is kept in memory.
    let engine = Engine::new(EngineConfig::new(1 << 40, 0), clock);
    let overlay = Arc::new(Overlay::new(disk));
    let mut writer = engine.open_store(overlay, StoreOptions::default())?;
    while writer.is_loading() {
        writer.turn();
    }
    let mut found = Verification::default();
    let mut walk = engine.walk(false).thorough();
    let all = walk.segments_left() as u64;
    loop {
        let step = walk.step(|walked| {
            let object = &walked.object;
            debug_assert!(matches!(walked.place, Place::Store { .. }));
            if object.is_fragment() {
                found.fragments += 1;
            } else if engine.purges().has_removed(object) {
                found.purged += 1;
            } else {
                found.objects += 1;
                found.object_bytes += object.total_length();
            }
        });
        found.read_bytes += step.read;
        progress(all - walk.segments_left() as u64, all);
        if !step.more {
            break;
        }
    }
    let counts = engine.stats().stores.first().map(|s| s.counts);
    let counts = counts.unwrap_or_default();
    let damages = walk.damages();
    Ok(Verification {
        damaged: damages.live,
        damaged_dead: damages.dead,
        gap_bytes: damages.gap_bytes,
        damaged_tables: counts.damaged,
        read_errors: counts.read_errors + damages.read_errors,
        superseded: counts.load_skipped,
        ..found
    })
}
