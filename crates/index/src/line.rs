//! One cache line of the table: five slots and a version.
//!
//! Writers hold the shard's lock; readers hold nothing. The order of the stores is what lets
//! readers do so: a slot that changes its key is empty in between (word 0, then aux, then word),
//! so a word and an aux read between two equal words belong together; and the version of a line
//! counts the entries that were *moved* into it, before they leave their former place.

use crate::address::Address;
use crate::bits::{FREQ_MASK, FREQ_ONE, Fingerprint, Packed, has_tag};
use crate::entry::{Candidates, Entry};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Slots of a line: 5 x 12 bytes and 4 of version make 64.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { 5 };

/// A bucket of the table.
#[derive(Debug)]
#[cfg_attr(
    not(loom),
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout)
)]
#[repr(C, align(64))]
pub(crate) struct Line {
    words: [AtomicU64; SLOTS],
    aux: [AtomicU32; SLOTS],
    version: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Line>() == 64);

impl Line {
    /// Otherwise lines are made of zeros.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            words: std::array::from_fn(|_| AtomicU64::new(0)),
            aux: std::array::from_fn(|_| AtomicU32::new(0)),
            version: AtomicU32::new(0),
        }
    }

    pub(crate) fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }

    /// Lets readers know that an entry was moved into this line. Call it between storing the
    /// entry here and clearing its former place.
    pub(crate) fn announce_arrival(&self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Release);
    }

    /// For readers: adds the entries of `fp` in this line to `found`.
    #[inline]
    pub(crate) fn find(&self, fp: Fingerprint, found: &mut Candidates) {
        let (tag, _) = fp.stored();
        // All slots are compared before any is looked into: which of them it is cannot be
        // guessed by the processor, whether there is one can.
        let mut hits = 0u32;
        for (slot, word) in self.words.iter().enumerate() {
            hits |= u32::from(has_tag(word.load(Ordering::Acquire), tag)) << slot;
        }
        while hits != 0 {
            let slot = hits.trailing_zeros() as usize;
            hits &= hits - 1;
            if let Some(entry) = self.snapshot(slot).filter(|p| p.stored_is(fp))
                && let Some(entry) = entry.entry()
            {
                found.push(entry);
            }
        }
    }

    /// A word and the aux that belongs to it. Repeats while a writer is exchanging the slot.
    fn snapshot(&self, slot: usize) -> Option<Packed> {
        let mut word = self.words[slot].load(Ordering::Acquire);
        loop {
            if word == 0 {
                return None;
            }
            let aux = self.aux[slot].load(Ordering::Acquire);
            let again = self.words[slot].load(Ordering::Acquire);
            if (again ^ word) & !FREQ_MASK == 0 {
                return Some(Packed { word, aux });
            }
            word = again;
        }
    }

    /// For readers: counts a use of the entry of `fp` at `address`; true if it is here.
    pub(crate) fn touch(&self, fp: Fingerprint, address: Address) -> bool {
        let Some((slot, packed)) = self.slot_of(fp, address) else {
            return false;
        };
        if packed.word & FREQ_MASK != FREQ_MASK {
            // Losing the race against a writer or another reader loses one use, nothing else.
            let more = packed.word + FREQ_ONE;
            let _ = self.words[slot].compare_exchange(
                packed.word,
                more,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        true
    }

    fn slot_of(&self, fp: Fingerprint, address: Address) -> Option<(usize, Packed)> {
        let (tag, _) = fp.stored();
        (0..SLOTS).find_map(|slot| {
            let word = self.words[slot].load(Ordering::Acquire);
            if !has_tag(word, tag) || Address::from_word(word) != address {
                return None;
            }
            let packed = self.snapshot(slot).filter(|p| p.stored_is(fp))?;
            (Address::from_word(packed.word) == address).then_some((slot, packed))
        })
    }

    // From here on for the holder of the shard's lock only.

    /// The slots' contents.
    pub(crate) fn get(&self, slot: usize) -> Packed {
        Packed {
            word: self.words[slot].load(Ordering::Relaxed),
            aux: self.aux[slot].load(Ordering::Relaxed),
        }
    }

    /// The first slot of `fp`, at `address` if one is asked for.
    pub(crate) fn position(&self, fp: Fingerprint, address: Option<Address>) -> Option<usize> {
        let (tag, _) = fp.stored();
        // As in `find`: most lines have no such tag, and that can be guessed.
        let mut hits = self.slots_where(|word| has_tag(word, tag));
        while hits != 0 {
            let slot = hits.trailing_zeros() as usize;
            let packed = self.get(slot);
            if packed.stored_is(fp) && address.is_none_or(|a| Address::from_word(packed.word) == a)
            {
                return Some(slot);
            }
            hits &= hits - 1;
        }
        None
    }

    /// The empty slots, a bit for each.
    pub(crate) fn free(&self) -> u32 {
        self.slots_where(|word| word == 0)
    }

    fn slots_where(&self, is: impl Fn(u64) -> bool) -> u32 {
        let words = self.words.iter().enumerate();
        words.fold(0, |slots, (slot, word)| {
            slots | u32::from(is(word.load(Ordering::Relaxed))) << slot
        })
    }

    /// Fills an empty slot.
    pub(crate) fn put(&self, slot: usize, packed: Packed) {
        debug_assert_eq!(self.words[slot].load(Ordering::Relaxed), 0, "a slot in use");
        self.aux[slot].store(packed.aux, Ordering::Release);
        self.words[slot].store(packed.word, Ordering::Release);
    }

    /// Exchanges an entry for one of the same fingerprint; readers see one of the two at every
    /// moment (with the hint of either).
    pub(crate) fn exchange(&self, slot: usize, packed: Packed) -> Option<Entry> {
        let aux = self.aux[slot].load(Ordering::Relaxed);
        self.aux[slot].store(packed.aux, Ordering::Release);
        let word = self.words[slot].swap(packed.word, Ordering::AcqRel);
        Packed { word, aux }.entry()
    }

    /// Empties a slot; a swap, so that the uses counted up to this moment are all returned.
    pub(crate) fn clear(&self, slot: usize) -> Option<Entry> {
        let aux = self.aux[slot].load(Ordering::Relaxed);
        let word = self.words[slot].swap(0, Ordering::AcqRel);
        Packed { word, aux }.entry()
    }

    /// The uses of a slot, set back to none.
    pub(crate) fn take_freq(&self, slot: usize) -> Option<u8> {
        let word = self.words[slot].fetch_and(!FREQ_MASK, Ordering::Relaxed);
        Packed { word, aux: 0 }.entry().map(|entry| entry.freq)
    }
}

impl Packed {
    fn stored_is(self, fp: Fingerprint) -> bool {
        (self.tag(), self.ext()) == fp.stored()
    }
}
