//! Opening a store: superblocks, formatting, slots, open segments.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use foxy_base::{Rng, hash64};
use foxy_disk::Disk;
use foxy_format::{
    FormatError, Geometry, LogPosition, SLOT_HEADER_BYTES, SUPERBLOCK_BYTES, SegmentState,
    SlotHeader, StoreUuid, Superblock,
};

use super::load::Loader;
use super::part::Part;
use super::scan::scan_segment;
use crate::membership::Standing;
use crate::purge::{self, Journal, Recalled};
use crate::shared::StoreShared;
use crate::stats::add;
use crate::writer::segment::{OpenSegment, summary};
use crate::{Engine, OpenError, StoreOptions};

/// Bytes at the beginning and end of a disk that must be zero to take it for empty: file systems,
/// volume managers and partition tables leave their marks there.
const LOOK_BYTES: u64 = 1 << 20;
/// A summarised segment with this part of it free (1/n) is gone on with.
const WORTH_GOING_ON: u32 = 8;

/// A store as found.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Arc<StoreShared>,
    pub(crate) superblock: Superblock,
    /// The segment to go on in.
    pub(crate) current: Option<OpenSegment>,
    /// A segment that is marked for its next life already: index and sequence.
    pub(crate) ready: Option<(u32, u64)>,
    pub(crate) next_sequence: u64,
    pub(crate) loader: Loader,
    pub(crate) journal: Journal,
    /// A table could not be read.
    pub(crate) tables_damaged: bool,
}

/// Opens or formats, and takes in what the open segments hold.
pub(crate) fn open(
    engine: &Arc<Engine>,
    disk: Arc<dyn Disk>,
    options: &StoreOptions,
    grows: Option<&Arc<StoreShared>>,
) -> Result<Opened, OpenError> {
    let began = engine.clock.mono();
    let name = disk.describe();
    let found = read_superblocks(&*disk, options)?;
    let standing = match (&found, grows) {
        (_, Some(_)) => Standing::Grows,
        (Some(found), None) => engine.standing(found),
        (None, None) => Standing::Known,
    };
    let mut superblock = match found {
        Some(found) => found,
        None => format(engine, &*disk, options)?,
    };
    let needed = superblock.geometry.total_bytes();
    if needed > disk.len() {
        return Err(OpenError::CutShort {
            disk: name,
            bytes: disk.len(),
            needed,
        });
    }
    let open_already = engine.stores().iter().any(|s| s.uuid == superblock.uuid);
    if open_already && grows.is_none() {
        return Err(OpenError::Twice { disk: name });
    }
    superblock.generation += 1;
    if standing != Standing::Stranger {
        engine.company.lock().join(&mut superblock);
    }
    write_superblock(&*disk, &superblock).map_err(|e| failed(&name, "write the superblock", e))?;
    let too_many = || OpenError::TooMany { disk: name.clone() };
    let units = needed / foxy_index::UNIT_BYTES;
    let (id, base) = engine.registry.next(units).ok_or_else(too_many)?;
    let weight = options
        .weight
        .unwrap_or(u32::try_from(needed >> 20).unwrap_or(u32::MAX).max(1));
    let memory = engine.config.memory_bytes;
    let mut store = StoreShared::new(id, base, &superblock, disk, weight, options, memory);
    store.condition.recall(&superblock.quarantine);
    if let Some(old) = grows {
        store.removals = Arc::clone(&old.removals);
        store.counters = Arc::clone(&old.counters);
    }
    let store = Arc::new(store);
    let recalled = purge::recall(&store).map_err(|e| failed(&name, "read the purge journal", e))?;
    let opened = take_stock(
        engine,
        store,
        superblock,
        options,
        recalled,
        (standing, grows),
    )?;
    let took = engine.clock.mono().since(began).as_nanos();
    opened
        .store
        .counters
        .open_nanos
        .store(u64::try_from(took).unwrap_or(u64::MAX), Ordering::Relaxed);
    Ok(opened)
}

fn failed(disk: &str, doing: &'static str, source: io::Error) -> OpenError {
    OpenError::Io {
        disk: disk.to_owned(),
        doing,
        source,
    }
}

/// Generations take turns, so that the other superblock stays whole while one is written.
pub(crate) fn write_superblock(disk: &dyn Disk, superblock: &Superblock) -> io::Result<()> {
    disk.write_at(
        Geometry::superblock_at((superblock.generation & 1) as usize),
        &superblock.encode(),
    )?;
    disk.flush()
}

/// The superblock of a disk that holds a store which can be opened.
pub(crate) fn peek(disk: &dyn Disk) -> Option<Superblock> {
    let options = StoreOptions::default();
    read_superblocks(disk, &options).ok().flatten()
}

/// The newer valid superblock; `None` for an empty disk or one whose formatting did not end.
fn read_superblocks(
    disk: &dyn Disk,
    options: &StoreOptions,
) -> Result<Option<Superblock>, OpenError> {
    let name = disk.describe();
    if disk.len() < 2 * SUPERBLOCK_BYTES as u64 {
        return Ok(None);
    }
    let mut bytes = vec![0; 2 * SUPERBLOCK_BYTES];
    disk.read_at(0, &mut bytes)
        .map_err(|e| failed(&name, "read the superblocks", e))?;
    let (a, b) = bytes.split_at(SUPERBLOCK_BYTES);
    match (Superblock::decode(a), Superblock::decode(b)) {
        (Ok(a), Ok(b)) => Ok(Some(if a.generation > b.generation { a } else { b })),
        // A later version may have written one of them only, so far.
        (Err(FormatError::Newer(version)), _) | (_, Err(FormatError::Newer(version)))
            if !options.force_format =>
        {
            Err(OpenError::Newer {
                disk: name,
                version,
            })
        }
        (Ok(only), _) | (_, Ok(only)) => Ok(Some(only)),
        _ if options.force_format => Ok(None),
        // Formatting writes A last: a torn B alone is a formatting that did not end.
        (Err(FormatError::Empty), Err(FormatError::Empty | FormatError::Checksum)) => {
            if looks_empty(disk).map_err(|e| failed(&name, "read the disk", e))? {
                Ok(None)
            } else {
                Err(OpenError::Foreign { disk: name })
            }
        }
        (Err(FormatError::Foreign | FormatError::Empty), _) => {
            Err(OpenError::Foreign { disk: name })
        }
        (Err(problem), _) => Err(OpenError::Damaged {
            disk: name,
            problem: problem.to_string(),
        }),
    }
}

fn looks_empty(disk: &dyn Disk) -> io::Result<bool> {
    let len = LOOK_BYTES.min(disk.len());
    let mut bytes = vec![0; len as usize];
    for at in [0, disk.len() - len] {
        disk.read_at(at, &mut bytes)?;
        // Superblock B may be a torn one of ours.
        let own = if at == 0 {
            SUPERBLOCK_BYTES..2 * SUPERBLOCK_BYTES
        } else {
            0..0
        };
        let foreign = bytes
            .iter()
            .enumerate()
            .any(|(i, b)| *b != 0 && !own.contains(&i));
        if foreign && (at == 0 || len < disk.len()) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn format(
    engine: &Engine,
    disk: &dyn Disk,
    options: &StoreOptions,
) -> Result<Superblock, OpenError> {
    let name = disk.describe();
    let total = disk.len();
    let segment = options.segment_bytes.unwrap_or_else(|| {
        let wanted = (total / 256).clamp(64 << 10, 32 << 20) as u32;
        wanted / 4096 * 4096
    });
    let cluster = options.cluster_bytes.min(segment / 2) / 4096 * 4096;
    let geometry =
        Geometry::fit(total, segment, cluster, options.mean_object_bytes).map_err(|problem| {
            match problem {
                FormatError::Invalid("number of segments" | "size") => {
                    let needed = u64::from(segment) * 5 + (1 << 16);
                    OpenError::TooSmall {
                        disk: name.clone(),
                        bytes: total,
                        needed,
                    }
                }
                FormatError::Invalid(what) => OpenError::Options {
                    disk: name.clone(),
                    what,
                },
                _ => OpenError::Options {
                    disk: name.clone(),
                    what: "geometry",
                },
            }
        })?;
    let superblock = Superblock {
        generation: 1,
        uuid: new_uuid(engine, options),
        geometry,
        floor: LogPosition(0),
        epoch: 0,
        company: 0,
        quarantine: Vec::new(),
    };
    let write = || -> io::Result<()> {
        // Slots of a former life of this disk must not be taken for ours; with A written last,
        // an interrupted formatting begins anew.
        if options.force_format {
            disk.write_at(0, &[0; 2 * SUPERBLOCK_BYTES])?;
            write_zeros(disk, geometry.journal_at()..geometry.removals_at())?;
            let removals = vec![0; geometry.removals_bytes as usize];
            disk.write_cached(geometry.removals_at(), &removals)?;
            write_zeros(disk, geometry.slot_at(0)..geometry.segment_at(0))?;
            disk.flush()?;
        }
        write_superblock(disk, &superblock)?;
        write_superblock(
            disk,
            &Superblock {
                generation: 2,
                ..superblock.clone()
            },
        )
    };
    write().map_err(|e| failed(&name, "format it", e))?;
    Ok(Superblock {
        generation: 2,
        ..superblock
    })
}

fn write_zeros(disk: &dyn Disk, range: std::ops::Range<u64>) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut at = range.start;
    while at < range.end {
        let len = (range.end - at).min(zeros.len() as u64);
        disk.write_at(at, &zeros[..len as usize])?;
        at += len;
    }
    Ok(())
}

/// The identity must differ between stores and be unknown to origins, whose bodies end up here.
fn new_uuid(engine: &Engine, options: &StoreOptions) -> StoreUuid {
    if let Some(uuid) = options.uuid {
        return StoreUuid(uuid);
    }
    let time = engine.clock.wall().millis().to_le_bytes();
    let mut rng = Rng::new(hash64(engine.config.seed ^ engine.next_number(), &time)).fork("uuid");
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
    uuid[8..].copy_from_slice(&rng.next_u64().to_le_bytes());
    StoreUuid(uuid)
}

/// A segment as its slot describes it.
#[derive(Debug)]
enum Found {
    /// Never used.
    Nothing,
    /// A slot of this store for this segment.
    Slot(SlotHeader),
    /// A slot that says nothing: the clusters have to.
    Damaged,
}

fn read_slot(store: &StoreShared, index: u32) -> io::Result<Found> {
    let mut bytes = [0; SLOT_HEADER_BYTES];
    store
        .disk
        .read_at(store.geometry.slot_at(index), &mut bytes)?;
    add(&store.counters.load_bytes, SLOT_HEADER_BYTES as u64);
    Ok(match SlotHeader::decode(&bytes) {
        Ok(h)
            if h.uuid == store.uuid
                && h.segment == index
                && store.geometry.segment_of(h.sequence) == index =>
        {
            Found::Slot(h)
        }
        Err(FormatError::Empty) => Found::Nothing,
        _ => Found::Damaged,
    })
}

/// Looks at every slot, scans what is open, and prepares the loading of the rest.
fn take_stock(
    engine: &Arc<Engine>,
    store: Arc<StoreShared>,
    mut superblock: Superblock,
    options: &StoreOptions,
    purges: Recalled,
    (standing, grows): (Standing, Option<&Arc<StoreShared>>),
) -> Result<Opened, OpenError> {
    let mut parts = Vec::new();
    let mut tables_damaged = false;
    for index in 0..store.geometry.segments {
        let part = match read_slot(&store, index) {
            Ok(Found::Nothing) => continue,
            Ok(Found::Slot(header)) => known_part(&store, index, header, &mut tables_damaged),
            Ok(Found::Damaged) | Err(_) => {
                add(&store.counters.damaged, 1);
                tables_damaged = true;
                scan_segment(&store, index, None).map(|s| Part::scanned(index, s, false))
            }
        };
        parts.extend(part);
    }
    let newest = parts.iter().map(|p| p.sequence).max().unwrap_or(0);
    // Anything a whole round behind was overwritten: its slot is older than its segment.
    parts.retain(|p| p.sequence + u64::from(store.geometry.segments) > newest);
    parts.sort_by_key(|p| std::cmp::Reverse(p.sequence));
    for part in &parts {
        store.lives[part.index as usize].store(part.sequence, Ordering::Relaxed);
    }
    let mut next_sequence = newest + 1;
    let ready = take_ready(&mut parts, &mut next_sequence);
    let mut loader = Loader::new(store.clone(), superblock.floor, options.load_steps);
    let current = go_on(&store, &mut parts, ready);
    close_others(&store, &mut parts, current.as_ref().map(|c| c.sequence));
    for part in parts {
        loader.add(part);
    }
    let end = match (&current, ready) {
        (Some(open), _) => LogPosition::new(open.sequence, open.used_units),
        (None, Some((_, sequence))) => LogPosition::new(sequence, 0),
        (None, None) => LogPosition::new(next_sequence, 0),
    };
    store.log_end.store(end.0, Ordering::Release);
    let name = || store.disk.describe();
    let company = *engine.company.lock();
    crate::membership::believe(
        &mut superblock,
        &mut loader,
        (standing, company),
        end,
        &store,
    )
    .map_err(|e| failed(&name(), "write the superblock", e))?;
    if standing != Standing::Grows {
        let recalled = loader.recall(engine);
        recalled.map_err(|e| failed(&name(), "read the removal log", e))?;
    }
    let journal = purges.adopt(engine, &store, superblock.generation);
    engine.mix_versions(&store, superblock.generation);
    engine.take_in(&store, standing, grows);
    loader.load_scanned(engine);
    Ok(Opened {
        journal,
        store,
        superblock,
        current,
        ready,
        next_sequence,
        loader,
        tables_damaged,
    })
}

fn known_part(
    store: &StoreShared,
    index: u32,
    header: SlotHeader,
    tables_damaged: &mut bool,
) -> Option<Part> {
    match header.state {
        SegmentState::Sealed | SegmentState::SealedOverflow => Some(Part::sealed(index, header)),
        SegmentState::Open => {
            let scan = scan_segment(store, index, Some(header.sequence));
            *tables_damaged |= scan.is_none();
            scan.map(|s| Part::scanned(index, s, true))
        }
        SegmentState::Retired => None,
    }
}

/// The newest segment, if it is marked for its life and still without a cluster.
fn take_ready(parts: &mut Vec<Part>, next_sequence: &mut u64) -> Option<(u32, u64)> {
    // After a crash between two marks there can be more than one: only the oldest can come next.
    let mut ready = None;
    while parts.first().is_some_and(Part::is_unused) {
        let part = parts.remove(0);
        *next_sequence = part.sequence + 1;
        ready = Some((part.index, part.sequence));
    }
    ready
}

/// The newest segment with something in it, if there is room left: writing goes on behind its
/// last cluster. It must be marked open again before that, if its summary was written.
fn go_on(
    store: &StoreShared,
    parts: &mut [Part],
    ready: Option<(u32, u64)>,
) -> Option<OpenSegment> {
    let newest = parts.first_mut()?;
    // The lives of open segment and next one follow each other.
    if ready.is_some_and(|(_, sequence)| sequence != newest.sequence + 1) {
        return None;
    }
    let room = store.geometry.segment_bytes / foxy_format::UNIT as u32 - newest.used_units;
    if room < store.geometry.segment_bytes / foxy_format::UNIT as u32 / WORTH_GOING_ON {
        return None;
    }
    newest.make_scanned(store)?;
    let segment = OpenSegment {
        used_units: newest.used_units,
        entries: newest.entries.clone(),
        ..OpenSegment::empty(newest.index, newest.sequence)
    };
    if !newest.open {
        let mark = summary(&store.geometry, store.uuid, &segment, true).slot;
        let written = store
            .disk
            .write_at(store.geometry.slot_at(segment.index), &mark)
            .and_then(|()| store.disk.flush());
        written.ok()?;
        newest.open = true;
    }
    Some(segment)
}

/// Segments that were open, but are not gone on with, get their summaries now.
fn close_others(store: &StoreShared, parts: &mut [Part], current: Option<u64>) {
    for part in parts
        .iter()
        .filter(|p| p.needs_slot() && Some(p.sequence) != current)
    {
        let segment = OpenSegment {
            used_units: part.used_units,
            entries: part.entries.clone(),
            ..OpenSegment::empty(part.index, part.sequence)
        };
        let summary = summary(&store.geometry, store.uuid, &segment, false);
        let disk = &store.disk;
        let spilled = match &summary.spill {
            Some((at, bytes)) => disk.write_at(*at, bytes),
            None => Ok(()),
        };
        // What was scanned has to be durable before a summary vouches for it.
        let written = spilled
            .and_then(|()| disk.flush())
            .and_then(|()| disk.write_at(store.geometry.slot_at(part.index), &summary.slot));
        if let Err(error) = written {
            tracing::warn!(store = %store.disk.describe(), %error, "summary of a recovered segment not written");
        }
    }
}
