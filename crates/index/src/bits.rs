//! Which bits of a key's hash the table knows, where they are kept, and how a line follows.
//!
//! The key is not stored, so growth must find an entry's new line from what is. A *fingerprint*
//! is [`FP_BITS`] bits of the hash. A line of a shard is chosen by the lowest bits of the
//! fingerprint (as many as the shard's size asks for, never fewer than [`BASE_BITS`]), and a slot
//! stores all of it above [`BASE_BITS`]: line number and slot together always give back the whole
//! fingerprint, however far the table grows, without reading a record.
//!
//! The second place of an entry is the fingerprint with its low half mixed by its high half; the
//! same step leads back, so a slot need not say which of the two places it is.

use foxy_base::KeyHash;

use crate::address::Address;
use crate::entry::Entry;
use crate::size_class::SizeClass;

/// A shard starts with `2^BASE_BITS` lines.
pub(crate) const BASE_BITS: u32 = if cfg!(loom) { 2 } else { 4 };
/// A shard grows to at most `2^LINE_BITS_MAX` lines.
pub(crate) const LINE_BITS_MAX: u32 = if cfg!(loom) { 4 } else { 24 };
/// Bits of a fingerprint: what a slot stores and what the smallest shard's line number says.
pub(crate) const FP_BITS: u32 = BASE_BITS + TAG_BITS + EXT_BITS;
/// Bits of the fingerprint in the word.
const TAG_BITS: u32 = 19;
/// Bits of the fingerprint beside the word; the other half of the 32 is the caller's hint.
const EXT_BITS: u32 = 16;
/// The part of a fingerprint that its second place changes.
const LOW_BITS: u32 = 24;

/// Shards; a power of two near the number of threads that may write at once.
pub(crate) const SHARDS: usize = 32;
/// Bits of the hash that choose the shard.
const SHARE_BITS: u32 = 10;

const CLASS_SHIFT: u32 = Address::BITS;
const FREQ_SHIFT: u32 = CLASS_SHIFT + 7;
const TAG_SHIFT: u32 = FREQ_SHIFT + 2;
/// The two use bits of a word.
pub(crate) const FREQ_MASK: u64 = 3 << FREQ_SHIFT;
/// One use.
pub(crate) const FREQ_ONE: u64 = 1 << FREQ_SHIFT;

const _: () = assert!(TAG_SHIFT + TAG_BITS == 64 && FP_BITS + SHARE_BITS <= 64);

/// Shards have unequal shares of the hash space, from 1 to nearly 2, so that they do not all
/// grow at the same moment: what one holds in reserve, another has used up.
const SHARES: [u8; 1 << SHARE_BITS] = shares();

/// Two groups of shards, with about as many entries each.
pub(crate) const fn lane(shard: usize) -> usize {
    (shard >= SHARES[SHARES.len() / 2] as usize) as usize
}

const fn shares() -> [u8; 1 << SHARE_BITS] {
    // Shard s gets a share in proportion to 1 + s/SHARDS; the sum of all is 3/2 - 1/(2 SHARDS).
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

/// How many of `entries` shard `shard` is expected to get.
pub(crate) fn share(shard: usize, entries: u64) -> u64 {
    let places = SHARES.iter().filter(|s| usize::from(**s) == shard).count();
    ((u128::from(entries) * places as u128) >> SHARE_BITS) as u64
}

/// A fingerprint; see the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(pub(crate) u64);

impl Fingerprint {
    /// The shard and the fingerprint of a key.
    pub(crate) fn of(hash: KeyHash) -> (usize, Self) {
        let high = hash.high();
        let shard = SHARES[(high >> (64 - SHARE_BITS)) as usize];
        (usize::from(shard), Self(high & ((1 << FP_BITS) - 1)))
    }

    /// The same entry at its other place. Its own inverse. The lowest bit always changes, so the
    /// two places are never one line.
    pub(crate) const fn other(self) -> Self {
        let mixed = (self.0 >> LOW_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - LOW_BITS);
        Self(self.0 ^ (mixed | 1))
    }

    /// The line among `lines` (at least `2^BASE_BITS`): linear hashing.
    pub(crate) const fn line(self, lines: u32) -> u32 {
        let level = (lines | 1).ilog2();
        let wide = (self.0 & ((2 << level) - 1)) as u32;
        if wide < lines {
            wide
        } else {
            wide & ((1 << level) - 1)
        }
    }

    /// The bit that decides whether an entry moves when its line is split at `level`.
    pub(crate) const fn bit(self, level: u32) -> bool {
        self.0 >> level & 1 == 1
    }

    /// What a slot stores of it: 19 bits for the word, 16 beside it.
    pub(crate) const fn stored(self) -> (u64, u32) {
        let stored = self.0 >> BASE_BITS;
        (stored >> EXT_BITS, (stored & ((1 << EXT_BITS) - 1)) as u32)
    }

    /// Back from a line and the slot found in it.
    pub(crate) const fn from_slot(line: u32, slot: Packed) -> Self {
        let stored = slot.tag() << EXT_BITS | slot.ext() as u64;
        Self(stored << BASE_BITS | (line as u64 & ((1 << BASE_BITS) - 1)))
    }
}

/// A slot's contents: the word and what stands beside it. An empty slot has the word 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    pub(crate) word: u64,
    pub(crate) aux: u32,
}

impl Packed {
    pub(crate) fn new(fp: Fingerprint, entry: Entry) -> Self {
        let (tag, ext) = fp.stored();
        let freq = u64::from(entry.freq.min(3));
        Self {
            word: entry.address.units()
                | u64::from(entry.class.number()) << CLASS_SHIFT
                | freq << FREQ_SHIFT
                | tag << TAG_SHIFT,
            aux: ext << EXT_BITS | u32::from(entry.hint),
        }
    }

    pub(crate) const fn tag(self) -> u64 {
        self.word >> TAG_SHIFT
    }

    pub(crate) const fn ext(self) -> u32 {
        self.aux >> EXT_BITS
    }

    /// The entry; `None` for an empty slot.
    pub(crate) fn entry(self) -> Option<Entry> {
        Some(Entry {
            class: SizeClass::from_number((self.word >> CLASS_SHIFT & 127) as u8)?,
            address: Address::from_word(self.word),
            freq: (self.word >> FREQ_SHIFT & 3) as u8,
            hint: self.aux as u16,
        })
    }
}

/// True if `word` has this tag. That of an empty slot is 0.
pub(crate) const fn has_tag(word: u64, tag: u64) -> bool {
    word >> TAG_SHIFT == tag
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Rng;

    #[test]
    fn a_slot_and_its_line_give_back_the_fingerprint_at_every_size() {
        let mut rng = Rng::new(1);
        let address = Address::from_units(Address::MAX.units()).unwrap();
        for _ in 0..20_000 {
            let fp = Fingerprint(rng.next_u64() >> (64 - FP_BITS));
            let lines = (1u32 << BASE_BITS) + rng.below(1 << 23) as u32;
            let slot = Packed::new(fp, Entry::new(address, SizeClass::MAX));
            assert_eq!(Fingerprint::from_slot(fp.line(lines), slot), fp);
            assert_eq!(slot.entry().unwrap().address, address);
        }
    }

    #[test]
    fn the_other_place_is_mutual_and_elsewhere() {
        let mut rng = Rng::new(2);
        for _ in 0..20_000 {
            let fp = Fingerprint(rng.next_u64() >> (64 - FP_BITS));
            let lines = (1u32 << BASE_BITS) + rng.below(1 << 20) as u32;
            assert_eq!(fp.other().other(), fp);
            assert_ne!(fp.line(lines), fp.other().line(lines));
            assert!(fp.line(lines) < lines && fp.other().line(lines) < lines);
        }
    }

    #[test]
    fn a_split_moves_exactly_the_entries_whose_bit_is_set() {
        let mut rng = Rng::new(3);
        for lines in (1u32 << BASE_BITS)..600 {
            let level = lines.ilog2();
            let source = lines - (1 << level);
            for _ in 0..50 {
                let fp = Fingerprint(rng.next_u64() >> (64 - FP_BITS));
                let (before, after) = (fp.line(lines), fp.line(lines + 1));
                let moved = before == source && fp.bit(level);
                assert_eq!(after, if moved { lines } else { before });
            }
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
        let mut counts = [0u32; SHARDS];
        for shard in SHARES {
            counts[usize::from(shard)] += 1;
        }
        let (least, most) = (counts[0], counts[SHARDS - 1]);
        assert!(least >= 20 && most <= 2 * least + 2, "{counts:?}");
        assert!(counts.windows(2).all(|pair| pair[0] <= pair[1] + 1));
    }
}
