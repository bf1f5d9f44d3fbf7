//! Opens a store: decides whether it is trusted, reads its slots, and scans its open segments.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use foxy_base::rule;
use foxy_disk::Disk;
use foxy_format::{EXTENSION_CHAIN, Entry, LogPosition, Superblock};

use super::chain::{Judged, judge};
use super::load::Loader;
use super::membership::apply_standing;
use super::part::Part;
use super::replay::{ReplayedJournal, catch_up, replay_journal};
use super::slots::read_slots;
use super::stock::Stock;
use super::superblocks::{failed, find_superblock, format, write_both, write_superblock};
use crate::engine::StoreContext;
use crate::fleet::Standing;
use crate::interface::add;
use crate::purge::Journal;
use crate::shared::{OpenSegment, StoreShared, summary, write_checked};
use crate::{OpenError, StoreOptions};

/// Writing continues in the newest segment only if at least this part (1/n) of the segment is free.
const WORTH_GOING_ON: u32 = 8;

/// A store as it was found when it was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Arc<StoreShared>,
    pub(crate) superblock: Superblock,
    /// The segment in which writing continues.
    pub(crate) current: Option<OpenSegment>,
    /// Index and sequence number of the segment whose next incarnation has already begun with an open header.
    pub(crate) ready: Option<(u32, u64)>,
    pub(crate) next_sequence: u64,
    /// The state of the chain of clusters.
    pub(crate) chain: Judged,
    pub(crate) loader: Loader,
    pub(crate) journal: Journal,
    /// True if a table could not be read.
    pub(crate) tables_damaged: bool,
}

/// Opens or formats a disk, and takes in the contents of the open segments.
pub(crate) fn open(
    context: &StoreContext,
    disk: Arc<dyn Disk>,
    options: &StoreOptions,
    grows: Option<&Arc<StoreShared>>,
) -> Result<Opened, OpenError> {
    let core = &context.core;
    let began = core.clock.mono();
    let name = disk.describe();
    let found = find_superblock(&*disk, options)?;
    let (mut superblock, is_new) = match found {
        Some(found) => (found, false),
        None => (format(context, &*disk, options)?, true),
    };
    let seed = context.keys.agree_on(superblock.seed);
    let standing = match (is_new, grows) {
        (_, Some(_)) => Standing::Grows,
        (false, None) => (core.fleet).standing(&superblock, core.counters.has_changed()),
        (true, None) => Standing::Known,
    };
    let standing = match rule!(
        "seed: a store whose keys are hashed otherwise begins empty",
        superblock.seed == seed,
        true
    ) {
        true => standing,
        false => Standing::Untrusted,
    };
    let needed = superblock.geometry.total_bytes();
    let open_already = core
        .fleet
        .stores()
        .iter()
        .any(|s| s.space.uuid() == superblock.uuid);
    if open_already && grows.is_none() {
        return Err(OpenError::Twice { disk: name });
    }
    let too_many = || OpenError::TooMany { disk: name.clone() };
    let sectors = needed / foxy_index::SECTOR_BYTES;
    let (id, base) = core.fleet.registry().next(sectors).ok_or_else(too_many)?;
    raise_generation(&*disk, &mut superblock)
        .map_err(|e| failed(&name, "write the superblock", e))?;
    let weight = options
        .weight
        .unwrap_or(u32::try_from(needed >> 20).unwrap_or(u32::MAX).max(1));
    let memory = core.budget.bytes();
    let mut store = StoreShared::new(id, base, &superblock, disk, weight, options, memory);
    store.space.set_seed(seed);
    store.condition.restore_quarantine(&superblock.quarantine);
    if let Some(old) = grows {
        store.removals = Arc::clone(&old.removals);
        store.counters = Arc::clone(&old.counters);
    }
    let alone = core.fleet.has_no_membership();
    if alone || grows.is_some() {
        store.member.join_alone();
    }
    let store = Arc::new(store);
    let replayed = replay_journal(&store, superblock.generation)
        .map_err(|e| failed(&name, "read the purge journal", e))?;
    let opened = take_stock(
        context,
        store,
        superblock,
        options,
        replayed,
        (standing, grows),
    )?;
    catch_up(context, &opened.store);
    let took = core.clock.mono().since(began).as_nanos();
    opened
        .store
        .counters
        .open_nanos
        .store(u64::try_from(took).unwrap_or(u64::MAX), Ordering::Relaxed);
    Ok(opened)
}

/// Gives this start its own generation. If the store does not have the chain extension yet (links between
/// clusters), both superblocks name it before the first cluster with a link is written.
fn raise_generation(disk: &dyn Disk, superblock: &mut Superblock) -> io::Result<()> {
    if superblock.extensions & EXTENSION_CHAIN == 0 {
        superblock.extensions |= EXTENSION_CHAIN;
        return rule!(
            "start: both superblocks name an extension before it is used",
            write_both(disk, superblock),
            Ok(())
        );
    }
    superblock.generation += rule!(
        "start: the generation goes up durably before anything else",
        1,
        0
    );
    write_superblock(disk, superblock)
}

/// Reads every slot, scans the open segments, and prepares the loading of the other segments.
fn take_stock(
    context: &StoreContext,
    store: Arc<StoreShared>,
    mut superblock: Superblock,
    options: &StoreOptions,
    purges: ReplayedJournal,
    (standing, grows): (Standing, Option<&Arc<StoreShared>>),
) -> Result<Opened, OpenError> {
    let core = &context.core;
    let mut stock = Stock::new(&store);
    for (found, index) in read_slots(&store).into_iter().zip(0..) {
        stock.take(found, index);
    }
    let Stock {
        mut parts,
        tables_damaged,
        lost,
        ..
    } = stock.settle();
    for part in &parts {
        store.space.restore_incarnation(part.index, part.sequence);
    }
    let chain = judge_parts(&parts, superblock.floor);
    add(&store.counters.damaged, chain.damaged);
    let lost = lost.into_iter().chain(chain.lost).max().unwrap_or(0);
    let newest = parts.first().map_or(0, |part| part.sequence).max(lost);
    let mut next_sequence = newest + 1;
    let ready = take_ready(&mut parts, &mut next_sequence);
    let ready = ready.filter(|(_, sequence)| is_opened_after(*sequence, lost));
    next_sequence = next_sequence.max(lost + 1);
    let steps = options.load_steps;
    let mut loader = Loader::new(core, store.clone(), superblock.floor, steps);
    let last = parts.first().map(|part| part.sequence);
    let current = match last.is_some_and(|last| is_segment_after(last, lost)) {
        true => go_on(&store, &mut parts, ready),
        false => None,
    };
    close_others(&store, &mut parts, current.as_ref().map(|c| c.sequence));
    for part in parts {
        loader.add(part);
    }
    let end = log_end(
        current.as_ref(),
        ready.map_or(next_sequence, |(_, incarnation)| incarnation),
    );
    store.marks.set_log_end(end);
    let name = || store.disk.describe();
    let membership = core.fleet.membership().unwrap_or_default();
    apply_standing(
        &mut superblock,
        &mut loader,
        (standing, membership),
        end,
        &store,
    )
    .and_then(|()| {
        let floor = floor_after(lost, chain.floor);
        forget(&mut superblock, &mut loader, floor, &store)
    })
    .map_err(|e| failed(&name(), "write the superblock", e))?;
    if replays_removals(standing) {
        (loader.replay_removals()).map_err(|e| failed(&name(), "read the removal log", e))?;
    }
    let journal = purges.adopt(context, &store, superblock.generation);
    (core.numbers).mix_versions(store.space.uuid(), superblock.generation);
    context.catalogue.take_in(&store, standing, grows);
    loader.load_scanned();
    Ok(Opened {
        journal,
        store,
        superblock,
        current,
        ready,
        next_sequence,
        chain,
        loader,
        tables_damaged,
    })
}

/// Returns whether the removal log must be read. A store that grows already has it in memory.
fn replays_removals(standing: Standing) -> bool {
    rule!(
        "start: the removal log is read before lookups are answered",
        standing != Standing::Grows,
        false
    )
}

fn is_opened_after(sequence: u64, lost: u64) -> bool {
    rule!(
        "start: an open header from before a lost segment is not gone on with",
        sequence > lost,
        true
    )
}

fn is_segment_after(sequence: u64, lost: u64) -> bool {
    rule!(
        "start: writing does not go on in a segment from before a lost one",
        sequence > lost,
        true
    )
}

/// Returns the position before which everything is dead. The removals in a lost segment or a damaged cluster
/// are not known, so any record before that position may have been removed. `lost` is the incarnation of the
/// newest lost segment, or 0 if no segment is lost.
fn floor_after(lost: u64, behind_damage: LogPosition) -> LogPosition {
    let lost = rule!(
        "start: everything that was written up to the end of a lost segment is dead",
        (lost > 0).then(|| LogPosition::new(lost + 1, 0)),
        None
    );
    let damaged = rule!(
        "start: everything that was written before a damaged cluster is dead",
        behind_damage,
        LogPosition(0)
    );
    lost.unwrap_or_default().max(damaged)
}

/// Returns the end of the log: it is in the open segment, or at the beginning of the incarnation `next`.
fn log_end(current: Option<&OpenSegment>, next: u64) -> LogPosition {
    current.map_or(LogPosition::new(next, 0), |open| {
        LogPosition::new(open.sequence, open.used_units)
    })
}

/// Judges the segments that were searched for clusters, by the chain of their clusters.
fn judge_parts(parts: &[Part], floor: LogPosition) -> Judged {
    let incarnations: Vec<_> = parts.iter().rev().map(Part::incarnation).collect();
    let entries = parts.iter().flat_map(|part| &part.entries);
    let given_up = entries.filter_map(Entry::cluster_given_up).collect();
    judge(&incarnations, floor, &given_up)
}

/// Declares everything that was written before `floor` dead, in memory and in both superblocks. Does nothing
/// if `floor` is 0. See [`super::stock`] and [`super::chain`].
fn forget(
    superblock: &mut Superblock,
    loader: &mut Loader,
    floor: LogPosition,
    store: &StoreShared,
) -> io::Result<()> {
    if floor == LogPosition(0) {
        return Ok(());
    }
    loader.raise_floor(floor);
    if floor <= superblock.floor {
        return Ok(());
    }
    let disk = store.disk.describe();
    let (sequence, offset) = (floor.sequence(), floor.offset_units());
    tracing::warn!(
        disk,
        sequence,
        offset,
        "parts of the log are damaged or cannot be read: what was written before this place counts as lost"
    );
    superblock.floor = floor;
    rule!(
        "start: a floor is recorded in both superblocks",
        write_both(&*store.disk, superblock),
        {
            superblock.generation += 1;
            write_superblock(&*store.disk, superblock)
        }
    )
}

/// Removes from `parts` the newest segments that have an open header and contain no cluster yet. Returns the
/// oldest of them, which takes clusters next.
fn take_ready(parts: &mut Vec<Part>, next_sequence: &mut u64) -> Option<(u32, u64)> {
    // After a crash between the writes of two open headers there can be more than one such segment: only the
    // oldest can come next.
    let mut ready = None;
    while parts.first().is_some_and(Part::is_unused) {
        let part = parts.remove(0);
        *next_sequence = part.sequence + 1;
        ready = rule!(
            "start: of several segments with open headers the oldest comes next",
            Some((part.index, part.sequence)),
            ready.or(Some((part.index, part.sequence)))
        );
    }
    ready
}

/// Returns the newest segment that contains anything, if enough of it is free. Writing continues after its
/// last cluster. If the summary of this segment was written, the segment must get an open header again
/// before writing continues.
fn go_on(
    store: &StoreShared,
    parts: &mut [Part],
    ready: Option<(u32, u64)>,
) -> Option<OpenSegment> {
    let newest = parts.first_mut()?;
    // The incarnations of the open segment and of the next segment are consecutive.
    let follow = ready.is_none_or(|(_, sequence)| sequence == newest.sequence + 1);
    if !rule!(
        "start: the incarnations of the open segment and the next one follow each other",
        follow,
        true
    ) {
        return None;
    }
    let room = store.space.geometry().segment_bytes / foxy_format::UNIT as u32 - newest.used_units;
    if room < store.space.geometry().segment_bytes / foxy_format::UNIT as u32 / WORTH_GOING_ON {
        return None;
    }
    newest.make_scanned(store)?;
    let segment = OpenSegment {
        used_units: newest.used_units,
        entries: newest.entries.clone(),
        last_cluster: newest.last_cluster(),
        ..OpenSegment::empty(newest.index, newest.sequence)
    };
    if !rule!(
        "start: a summarised segment gets an open header before it is gone on with",
        newest.open,
        true
    ) {
        let header = summary(store.space.geometry(), store.space.uuid(), &segment, true).slot;
        let at = store.space.geometry().slot_at(segment.index);
        rule!(
            "start: the open header of a segment that is gone on with is read back",
            write_checked(&*store.disk, at, &header),
            (store.disk.write_at(at, &header)).and_then(|()| store.disk.flush())
        )
        .ok()?;
        newest.open = true;
    }
    Some(segment)
}

/// Writes the summaries of segments that were open and in which writing does not continue.
fn close_others(store: &StoreShared, parts: &mut [Part], current: Option<u64>) {
    for part in parts
        .iter()
        .filter(|p| p.needs_slot() && Some(p.sequence) != current)
    {
        let segment = OpenSegment {
            used_units: part.used_units,
            entries: part.entries.clone(),
            last_cluster: part.last_cluster(),
            ..OpenSegment::empty(part.index, part.sequence)
        };
        let summary = summary(store.space.geometry(), store.space.uuid(), &segment, false);
        let disk = &store.disk;
        let spilled = match &summary.spill {
            Some((at, bytes)) => disk.write_at(*at, bytes),
            None => Ok(()),
        };
        // Scanned records must be durable before a summary lists them.
        let written = spilled
            .and_then(|()| {
                rule!(
                    "start: what was searched is durable before a summary vouches for it",
                    disk.flush(),
                    Ok(())
                )
            })
            .and_then(|()| {
                disk.write_at(store.space.geometry().slot_at(part.index), &summary.slot)
            });
        if let Err(error) = written {
            tracing::warn!(store = %store.disk.describe(), %error, "summary of a recovered segment not written");
        }
    }
}
