//! The bits of a key's hash that the table uses, where they are stored, and how they select a bucket.
//!
//! A shard (a part of the table with its own lock) consists of buckets, and a bucket has five slots for
//! entries. A slot has three parts: a *word* of 64 bits (address, size class, number of uses, 19 bits of the
//! hash), 16 bits beside the word (the caller's hint and 4 bits of the hash), and a *tag* (12 bits of the
//! hash).
//!
//! The key is not stored, so growth must derive an entry's new bucket from the bits that are stored. A
//! *fingerprint* is [`FP_BITS`] bits of the hash. A bucket of a shard is chosen by the lowest bits of the
//! fingerprint (their number depends on the shard's size and is at least [`BASE_BITS`]). A slot stores all
//! fingerprint bits above [`BASE_BITS`]. So bucket number and slot together always contain the whole
//! fingerprint, at any size of the table. Therefore growth need not read any record from a disk.
//!
//! An entry has two possible places (buckets). The second place follows from a second fingerprint: the first
//! fingerprint, with its high bits mixed into its low bits. The same step turns the second fingerprint into
//! the first. So a slot need not state whether it is the first or the second place of its entry.

use foxy_base::KeyHash;

use crate::address::Address;
use crate::entry::Entry;
use crate::size_class::SizeClass;

/// A shard starts with `2^BASE_BITS` buckets.
pub(crate) const BASE_BITS: u32 = if cfg!(loom) { 2 } else { 4 };
/// Limit of a shard's growth: it has fewer than `2^BUCKET_BITS_MAX` buckets.
pub(crate) const BUCKET_BITS_MAX: u32 = if cfg!(loom) { 5 } else { 24 };
/// Number of bits of a fingerprint: the bits that a slot stores, and the bits that the bucket number of the
/// smallest shard contains.
pub(crate) const FP_BITS: u32 = BASE_BITS + EXT_BITS + WORD_BITS + TAG_BITS;
/// Number of the fingerprint bits directly above the lowest [`BASE_BITS`] bits. They are stored beside the
/// word, above the caller's hint.
const EXT_BITS: u32 = 4;
/// Number of bits of the caller's hint.
pub(crate) const HINT_BITS: u32 = u16::BITS - EXT_BITS;
/// Number of the fingerprint bits directly above the bits that [`EXT_BITS`] counts. They are stored in the
/// word.
const WORD_BITS: u32 = 19;
/// Number of the highest fingerprint bits, which are the tag. A bucket keeps the tags of all its slots in one
/// number, so that one operation compares all tags. Tags distinguish the keys of one bucket best, since the
/// bits that chose the bucket are the same for all of these keys.
pub(crate) const TAG_BITS: u32 = 12;
/// Number of the lowest fingerprint bits, the only bits that can differ between the two places of an entry.
/// The tag lies above them.
const LOW_BITS: u32 = 24;

/// Number of shards: a power of two near the number of threads that can write at the same time.
pub(crate) const SHARDS: usize = 32;
/// Number of bits of the hash that choose the shard.
const SHARE_BITS: u32 = 10;

const CLASS_SHIFT: u32 = Address::BITS;
const FREQ_SHIFT: u32 = CLASS_SHIFT + 7;
const WORD_SHIFT: u32 = FREQ_SHIFT + 2;
/// Mask of the two bits of a word in which the index counts uses.
pub(crate) const FREQ_MASK: u64 = 3 << FREQ_SHIFT;
/// Mask of the caller's hint in the bits that are stored beside a word.
const HINT_MASK: u16 = (1 << HINT_BITS) - 1;
/// The value that one use adds to a word.
pub(crate) const FREQ_ONE: u64 = 1 << FREQ_SHIFT;

const _: () = assert!(WORD_SHIFT + WORD_BITS == 64 && FP_BITS + SHARE_BITS <= 64);
const _: () = assert!(LOW_BITS + TAG_BITS <= FP_BITS && BUCKET_BITS_MAX <= LOW_BITS);

/// The number of the shard to which each part of the hash space belongs. Shards have unequal shares of the
/// hash space: the largest share is nearly twice the smallest. So the shards do not all grow at the same
/// moment. While some shards have much unused memory, other shards have little.
const SHARES: [u8; 1 << SHARE_BITS] = shares();

/// The group of a shard. There are two groups of shards, with about equal numbers of entries.
pub(crate) const fn lane(shard: usize) -> usize {
    (shard >= SHARES[SHARES.len() / 2] as usize) as usize
}

const fn shares() -> [u8; 1 << SHARE_BITS] {
    // Shard s gets a share in proportion to 1 + s/SHARDS; the mean of these numbers is 3/2 - 1/(2 SHARDS).
    let mut table = [0u8; 1 << SHARE_BITS];
    let total = SHARDS * SHARDS + SHARDS * (SHARDS - 1) / 2;
    let (mut place, mut shard, mut sum) = (0, 0, SHARDS);
    while place < table.len() {
        while place * total >= sum * table.len() {
            shard += 1;
            sum += SHARDS + shard;
        }
        table[place] = shard as u8;
        place += 1;
    }
    table
}

/// Number of parts of the hash space that each shard has: the number of places in [`SHARES`] that contain the
/// shard's number.
const PLACES: [u16; SHARDS] = places();

const fn places() -> [u16; SHARDS] {
    let mut counts = [0; SHARDS];
    let mut place = 0;
    while place < SHARES.len() {
        counts[SHARES[place] as usize] += 1;
        place += 1;
    }
    counts
}

/// The part of `entries` that `shard` is expected to get.
pub(crate) fn share(shard: usize, entries: u64) -> u64 {
    ((u128::from(entries) * u128::from(PLACES[shard])) >> SHARE_BITS) as u64
}

/// A fingerprint; the head of this file explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(pub(crate) u64);

impl Fingerprint {
    /// The shard and the fingerprint of a key.
    #[inline]
    pub(crate) fn of(hash: KeyHash) -> (usize, Self) {
        let high = hash.high();
        let shard = SHARES[(high >> (64 - SHARE_BITS)) as usize];
        (usize::from(shard), Self(high & ((1 << FP_BITS) - 1)))
    }

    /// The fingerprint of the same entry at its other place. This function is its own inverse. The lowest bit
    /// always changes, so the two places are never the same bucket.
    pub(crate) const fn other(self) -> Self {
        let mixed = (self.0 >> LOW_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - LOW_BITS);
        Self(self.0 ^ (mixed | 1))
    }

    /// The bucket of this fingerprint in a shard of `extent`, by linear hashing.
    pub(crate) const fn bucket(self, extent: Extent) -> u32 {
        let wide = self.0 as u32 & extent.mask();
        if wide < extent.buckets() {
            wide
        } else {
            wide & (extent.mask() >> 1)
        }
    }

    /// The bit that decides whether an entry moves when its bucket is split; `level` is the binary logarithm
    /// of the shard's number of buckets, rounded down.
    pub(crate) const fn bit(self, level: u32) -> bool {
        self.0 >> level & 1 == 1
    }

    /// The part of the fingerprint that a bucket's tags store: the same at both places.
    pub(crate) const fn tag(self) -> u64 {
        self.0 >> (FP_BITS - TAG_BITS)
    }

    /// The part of the fingerprint that a slot stores.
    const fn rest(self) -> u64 {
        self.0 >> BASE_BITS & ((1 << (WORD_BITS + EXT_BITS)) - 1)
    }

    /// The part that a slot stores, split into the bits in the slot's word and the bits beside it.
    pub(crate) const fn stored(self) -> (u64, u16) {
        let rest = self.rest();
        (rest >> EXT_BITS, (rest & ((1 << EXT_BITS) - 1)) as u16)
    }

    /// Restores the fingerprint from the bucket's number, the slot's tag and the slot's contents.
    pub(crate) const fn from_slot(bucket: u32, tag: u64, slot: Packed) -> Self {
        let (word, ext) = slot.stored();
        let stored = (tag << WORD_BITS | word) << EXT_BITS | ext as u64;
        Self(stored << BASE_BITS | (bucket as u64 & ((1 << BASE_BITS) - 1)))
    }
}

/// Two values in one number, so that readers always see both at the same moment. The lower half is the number
/// of buckets of a shard. The upper half is a mask: the fingerprint bits in it are the number of a bucket. If
/// this bucket does not exist yet, the number without its highest bit is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent(pub(crate) u64);

impl Extent {
    /// The extent of a shard with `buckets` buckets, at least `2^BASE_BITS`.
    pub(crate) const fn of(buckets: u32) -> Self {
        let mask = (2u64 << (buckets | 1).ilog2()) - 1;
        Self(mask << 32 | buckets as u64)
    }

    pub(crate) const fn buckets(self) -> u32 {
        self.0 as u32
    }

    const fn mask(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A slot's contents without its tag: the word, and the bits stored beside the word. An empty slot has the
/// word 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packed {
    pub(crate) word: u64,
    pub(crate) aux: u16,
}

impl Packed {
    pub(crate) fn new(fp: Fingerprint, entry: Entry) -> Self {
        let (word, ext) = fp.stored();
        let freq = u64::from(entry.freq.min(3));
        Self {
            word: entry.address.sectors()
                | u64::from(entry.class.number()) << CLASS_SHIFT
                | freq << FREQ_SHIFT
                | word << WORD_SHIFT,
            aux: ext << HINT_BITS | entry.hint & HINT_MASK,
        }
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.word == 0
    }

    /// The parts of the fingerprint that the word and the bits beside it store.
    pub(crate) const fn stored(self) -> (u64, u16) {
        (self.word >> WORD_SHIFT, self.aux >> HINT_BITS)
    }

    /// True if the contents belong to `fp`. The caller has checked that the slot has the tag of `fp`.
    #[inline(always)]
    pub(crate) const fn is_rest_of(self, fp: Fingerprint) -> bool {
        let (word, ext) = self.stored();
        word << EXT_BITS | ext as u64 == fp.rest()
    }

    /// The entry; `None` for an empty slot.
    #[inline]
    pub(crate) fn entry(self) -> Option<Entry> {
        Some(Entry {
            class: SizeClass::from_number((self.word >> CLASS_SHIFT & 127) as u8)?,
            address: Address::from_word(self.word),
            freq: (self.word >> FREQ_SHIFT & 3) as u8,
            hint: self.aux & HINT_MASK,
        })
    }
}

/// Returns a number that consists of fields of `TAG_BITS` bits. Each of the lowest `fields` fields contains
/// `tag`, and the other fields are 0.
const fn in_all(tag: u64, fields: usize) -> u64 {
    let (mut all, mut field) = (0, 0);
    while field < fields {
        all |= tag << (field as u32 * TAG_BITS);
        field += 1;
    }
    all
}

/// Finds the fields of `tags` that equal `tag`. Sets the highest bit of each of these fields in the result.
#[inline(always)]
pub(crate) const fn same_fields<const FIELDS: usize>(tags: u64, tag: u64) -> u64 {
    let (ones, highest) = (in_all(1, FIELDS), in_all(1 << (TAG_BITS - 1), FIELDS));
    let different = tags ^ (tag * ones);
    // The sum sets the highest bit of each field whose other bits are not all zero. It never carries into the
    // next field.
    let others = highest - ones;
    !(((different & others) + others) | different) & highest
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Rng;

    #[test]
    fn a_slot_and_its_line_give_back_the_fingerprint_at_every_size() {
        let mut rng = Rng::new(1);
        let address = Address::from_sectors(Address::MAX.sectors()).unwrap();
        for _ in 0..20_000 {
            let fp = Fingerprint(rng.next_u64() >> (64 - FP_BITS));
            let buckets = (1u32 << BASE_BITS) + rng.below(1 << 23) as u32;
            let slot = Packed::new(fp, Entry::new(address, SizeClass::MAX));
            assert_eq!(
                Fingerprint::from_slot(fp.bucket(Extent::of(buckets)), fp.tag(), slot),
                fp
            );
            assert_eq!(slot.entry().unwrap().address, address);
        }
    }

    #[test]
    fn the_other_place_is_mutual_and_elsewhere() {
        let mut rng = Rng::new(2);
        for _ in 0..20_000 {
            let fp = Fingerprint(rng.next_u64() >> (64 - FP_BITS));
            let buckets = (1u32 << BASE_BITS) + rng.below(1 << 20) as u32;
            assert_eq!(fp.other().other(), fp);
            assert_eq!(fp.other().tag(), fp.tag());
            let extent = Extent::of(buckets);
            assert_eq!(extent.buckets(), buckets);
            assert_ne!(fp.bucket(extent), fp.other().bucket(extent));
            assert!(fp.bucket(extent) < buckets && fp.other().bucket(extent) < buckets);
        }
    }

    #[test]
    fn a_split_moves_exactly_the_entries_whose_bit_is_set() {
        let mut rng = Rng::new(3);
        for buckets in (1u32 << BASE_BITS)..600 {
            let level = buckets.ilog2();
            let source = buckets - (1 << level);
            for _ in 0..50 {
                let fp = Fingerprint(rng.next_u64() >> (64 - FP_BITS));
                let (before, after) = (
                    fp.bucket(Extent::of(buckets)),
                    fp.bucket(Extent::of(buckets + 1)),
                );
                let moved = before == source && fp.bit(level);
                assert_eq!(after, if moved { buckets } else { before });
            }
        }
    }

    #[test]
    fn exactly_the_fields_that_are_the_tag_are_found() {
        let mut rng = Rng::new(4);
        let tags = [0, 1, 2, 0x7ff, 0x800, 0x801, 0xffe, 0xfff];
        let draw = |rng: &mut Rng| tags[rng.below(tags.len() as u64) as usize];
        for _ in 0..100_000 {
            let (fields, tag) = ([(); 5].map(|()| draw(&mut rng)), draw(&mut rng));
            let place = |slot: usize| slot as u32 * TAG_BITS;
            let join = |sum, (slot, field): (usize, &u64)| sum | field << place(slot);
            let all = fields.iter().enumerate().fold(0, join);
            let bit = |slot: usize| u64::from(fields[slot] == tag) << (place(slot) + TAG_BITS - 1);
            let expected = (0..5).fold(0, |sum, slot| sum | bit(slot));
            assert_eq!(same_fields::<5>(all, tag), expected, "{fields:x?} {tag:x}");
        }
    }

    #[test]
    fn both_lanes_have_about_half() {
        let first = SHARES.iter().filter(|s| lane(usize::from(**s)) == 0);
        let part = first.count() as f64 / SHARES.len() as f64;
        assert!((0.46..=0.54).contains(&part), "{part}");
    }

    #[test]
    fn shares_are_staggered_and_complete() {
        let counts = PLACES.map(u32::from);
        assert_eq!(counts.iter().sum::<u32>(), 1 << SHARE_BITS);
        let (least, most) = (counts[0], counts[SHARDS - 1]);
        assert!(least >= 20 && most <= 2 * least + 2, "{counts:?}");
        assert!(counts.windows(2).all(|pair| pair[0] <= pair[1] + 1));
    }
}
