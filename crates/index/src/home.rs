//! The two places (buckets) where an entry may be. The buckets follow from the entry's fingerprint, which is
//! a part of the hash of its key.

use crate::address::Address;
use crate::bits::{Fingerprint, Packed, TAG_BITS};
use crate::bucket::{Bucket, SLOTS};
use crate::entry::{Candidates, Entry, Insert};

/// A bucket, its number, and the fingerprint as the slots of this bucket store it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) bucket: &'a Bucket,
    pub(crate) number: u32,
    pub(crate) fp: Fingerprint,
}

/// Both places of a fingerprint.
///
/// A lookup spends most of its time on waiting for memory. If few instructions remain until the next
/// lookup begins, the processor requests the buckets of the next lookup during that wait. So lookups
/// here are straight code: no branch depends on the slot, and no value passes through memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home<'a>(pub(crate) [Place<'a>; 2]);

impl<'a> Home<'a> {
    #[inline(always)]
    pub(crate) fn versions(&self) -> [u32; 2] {
        let [first, second] = &self.0;
        [first.bucket.version(), second.bucket.version()]
    }

    /// Returns the entries of the fingerprint. Readers call this without a lock.
    #[inline(always)]
    pub(crate) fn find(&self) -> Candidates {
        let mut found = Candidates::default();
        let mut tagged = self.tagged();
        let held = |(place, slot): (Place<'_>, usize)| place.bucket.packed_of(place.fp, slot);
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
            .find(|(place, slot)| place.bucket.holds(place.fp, *slot, address))
    }

    /// Returns all slots of both buckets. Only the holder of the shard's lock calls this.
    pub(crate) fn slots(self) -> impl Iterator<Item = (&'a Bucket, usize)> {
        let buckets = self.0.into_iter().map(|place| place.bucket);
        buckets.flat_map(|bucket| (0..SLOTS).map(move |slot| (bucket, slot)))
    }

    /// All slots that have the fingerprint's tag; empty slots may be among them. The tags of both buckets are
    /// compared before any slot is read: the processor can predict whether a slot matches, but not which slot
    /// matches.
    #[inline(always)]
    pub(crate) fn tagged(&self) -> impl Iterator<Item = (Place<'a>, usize)> {
        let [first, second] = self.0;
        // In `left`, each slot of the first bucket has an odd bit, and the same slot of the second bucket
        // has the even bit below it.
        const { assert!(TAG_BITS.is_multiple_of(2)) };
        let mut left = first.bucket.tagged(first.fp) | second.bucket.tagged(second.fp) >> 1;
        std::iter::from_fn(move || {
            let at = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            let place = if at & 1 == 1 { first } else { second };
            Some((place, (at / TAG_BITS) as usize))
        })
    }

    /// If an entry of the fingerprint exists, keeps it (if `keep` is true) or exchanges it for the new entry.
    /// `None` if there is no such entry.
    pub(crate) fn settle_present(&self, entry: Entry, keep: bool) -> Option<Insert> {
        let (Place { bucket, fp, .. }, slot) = self.position(None)?;
        if keep {
            return bucket.get(slot).entry().map(Insert::Present);
        }
        let old = bucket.exchange(slot, Packed::new(fp, entry));
        old.entry().map(Insert::Replaced)
    }
}
