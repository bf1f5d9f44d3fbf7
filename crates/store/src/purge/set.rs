//! The active purges: they are published, compared with objects, and retired here.
//!
//! An object contains the number of the newest purge at the time when its request was sent to the origin.
//! Only purges with greater numbers concern the object. The order of locks is: this set first, then a store's
//! journal.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use foxy_base::{WallTime, rule};
use foxy_format::{PurgeKind, PurgeNote};
use parking_lot::{RwLock, RwLockReadGuard};

use super::patterns::{Patterns, compile};
use super::{Places, Purge, PurgeError, PurgeStatus, limits};
use crate::fleet::Fleet;
use crate::shared::{StoreShared, Stores};
use crate::{Object, StoreId};

/// Maximum length of the text of a purge, in bytes.
const TEXT_MAX: usize = 2048;
/// Maximum length of an expression, in bytes.
const EXPRESSION_MAX: usize = 512;
/// Number of purges whose outcome is remembered.
const HISTORY_MAX: usize = 4096;

/// The verdict of all purges on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No purge covers the object.
    Clean,
    /// A soft purge covers the object.
    Stale,
    /// The hard purge with this number covers the object.
    Gone(u64),
}

/// The progress of a purge.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) count: AtomicU64,
    pub(super) done: AtomicBool,
    /// The number of the purge into which this purge was merged.
    merged: AtomicU64,
}

/// A purge with which objects are compared.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) note: PurgeNote,
    /// For each store, the last segment that may contain objects from before the purge. Objects in later
    /// segments were compared with the purge before they were written.
    pub(super) ends: Vec<(StoreId, u64)>,
    /// True if a sweep for this purge has ended.
    pub(super) swept: bool,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) latest: u64,
    pub(super) retired: u64,
    pub(super) active: BTreeMap<u64, Active>,
    patterns: Patterns,
    /// Bytes that the active notes take in a journal.
    pub(super) bytes: usize,
    history: BTreeMap<u64, (PurgeNote, Arc<Progress>)>,
}

/// The active purges, the history of purges, and the number of the newest purge.
#[derive(Debug, Default)]
pub(crate) struct PurgeSet {
    latest: AtomicU64,
    /// The greatest number of a retired purge. An object with a smaller `purge_sequence` is not stored: a
    /// retired purge might cover it.
    barrier: AtomicU64,
    state: RwLock<State>,
}

impl PurgeSet {
    /// The number of the newest purge.
    pub(crate) fn latest(&self) -> u64 {
        self.latest.load(Ordering::Acquire)
    }

    /// The greater of two numbers: the greatest number of a retired purge, and the number that
    /// [`Self::leave_behind`] took last.
    pub(crate) fn retired(&self) -> u64 {
        self.state.read().retired
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    /// Compares an object with the purges that are newer than its last comparison. If there are none,
    /// this takes two atomic loads.
    pub(crate) fn verdict(&self, object: &Object) -> Verdict {
        if object.mark.checked() >= self.latest() {
            return match object.mark.is_stale() {
                false => Verdict::Clean,
                true => Verdict::Stale,
            };
        }
        self.compare(object)
    }

    #[cold]
    fn compare(&self, object: &Object) -> Verdict {
        let state = self.state.read();
        if !state.active.is_empty() && !object.is_fragment() {
            let since = object.meta().purge_sequence;
            let newest = state.patterns.covering(object);
            if rule!(
                "purge: it covers what was fetched before it",
                newest.hard > since,
                newest.hard > since + 1
            ) {
                return Verdict::Gone(newest.hard);
            }
            let stale = rule!(
                "purge: a soft one makes stale what it covers",
                newest.soft > since,
                false
            );
            object.mark.clean_up_to(state.latest, stale);
        } else {
            object.mark.clean_up_to(state.latest, false);
        }
        match object.mark.is_stale() {
            false => Verdict::Clean,
            true => Verdict::Stale,
        }
    }

    /// Returns whether an object may be stored: no active hard purge covers it, and no purge that is newer
    /// than its fetch has retired.
    pub(crate) fn may_store(&self, object: &Object) -> bool {
        rule!(
            "purge: nothing is stored that was fetched before a purge that is done with",
            object.meta().purge_sequence >= self.barrier.load(Ordering::Acquire),
            true
        ) && !matches!(self.verdict(object), Verdict::Gone(_))
    }

    /// The newest soft purge that covers an object; `None` if there is none, or if a sweep has already
    /// processed that purge.
    pub(crate) fn soft_unswept(&self, object: &Object) -> Option<u64> {
        let state = self.state.read();
        let newest = state.patterns.covering(object).soft;
        let waits = state.active.get(&newest).is_some_and(|a| !a.swept);
        (waits && newest > object.meta().purge_sequence).then_some(newest)
    }

    /// Counts objects that a purge removed or made stale, until its sweep has finished.
    pub(crate) fn count(&self, number: u64, by: u64) {
        if let Some((_, progress)) = self.state.read().history.get(&number)
            && !progress.done.load(Ordering::Acquire)
        {
            progress.count.fetch_add(by, Ordering::Relaxed);
        }
    }

    /// Ensures that new purges get numbers above `number`.
    pub(crate) fn raise(&self, number: u64) {
        let mut state = self.state.write();
        state.latest = state.latest.max(number);
        self.latest.store(state.latest, Ordering::Release);
    }

    /// Takes a new purge number when a store stops recording removals. The journals of the other stores
    /// record this number. If the journal of a store lacks this number, the store has missed removals or
    /// purges. Then, at the next start, all its contents from before this number are dead.
    pub(super) fn leave_behind(&self) {
        let mut state = self.state.write();
        state.latest += 1;
        state.retired = rule!(
            "purge: a store that missed something is told from those that did not",
            state.latest,
            state.retired
        );
        self.latest.store(state.latest, Ordering::Release);
    }

    /// Makes a purge effective for every lookup from now on, and passes it to the journals of the
    /// stores that are open now. Returns these stores too.
    pub(super) fn publish(
        &self,
        purge: &Purge,
        places: Places,
        at: WallTime,
        fleet: &Fleet,
    ) -> Result<(PurgeNote, Stores), PurgeError> {
        check(purge)?;
        let mut state = self.state.write();
        // The list is read under the lock. So a store that is being opened is already in the list, or it is
        // added later and then checks for newer purges.
        let stores = fleet.stores();
        let note = PurgeNote {
            kind: purge.kind,
            soft: purge.soft,
            sequence: state.latest + 1,
            at: at.millis(),
            partition: purge.partition.clone().into_bytes(),
            text: purge.text.clone(),
        };
        let covered = state.covered_by(&note);
        let room = limits::room(&stores);
        state.has_place(&note, &covered, places, room)?;
        state.latest = note.sequence;
        for old in covered {
            state.merge(old, note.sequence);
        }
        state.insert(note.clone(), &ends(&stores));
        state.harden(room);
        for store in stores.iter() {
            rule!(
                "purge: every journal takes every note",
                store.journal.lock().notes.push(note.clone()),
                ()
            );
        }
        self.latest.store(state.latest, Ordering::Release);
        Ok((note, stores))
    }

    /// Takes in the purges from the journal of a store. `stores` are the open stores and that store. All
    /// active purges then stay as long as any of these stores has objects from before these purges.
    pub(crate) fn adopt(&self, notes: Vec<PurgeNote>, retired: u64, stores: &[Arc<StoreShared>]) {
        let mut state = self.state.write();
        state.retired = state.retired.max(retired);
        let all = ends(stores);
        for active in state.active.values_mut() {
            for end in &all {
                if active.ends.iter().all(|(id, _)| *id != end.0) {
                    active.ends.push(*end);
                }
            }
        }
        for note in notes {
            if state.active.contains_key(&note.sequence) {
                continue;
            }
            state.latest = state.latest.max(note.sequence);
            state.insert(note, &all);
        }
        self.latest.store(state.latest, Ordering::Release);
    }

    /// The greatest number of an active purge; 0: there is none.
    pub(crate) fn newest_active(&self) -> u64 {
        let state = self.state.read();
        state
            .active
            .last_key_value()
            .map_or(0, |(number, _)| *number)
    }

    /// The greatest number of a purge that waits for a sweep.
    pub(crate) fn unswept(&self) -> Option<u64> {
        let state = self.state.read();
        let mut waiting = state.active.values().rev().filter(|a| !a.swept);
        waiting.next().map(|a| a.note.sequence)
    }

    /// Notes that a sweep of all purges up to `number` has ended. `all` is true if the sweep could compare
    /// everything and its removals are durable. Then the hard purges among these purges retire. Returns
    /// whether any purge retired.
    pub(crate) fn swept(&self, number: u64, all: bool) -> bool {
        let mut state = self.state.write();
        let State {
            active, history, ..
        } = &mut *state;
        let mut done = Vec::new();
        for (sequence, active) in active.range_mut(..=number) {
            active.swept = true;
            if let Some((_, progress)) = history.get(sequence) {
                progress.done.store(true, Ordering::Release);
            }
            let hard = rule!(
                "purge: a soft one stays until everything of its time was reused",
                !active.note.soft,
                true
            );
            if rule!(
                "purge: it stays if its sweep could not read everything",
                all,
                true
            ) && hard
            {
                done.push(*sequence);
            }
        }
        self.retire(&mut state, &done)
    }

    /// Retires the swept purges that are older than everything stored. Returns whether there were such
    /// purges.
    pub(crate) fn age(&self, stores: &[Arc<StoreShared>]) -> bool {
        let oldest = |id: StoreId| {
            let store = stores.iter().find(|s| s.id == id)?;
            store.space.oldest_incarnation()
        };
        let mut state = self.state.write();
        let past = state.active.values().filter(|a| {
            let gone = |(id, end): &(StoreId, u64)| {
                oldest(*id).is_none_or(|incarnation| incarnation > *end)
            };
            rule!("purge: it does not retire before its sweep", a.swept, true)
                && !a.ends.is_empty()
                && rule!(
                    "purge: it does not retire while a segment of its time is there",
                    a.ends.iter().all(gone),
                    true
                )
        });
        let past: Vec<u64> = past.map(|a| a.note.sequence).collect();
        self.retire(&mut state, &past)
    }

    fn retire(&self, state: &mut State, numbers: &[u64]) -> bool {
        for number in numbers {
            // The barrier is raised before the purge is forgotten, so that an object whose fetch began
            // before the purge is not stored.
            self.barrier.fetch_max(*number, Ordering::AcqRel);
            state.take_out(*number);
            state.retired = state.retired.max(*number);
        }
        !numbers.is_empty()
    }

    pub(super) fn status(&self, number: u64) -> Option<PurgeStatus> {
        let state = self.state.read();
        let (note, progress) = state.history.get(&number)?;
        Some(status(note, progress))
    }

    /// Returns the latest purges, newest first.
    pub(super) fn statuses(&self, limit: usize) -> Vec<PurgeStatus> {
        let state = self.state.read();
        let newest = state.history.values().rev().take(limit);
        newest
            .map(|(note, progress)| status(note, progress))
            .collect()
    }

    /// The number of purges with which objects are compared.
    pub(super) fn active(&self) -> usize {
        self.state.read().active.len()
    }
}

/// Returns for each store the last segment that may contain objects from before a purge that is made now.
/// Objects in later segments are compared with the purge before they are written.
fn ends(stores: &[Arc<StoreShared>]) -> Vec<(StoreId, u64)> {
    let end = |s: &Arc<StoreShared>| s.marks.log_end().sequence();
    // A cluster may be on its way to the segment after the segment in which the log ends. So that segment
    // counts too.
    let next = rule!(
        "purge: the segment after the open one is of its time too",
        1,
        0
    );
    stores.iter().map(|s| (s.id, end(s) + next)).collect()
}

fn check(purge: &Purge) -> Result<(), PurgeError> {
    let max = match purge.kind {
        PurgeKind::Expression => EXPRESSION_MAX,
        _ => TEXT_MAX,
    };
    if purge.text.len() > max || purge.partition.len() > 255 {
        return Err(PurgeError::TooLong(max));
    }
    if purge.text.is_empty() != (purge.kind == PurgeKind::All) {
        return Err(PurgeError::Empty);
    }
    if purge.kind == PurgeKind::Expression {
        compile(&purge.text).map_err(PurgeError::Expression)?;
    }
    Ok(())
}

fn status(note: &PurgeNote, progress: &Progress) -> PurgeStatus {
    let merged = progress.merged.load(Ordering::Acquire);
    PurgeStatus {
        number: note.sequence,
        kind: note.kind,
        text: String::from_utf8_lossy(&note.text).into_owned(),
        partition: String::from_utf8_lossy(&note.partition).into_owned(),
        soft: note.soft,
        at: WallTime(note.at),
        objects: progress.count.load(Ordering::Relaxed),
        done: progress.done.load(Ordering::Acquire),
        merged_into: (merged != 0).then_some(merged),
    }
}

impl State {
    fn insert(&mut self, note: PurgeNote, ends: &[(StoreId, u64)]) {
        self.patterns.add(&note);
        self.bytes += note.encoded_len();
        while self.history.len() >= HISTORY_MAX {
            self.history.pop_first();
        }
        let progress = Arc::default();
        self.history.insert(note.sequence, (note.clone(), progress));
        let active = Active {
            ends: ends.to_vec(),
            swept: false,
            note,
        };
        self.active.insert(active.note.sequence, active);
    }

    fn take_out(&mut self, number: u64) -> Option<Active> {
        let active = self.active.remove(&number)?;
        self.patterns.remove(&active.note);
        self.bytes -= active.note.encoded_len();
        Some(active)
    }

    /// Notes that purge `new` covers the purge `old`, so that objects need not be compared with `old`
    /// any more.
    fn merge(&mut self, old: u64, new: u64) {
        self.take_out(old);
        if let Some((_, progress)) = self.history.get(&old) {
            progress.merged.store(new, Ordering::Release);
        }
    }

    /// Makes an active soft purge hard. It is swept once more.
    pub(super) fn make_hard(&mut self, number: u64) {
        let Some(mut active) = self.take_out(number) else {
            return;
        };
        active.note.soft = false;
        active.swept = false;
        self.patterns.add(&active.note);
        self.bytes += active.note.encoded_len();
        self.active.insert(number, active);
    }
}
