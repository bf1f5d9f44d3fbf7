//! One cache line of the table: five slots, their tags in one number, and a version.
//!
//! Writers hold the shard's lock; readers hold nothing. The order of the stores makes this possible:
//! a slot that changes its key is empty in between (word 0, then aux, then word), so a word and an
//! aux read between two equal words belong together; and the version of a line counts the entries
//! that were *moved* into it, before they leave their former place. A slot's tag is stored last and
//! stays when the slot is emptied: a reader that finds the tag reads the word next, and sees by the
//! rest of the fingerprint that the slot now belongs to another key. (In one of 2^23 such cases the
//! rest is the same: the reader gets an entry of another key, which callers expect anyway.)

use crate::address::Address;
use crate::bits::{FREQ_MASK, FREQ_ONE, Fingerprint, Packed, TAG_BITS, same_fields};
use crate::sync::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Slots of a line: 5 x 10 bytes, 8 of tags, 4 of version, and 2 to spare make 64.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { 5 };

/// A bucket of the table.
#[derive(Debug)]
#[cfg_attr(
    not(loom),
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout)
)]
#[repr(C, align(64))]
pub(crate) struct Line {
    tags: AtomicU64,
    words: [AtomicU64; SLOTS],
    aux: [AtomicU16; SLOTS],
    _spare: [u8; 2],
    version: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Line>() == 64);

impl Line {
    /// For loom only: otherwise lines are made from zeroed memory.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            tags: AtomicU64::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
            aux: std::array::from_fn(|_| AtomicU16::new(0)),
            _spare: [0; 2],
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

    /// The slots with the tag of `fp`, empty ones perhaps among them: bit `TAG_BITS - 1` of each
    /// `TAG_BITS`.
    #[inline(always)]
    pub(crate) fn tagged(&self, fp: Fingerprint) -> u64 {
        same_fields::<SLOTS>(self.tags.load(Ordering::Acquire), fp.tag())
    }

    /// For readers: the contents of `slot`, which has the tag of `fp`, if they (still) belong to
    /// `fp`.
    #[inline(always)]
    pub(crate) fn packed_of(&self, fp: Fingerprint, slot: usize) -> Option<Packed> {
        let found = self.snapshot(slot);
        found.filter(|packed| packed.is_rest_of(fp))
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

    /// For readers: counts a use of the entry of `fp` at `address`; true if it is in `slot`, which
    /// has its tag.
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

    /// The fingerprint of what is in `slot` of this line, which is line `number`.
    pub(crate) fn fingerprint(&self, number: u32, slot: usize) -> Fingerprint {
        Fingerprint::from_slot(number, self.tag(slot), self.get(slot))
    }

    /// The tag of `slot`; meaningless if the slot is empty.
    pub(crate) fn tag(&self, slot: usize) -> u64 {
        self.tags.load(Ordering::Relaxed) >> shift(slot) & TAG_MASK
    }

    /// True if `slot`, which has the tag of `fp`, holds an entry of `fp`, at `address` if one is
    /// given.
    pub(crate) fn holds(&self, fp: Fingerprint, slot: usize, address: Option<Address>) -> bool {
        let packed = self.get(slot);
        let is_it = !packed.is_empty() && packed.is_rest_of(fp);
        is_it && address.is_none_or(|a| Address::from_word(packed.word) == a)
    }

    /// The empty slots, a bit for each.
    #[inline]
    pub(crate) fn free(&self) -> u32 {
        let words = self.words.iter().enumerate();
        words.fold(0, |slots, (slot, word)| {
            slots | u32::from(word.load(Ordering::Acquire) == 0) << slot
        })
    }

    /// Fills an empty slot.
    pub(crate) fn put(&self, slot: usize, tag: u64, packed: Packed) {
        debug_assert_eq!(self.words[slot].load(Ordering::Relaxed), 0, "a slot in use");
        self.aux[slot].store(packed.aux, Ordering::Release);
        self.words[slot].store(packed.word, Ordering::Release);
        let others = self.tags.load(Ordering::Relaxed) & !(TAG_MASK << shift(slot));
        let tags = others | tag << shift(slot);
        self.tags.store(tags, Ordering::Release);
    }

    /// Exchanges an entry for one of the same fingerprint; readers see one of the two at every
    /// moment (with the hint of either).
    pub(crate) fn exchange(&self, slot: usize, packed: Packed) -> Packed {
        let aux = self.aux[slot].load(Ordering::Relaxed);
        self.aux[slot].store(packed.aux, Ordering::Release);
        let word = self.words[slot].swap(packed.word, Ordering::AcqRel);
        Packed { word, aux }
    }

    /// Empties a slot; a swap, so that the uses counted up to this moment are all returned.
    pub(crate) fn clear(&self, slot: usize) -> Packed {
        let aux = self.aux[slot].load(Ordering::Relaxed);
        let word = self.words[slot].swap(0, Ordering::AcqRel);
        Packed { word, aux }
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

const TAG_MASK: u64 = (1 << TAG_BITS) - 1;

/// Offset of the tag of `slot` in the tags.
const fn shift(slot: usize) -> u32 {
    slot as u32 * TAG_BITS
}
