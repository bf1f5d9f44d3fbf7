//! The two places where an entry may be.

use crate::address::Address;
use crate::bits::{Fingerprint, Packed, TAG_BITS};
use crate::entry::{Candidates, Entry, Insert};
use crate::line::{Line, SLOTS};

/// A line, its number, and the fingerprint as the slots of this line store it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) line: &'a Line,
    pub(crate) number: u32,
    pub(crate) fp: Fingerprint,
}

/// Both places of a fingerprint.
///
/// A lookup spends most of its time on waiting for memory. If few instructions remain until the next
/// lookup begins, the processor requests the lines of the next lookup during that wait. So lookups
/// here are straight code: no branch depends on the slot, and no value passes through memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home<'a>(pub(crate) [Place<'a>; 2]);

impl<'a> Home<'a> {
    #[inline(always)]
    pub(crate) fn versions(&self) -> [u32; 2] {
        let [first, second] = &self.0;
        [first.line.version(), second.line.version()]
    }

    /// Returns the entries of the fingerprint. Readers call this without a lock.
    #[inline(always)]
    pub(crate) fn find(&self) -> Candidates {
        let mut found = Candidates::default();
        let mut tagged = self.tagged();
        let held = |(place, slot): (Place<'_>, usize)| place.line.packed_of(place.fp, slot);
        // There is nearly always at most one entry.
        if let Some(packed) = tagged.next().and_then(held) {
            found.push(packed);
        }
        tagged.filter_map(held).for_each(|more| found.push(more));
        found
    }

    /// Returns the position of the fingerprint's entry. If `address` is given, only an entry with this
    /// address is found. Only the holder of the shard's lock calls this.
    pub(crate) fn position(&self, address: Option<Address>) -> Option<(Place<'a>, usize)> {
        self.tagged()
            .find(|(place, slot)| place.line.holds(place.fp, *slot, address))
    }

    /// Returns all slots of both lines. Only the holder of the shard's lock calls this.
    pub(crate) fn slots(self) -> impl Iterator<Item = (&'a Line, usize)> {
        let lines = self.0.into_iter().map(|place| place.line);
        lines.flat_map(|line| (0..SLOTS).map(move |slot| (line, slot)))
    }

    /// All slots that have the fingerprint's tag; empty slots may be among them. The tags of both lines are
    /// compared before any slot is read: the processor can predict whether a slot matches, but not which slot
    /// matches.
    #[inline(always)]
    pub(crate) fn tagged(&self) -> impl Iterator<Item = (Place<'a>, usize)> {
        let [first, second] = self.0;
        // In `left`, each slot of the first line has an odd bit, and the same slot of the second line
        // has the even bit below it.
        const { assert!(TAG_BITS.is_multiple_of(2)) };
        let mut left = first.line.tagged(first.fp) | second.line.tagged(second.fp) >> 1;
        std::iter::from_fn(move || {
            let at = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            let place = if at & 1 == 1 { first } else { second };
            Some((place, (at / TAG_BITS) as usize))
        })
    }

    /// Handles an entry that exists already: it stays, or the new entry takes its place.
    pub(crate) fn settle_present(&self, entry: Entry, keep: bool) -> Option<Insert> {
        let (Place { line, fp, .. }, slot) = self.position(None)?;
        if keep {
            return line.get(slot).entry().map(Insert::Present);
        }
        let old = line.exchange(slot, Packed::new(fp, entry));
        old.entry().map(Insert::Replaced)
    }
}
