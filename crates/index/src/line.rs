//! One cache line of the table: five slots and a version.
//!
//! Writers hold the shard's lock; readers hold nothing. The order of the stores is what lets
//! readers do so: a slot that changes its key is empty in between (word 0, then aux, then word),
//! so a word and an aux read between two equal words belong together; and the version of a line
//! counts the entries that were *moved* into it, before they leave their former place.

use crate::address::Address;
use crate::bits::{FREQ_MASK, FREQ_ONE, Fingerprint, Packed, has_tag};
use crate::entry::Entry;
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

    /// The slots with the tag of `fp`, a bit for each; perhaps empty ones among them.
    #[inline(always)]
    pub(crate) fn tagged(&self, fp: Fingerprint) -> u32 {
        let (tag, _) = fp.stored();
        self.slots_where(|word| has_tag(word, tag))
    }

    /// For readers: what `slot` holds of `fp`, if it is (still) there.
    #[inline(always)]
    fn packed_of(&self, fp: Fingerprint, slot: usize) -> Option<Packed> {
        self.snapshot(slot).filter(|p| p.stored_is(fp))
    }

    /// For readers: the entry of `fp` in `slot`, if it is (still) there.
    #[inline(always)]
    pub(crate) fn entry_of(&self, fp: Fingerprint, slot: usize) -> Option<Entry> {
        self.packed_of(fp, slot)?.entry()
    }

    /// A word and the aux that belongs to it. Repeats while a writer is exchanging the slot.
    #[inline(always)]
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

    /// For readers: counts a use of the entry of `fp` at `address`; true if it is in `slot`.
    pub(crate) fn touch(&self, fp: Fingerprint, slot: usize, address: Address) -> bool {
        let packed = self.packed_of(fp, slot);
        let Some(packed) = packed.filter(|p| Address::from_word(p.word) == address) else {
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

    // From here on for the holder of the shard's lock only.

    /// The slots' contents.
    pub(crate) fn get(&self, slot: usize) -> Packed {
        Packed {
            word: self.words[slot].load(Ordering::Relaxed),
            aux: self.aux[slot].load(Ordering::Relaxed),
        }
    }

    /// Whether `slot` holds `fp`, at `address` if one is asked for.
    pub(crate) fn holds(&self, fp: Fingerprint, slot: usize, address: Option<Address>) -> bool {
        let packed = self.get(slot);
        packed.stored_is(fp) && address.is_none_or(|a| Address::from_word(packed.word) == a)
    }

    /// The empty slots, a bit for each.
    #[inline]
    pub(crate) fn free(&self) -> u32 {
        self.slots_where(|word| word == 0)
    }

    #[inline(always)]
    fn slots_where(&self, is: impl Fn(u64) -> bool) -> u32 {
        let words = self.words.iter().enumerate();
        words.fold(0, |slots, (slot, word)| {
            slots | u32::from(is(word.load(Ordering::Acquire))) << slot
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

    /// Empties a slot whose entry is elsewhere by now. Uses counted meanwhile may be lost.
    pub(crate) fn leave(&self, slot: usize) {
        self.words[slot].store(0, Ordering::Release);
    }

    /// The uses of a slot, set back to none.
    pub(crate) fn take_freq(&self, slot: usize) -> Option<u8> {
        let word = self.words[slot].fetch_and(!FREQ_MASK, Ordering::Relaxed);
        Packed { word, aux: 0 }.entry().map(|entry| entry.freq)
    }
}

impl Packed {
    /// Whether it is an entry of `fp`; an empty slot is of none.
    fn stored_is(self, fp: Fingerprint) -> bool {
        self.word != 0 && (self.tag(), self.ext()) == fp.stored()
    }
}
