//! The limits for active purges: a new purge that would exceed a limit is refused. An active purge is never
//! made broader to save room, and an acknowledged purge is never dropped.

use std::sync::Arc;

use foxy_format::{PurgeKind, PurgeNote};

use super::set::State;
use super::{Places, PurgeError};
use crate::shared::StoreShared;

/// Maximum number of active expressions. When an object is compared with the purges, each expression is
/// matched against it.
const EXPRESSIONS_MAX: usize = 64;
/// Number of expressions that are reserved for operators.
const EXPRESSIONS_RESERVED: usize = 16;
/// Maximum number of bytes of active purges. A small journal sets a lower limit.
const BYTES_MAX: usize = 512 << 10;
/// The part (1/n) of the bytes that is reserved for operators.
const RESERVED_PART: usize = 4;

/// The number of bytes of notes that fit into a snapshot of every journal.
pub(super) fn room(stores: &[Arc<StoreShared>]) -> usize {
    let smallest = stores.iter().map(|s| super::journal::room(s)).min();
    smallest.unwrap_or(BYTES_MAX).min(BYTES_MAX)
}

/// Returns true if the later purge `new` makes `old` needless. Then `new` is a purge of everything or has the
/// kind and text of `old`, it applies to the partition of `old`, and it is not soft if `old` is hard.
fn makes_needless(new: &PurgeNote, old: &PurgeNote) -> bool {
    let everything = new.kind == PurgeKind::All;
    let same = (old.kind, &old.text) == (new.kind, &new.text);
    let partition = match everything {
        true => new.partition.is_empty() || new.partition == old.partition,
        false => new.partition == old.partition,
    };
    let as_hard = !new.soft || old.soft;
    (everything || same) && partition && as_hard
}

impl State {
    /// Returns the active purges that become needless once `note` is active.
    pub(super) fn covered_by(&self, note: &PurgeNote) -> Vec<u64> {
        let notes = self.active.values().map(|active| &active.note);
        notes
            .filter(|old| makes_needless(note, old))
            .map(|old| old.sequence)
            .collect()
    }

    /// Checks that `note` fits within the limits once the needless purges (`covered`) are removed.
    ///
    /// # Errors
    /// An error if a limit would be exceeded.
    pub(super) fn has_place(
        &self,
        note: &PurgeNote,
        covered: &[u64],
        places: Places,
        room: usize,
    ) -> Result<(), PurgeError> {
        let (expressions_max, bytes_max) = match places {
            Places::Reserved => (EXPRESSIONS_MAX, room),
            Places::Shared => (
                EXPRESSIONS_MAX - EXPRESSIONS_RESERVED,
                room - room / RESERVED_PART,
            ),
        };
        let stays = |number: &u64| !covered.contains(number);
        let staying = self.active.iter().filter(|(number, _)| stays(number));
        let kinds = staying.map(|(_, active)| active.note.kind);
        let expressions = kinds.filter(|kind| *kind == PurgeKind::Expression).count();
        if note.kind == PurgeKind::Expression && expressions >= expressions_max {
            return Err(PurgeError::TooMany(expressions_max));
        }
        let going = covered.iter().filter_map(|number| self.active.get(number));
        let freed: usize = going.map(|active| active.note.encoded_len()).sum();
        // A purge that replaces other purges needs only the bytes by which it is longer than the
        // replaced purges.
        let grows = note.encoded_len().saturating_sub(freed);
        if grows > 0 && self.bytes + grows > bytes_max {
            return Err(PurgeError::Busy);
        }
        Ok(())
    }

    /// Soft purges stay until all objects that were stored before them are overwritten, so after a while they
    /// would fill all places. When they take more than half of the places, the oldest soft purges for which a
    /// sweep has ended become hard. The objects that these purges cover are then removed and no longer kept
    /// as stale. Other objects are not affected. The next sweep ends these purges.
    pub(super) fn harden(&mut self, room: usize) {
        let soft = self.active.values().filter(|active| active.note.soft);
        let mut held: usize = soft.map(|active| active.note.encoded_len()).sum();
        if held <= room / 2 {
            return;
        }
        let swept = self.active.values().filter(|a| a.note.soft && a.swept);
        let oldest = swept.map(|a| (a.note.sequence, a.note.encoded_len()));
        let oldest: Vec<_> = oldest
            .take_while(|(_, len)| {
                let more = held > room / 4;
                held = held.saturating_sub(*len);
                more
            })
            .collect();
        for (number, _) in oldest {
            self.make_hard(number);
        }
    }
}
