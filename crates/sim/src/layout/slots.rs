//! Free slots of a linear space, and the cursor at which slots are allocated.
//!
//! Rule (STREAM, USITS'99 section 3): the space consists of 512-byte slots. An object takes an integer number
//! of slots, contiguous where enough adjacent slots are free. Allocation starts at a cursor and skips used
//! slots. At the end of the space it continues from the start.

use super::BLOCK;

/// A run: a number of adjacent slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First slot.
    pub at: u32,
    /// Number of slots.
    pub len: u32,
}

impl Run {
    /// First byte and length in bytes.
    #[must_use]
    pub fn bytes(self) -> (u64, u64) {
        (u64::from(self.at) * BLOCK, u64::from(self.len) * BLOCK)
    }
}

/// The slots of one object, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// One contiguous run.
    One(Run),
    /// Several runs.
    Many(Box<[Run]>),
}

impl Runs {
    /// The runs as a slice.
    #[must_use]
    pub fn as_slice(&self) -> &[Run] {
        match self {
            Self::One(run) => std::slice::from_ref(run),
            Self::Many(runs) => runs,
        }
    }
}

/// The state of all slots, with one bit for each slot.
#[derive(Clone, Debug)]
pub struct Slots {
    /// One bit for each slot; a set bit is a free slot.
    free: Vec<u64>,
    slots: u32,
    left: u32,
    cursor: u32,
}

impl Slots {
    /// Creates free slots for `bytes` bytes; at most 2^32 - 64 slots (2 TiB).
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let slots = (bytes / BLOCK).min(u64::from(u32::MAX - 63)) as u32;
        let mut free = vec![u64::MAX; slots.div_ceil(64) as usize];
        if let Some(last) = free.last_mut()
            && !slots.is_multiple_of(64)
        {
            *last = (1 << (slots % 64)) - 1;
        }
        Self {
            free,
            slots,
            left: slots,
            cursor: 0,
        }
    }

    /// Number of slots that an object of `bytes` bytes needs; at least 1.
    #[must_use]
    pub fn needed(bytes: u64) -> u64 {
        bytes.div_ceil(BLOCK).max(1)
    }

    /// Takes `count` slots from the cursor on. If fewer slots are free, takes nothing and returns `None`.
    pub fn take(&mut self, count: u64) -> Option<Runs> {
        if count == 0 || count > u64::from(self.left) {
            return None;
        }
        let mut want = count as u32;
        let first = self.take_run(want)?;
        want -= first.len;
        if want == 0 {
            return Some(Runs::One(first));
        }
        let mut runs = vec![first];
        while want > 0 {
            let run = self.take_run(want)?;
            want -= run.len;
            runs.push(run);
        }
        Some(Runs::Many(runs.into()))
    }

    fn take_run(&mut self, most: u32) -> Option<Run> {
        let at = self.next_free(self.cursor).or_else(|| self.next_free(0))?;
        let end = self.next_used(at, at.saturating_add(most).min(self.slots));
        self.set(at, end, false);
        self.left -= end - at;
        self.cursor = if end == self.slots { 0 } else { end };
        Some(Run { at, len: end - at })
    }

    /// Frees slots.
    pub fn give(&mut self, runs: &Runs) {
        for run in runs.as_slice() {
            self.set(run.at, run.at + run.len, true);
            self.left += run.len;
        }
    }

    /// The first free slot from `from` on.
    fn next_free(&self, from: u32) -> Option<u32> {
        let mut word = (from / 64) as usize;
        let mut bits = self.free.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.free.get(word)?;
        }
        Some(word as u32 * 64 + bits.trailing_zeros())
    }

    /// The first used slot from `from` on; `end` if there is none before `end`.
    fn next_used(&self, from: u32, end: u32) -> u32 {
        let mut at = from;
        while at < end {
            let free_ones = (self.free[(at / 64) as usize] >> (at % 64)).trailing_ones();
            at += free_ones;
            if free_ones < 64 && !at.is_multiple_of(64) {
                break;
            }
            if free_ones == 0 {
                break;
            }
        }
        at.min(end)
    }

    fn set(&mut self, from: u32, end: u32, free: bool) {
        let mut at = from;
        while at < end {
            let bit = at % 64;
            let count = (64 - bit).min(end - at);
            let mask = (u64::MAX >> (64 - count)) << bit;
            let word = &mut self.free[(at / 64) as usize];
            if free {
                debug_assert_eq!(*word & mask, 0, "a slot given back twice");
                *word |= mask;
            } else {
                *word &= !mask;
            }
            at += count;
        }
    }

    /// Number of all slots.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.slots
    }

    /// Number of free slots.
    #[must_use]
    pub const fn left(&self) -> u32 {
        self.left
    }

    /// Slot at which the search of the next allocation starts.
    #[must_use]
    pub const fn cursor(&self) -> u32 {
        self.cursor
    }

    /// Divides the slots into `parts` equal parts and returns the used share of each part, in order.
    #[must_use]
    pub fn usage(&self, parts: usize) -> Vec<f32> {
        let part = self.slots.div_ceil(parts.max(1) as u32).max(1);
        let used = |from: u32| {
            let end = from.saturating_add(part).min(self.slots);
            let used = (from..end).filter(|s| self.free[(s / 64) as usize] >> (s % 64) & 1 == 0);
            used.count() as f32 / (end - from) as f32
        };
        (0..self.slots).step_by(part as usize).map(used).collect()
    }

    /// Every maximal run of free slots, in order.
    pub fn free_runs(&self) -> impl Iterator<Item = Run> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let at = self.next_free(from)?;
            from = self.next_used(at, self.slots);
            Some(Run { at, len: from - at })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(at: u32, len: u32) -> Run {
        Run { at, len }
    }

    #[test]
    fn the_cursor_skips_what_is_in_use_and_wraps() {
        let mut slots = Slots::new(10 * BLOCK + 100);
        assert_eq!(slots.total(), 10);
        let a = slots.take(3).unwrap();
        let b = slots.take(4).unwrap();
        assert_eq!(
            (a.as_slice(), b.as_slice()),
            (&[run(0, 3)][..], &[run(3, 4)][..])
        );
        slots.give(&a);
        let c = slots.take(5).unwrap();
        assert_eq!(c.as_slice(), [run(7, 3), run(0, 2)]);
        assert_eq!((slots.left(), slots.cursor()), (1, 2));
        assert_eq!(slots.take(2), None);
        assert_eq!(slots.free_runs().collect::<Vec<_>>(), [run(2, 1)]);
        assert_eq!(slots.take(0), None);
        assert_eq!(slots.usage(5), [1.0, 0.5, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn sizes_in_slots() {
        assert_eq!([0, 1, 512, 513].map(Slots::needed), [1, 1, 1, 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Compares [`Slots`] with a model that has one boolean for each slot.
        #[test]
        fn slots_match_a_plain_map(total in 1u32..400, steps in prop::collection::vec((0u64..90, any::<bool>()), 1..80)) {
            let mut slots = Slots::new(u64::from(total) * BLOCK);
            let mut used = vec![false; total as usize];
            let mut held: Vec<Runs> = Vec::new();
            let mut cursor = 0usize;
            for (n, give) in steps {
                if give && !held.is_empty() {
                    let runs = held.swap_remove(n as usize % held.len());
                    slots.give(&runs);
                    for r in runs.as_slice() {
                        used[r.at as usize..(r.at + r.len) as usize].fill(false);
                    }
                } else if let Some(runs) = slots.take(n) {
                    let taken = runs.as_slice().iter().flat_map(|r| r.at..r.at + r.len);
                    let mut count = 0;
                    for slot in taken {
                        // Each allocated slot must be the next free slot from the cursor on.
                        let next = (cursor..cursor + used.len()).map(|s| s % used.len()).find(|s| !used[*s]);
                        prop_assert_eq!(Some(slot as usize), next);
                        used[slot as usize] = true;
                        cursor = slot as usize + 1;
                        count += 1;
                    }
                    prop_assert_eq!(count, n);
                    held.push(runs);
                } else {
                    prop_assert!(n == 0 || n as usize > used.iter().filter(|u| !**u).count());
                }
                prop_assert_eq!(slots.left() as usize, used.iter().filter(|u| !**u).count());
                let free: u32 = slots.free_runs().map(|r| r.len).sum();
                prop_assert_eq!(free, slots.left());
            }
        }
    }
}
