//! Conditions on numbers: addresses, ports, minutes.

use std::collections::BTreeSet;

use super::bits::{Block, Class, Classes, put};

/// First and last value of a range. Both values are included.
pub(super) type Range = (u128, u128);

/// Intervals that cover all values of `K`. The same rules fit all values of one interval.
#[derive(Debug)]
pub(super) struct Intervals<K> {
    /// The first value of each interval. The first interval begins at the smallest value of `K`.
    starts: Vec<K>,
    classes: Vec<Class>,
    /// One entry for each value of the upper byte: the number of intervals that begin below the smallest
    /// value of `K` with this upper byte. The last entry is the number of all intervals. For most values,
    /// this table is enough to find the interval.
    below: Vec<u32>,
}

/// A number whose upper byte can be read.
pub(super) trait Number: Ord + Copy + TryFrom<u128> {
    fn upper(self) -> u8;
}

impl Number for u16 {
    fn upper(self) -> u8 {
        (self >> 8) as u8
    }
}

impl Number for u32 {
    fn upper(self) -> u8 {
        (self >> 24) as u8
    }
}

impl Number for u128 {
    fn upper(self) -> u8 {
        (self >> 120) as u8
    }
}

impl<K: Number> Intervals<K> {
    /// Builds the intervals. `free` is the set of the rules that do not have this condition. `ranges`
    /// contains each rule that has this condition, with its ranges.
    pub(super) fn new(
        free: &[Block],
        ranges: &[(usize, Vec<Range>)],
        classes: &mut Classes,
    ) -> Self {
        let mut starts = BTreeSet::from([0]);
        for (from, to) in ranges.iter().flat_map(|(_, ranges)| ranges) {
            starts.insert(*from);
            starts.extend(to.checked_add(1));
        }
        // No interval begins after a range that ends at the largest value of `K`, because the next number is
        // not a value of `K`.
        let starts: Vec<u128> = starts
            .into_iter()
            .filter(|start| K::try_from(*start).is_ok())
            .collect();
        let mut sets = vec![free.to_vec(); starts.len()];
        for (rule, ranges) in ranges {
            for (from, to) in ranges {
                let first = starts.partition_point(|start| start < from);
                let behind = starts.partition_point(|start| start <= to);
                for set in &mut sets[first..behind] {
                    put(set, *rule);
                }
            }
        }
        let starts: Vec<K> = starts
            .into_iter()
            .filter_map(|start| K::try_from(start).ok())
            .collect();
        let below = |upper: u16| starts.partition_point(|start| u16::from(start.upper()) < upper);
        Self {
            classes: sets.iter().map(|set| classes.add(set)).collect(),
            below: (0..=256).map(|upper| below(upper) as u32).collect(),
            starts,
        }
    }

    /// Returns the class of a value.
    #[inline]
    pub(super) fn class(&self, value: K) -> Class {
        let upper = usize::from(value.upper());
        let (mut at, end) = (self.below[upper] as usize, self.below[upper + 1] as usize);
        if at < end {
            at += self.starts[at..end].partition_point(|start| *start <= value);
        }
        self.classes[at.saturating_sub(1)]
    }
}
