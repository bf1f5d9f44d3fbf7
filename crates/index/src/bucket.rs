//! One bucket of the table: a cache line with five slots, their tags in one number, and a version. (The head
//! of `bits.rs` describes the parts of a slot.)
//!
//! Writers hold the shard's lock; readers hold no lock. The order of the writes to memory makes this safe.
//! While a slot changes its key, it is empty: the writer stores 0 as the word, then the aux (the bits beside
//! the word), and then the new word. So a reader may trust an aux if the word was the same before and after
//! it read the aux. The version of a bucket counts the entries that were *moved* into it. The version is
//! increased before such an entry is removed from its former bucket. So a reader that misses an entry because
//! it was moved finds a changed version, and repeats its lookup. (Moves because of growth do not change the
//! version. A reader notices them by the shard's number of buckets.) A slot's tag is stored last and stays
//! when the slot is emptied. A reader that finds the tag reads the word next. The rest of the fingerprint
//! shows the reader whether the slot now belongs to another key. (In one of 2^23 such cases the rest is the
//! same. Then the reader gets an entry of another key, which callers expect in any case.)

use crate::address::Address;
use crate::bits::{FREQ_MASK, FREQ_ONE, Fingerprint, Packed, TAG_BITS, same_fields};
use crate::sync::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Number of slots of a bucket: 5 slots of 10 bytes, 8 bytes of tags, 4 bytes of version and 2 unused bytes
/// make 64 bytes.
pub(crate) const SLOTS: usize = if cfg!(loom) { 2 } else { 5 };

/// A bucket of the table: one cache line with five slots.
#[derive(Debug)]
#[cfg_attr(
    not(loom),
    derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout)
)]
#[repr(C, align(64))]
pub(crate) struct Bucket {
    tags: AtomicU64,
    words: [AtomicU64; SLOTS],
    aux: [AtomicU16; SLOTS],
    _spare: [u8; 2],
    version: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket>() == 64);

impl Bucket {
    /// Makes an empty bucket under loom. Without loom, buckets are made from zeroed memory.
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

    /// Lets readers know that an entry was moved into this bucket. Call it between storing the entry here and
    /// clearing its former slot.
    pub(crate) fn announce_arrival(&self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Release);
    }

    /// The slots that have the tag of `fp`; empty slots may be among them. Each slot has `TAG_BITS` bits of
    /// the result, and bit `TAG_BITS - 1` of these is set for a match.
    #[inline(always)]
    pub(crate) fn tagged(&self, fp: Fingerprint) -> u64 {
        same_fields::<SLOTS>(self.tags.load(Ordering::Acquire), fp.tag())
    }

    /// Returns the contents of `slot`, which has the tag of `fp`, if they (still) belong to `fp`. Readers
    /// call this without a lock.
    #[inline(always)]
    pub(crate) fn packed_of(&self, fp: Fingerprint, slot: usize) -> Option<Packed> {
        let found = self.snapshot(slot);
        found.filter(|packed| packed.is_rest_of(fp))
    }

    /// Reads a word, and the aux that belongs to it. Repeats the reads while a writer exchanges the slot's
    /// contents.
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

    /// Counts a use of the entry of `fp` at `address`. True if the entry is in `slot`, which must have the
    /// tag of `fp`. Readers call this without a lock.
    pub(crate) fn touch(&self, fp: Fingerprint, slot: usize, address: Address) -> bool {
        let packed = self.packed_of(fp, slot);
        let Some(packed) = packed.filter(|p| Address::from_word(p.word) == address) else {
            return false;
        };
        if packed.word & FREQ_MASK != FREQ_MASK {
            // If a writer or another reader changes the word first, only this use is lost.
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

    // The functions from here on are only for the holder of the shard's lock.

    /// The contents of a slot.
    pub(crate) fn get(&self, slot: usize) -> Packed {
        Packed {
            word: self.words[slot].load(Ordering::Relaxed),
            aux: self.aux[slot].load(Ordering::Relaxed),
        }
    }

    /// The fingerprint of the entry in `slot` of this bucket; `number` is the number of the bucket.
    pub(crate) fn fingerprint(&self, number: u32, slot: usize) -> Fingerprint {
        Fingerprint::from_slot(number, self.tag(slot), self.get(slot))
    }

    /// The tag of `slot`; meaningless if the slot is empty.
    pub(crate) fn tag(&self, slot: usize) -> u64 {
        self.tags.load(Ordering::Relaxed) >> shift(slot) & TAG_MASK
    }

    /// True if `slot` contains an entry of `fp`. If `address` is given, the entry must also have this
    /// address. The caller has checked that the slot has the tag of `fp`.
    pub(crate) fn holds(&self, fp: Fingerprint, slot: usize, address: Option<Address>) -> bool {
        let packed = self.get(slot);
        let is_it = !packed.is_empty() && packed.is_rest_of(fp);
        is_it && address.is_none_or(|a| Address::from_word(packed.word) == a)
    }

    /// The empty slots: one bit for each slot.
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

    /// Exchanges an entry for another entry of the same fingerprint. Readers see one of the two entries
    /// at every moment, perhaps with the hint of the other entry.
    pub(crate) fn exchange(&self, slot: usize, packed: Packed) -> Packed {
        let aux = self.aux[slot].load(Ordering::Relaxed);
        self.aux[slot].store(packed.aux, Ordering::Release);
        let word = self.words[slot].swap(packed.word, Ordering::AcqRel);
        Packed { word, aux }
    }

    /// Empties a slot and returns its contents. The word is swapped, so that all uses counted up to this
    /// moment are returned.
    pub(crate) fn clear(&self, slot: usize) -> Packed {
        let aux = self.aux[slot].load(Ordering::Relaxed);
        let word = self.words[slot].swap(0, Ordering::AcqRel);
        Packed { word, aux }
    }

    /// Empties a slot after its entry was stored in another slot. Uses that are counted meanwhile may be
    /// lost.
    pub(crate) fn leave(&self, slot: usize) {
        self.words[slot].store(0, Ordering::Release);
    }

    /// Returns the number of uses of a slot, and sets it back to 0.
    pub(crate) fn take_freq(&self, slot: usize) -> Option<u8> {
        let word = self.words[slot].fetch_and(!FREQ_MASK, Ordering::Relaxed);
        Packed { word, aux: 0 }.entry().map(|entry| entry.freq)
    }
}

const TAG_MASK: u64 = (1 << TAG_BITS) - 1;

/// Bit offset of the tag of `slot` in the number with all tags.
const fn shift(slot: usize) -> u32 {
    slot as u32 * TAG_BITS
}
