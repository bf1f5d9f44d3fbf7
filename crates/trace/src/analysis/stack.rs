//! LRU stack distances. The distance of a request is the number of different objects requested since the last
//! request for the same object. A Fenwick tree contains the times of the last requests. It is compacted when
//! it is full, so its memory is proportional to the number of objects.

use std::collections::HashMap;

/// Measures stack distances.
#[derive(Clone, Debug, Default)]
pub struct StackDistances {
    /// Time of each object's last request. The tree has a 1 at each of these times.
    last: HashMap<u64, u32>,
    tree: Vec<u32>,
    now: u32,
    /// Number of requests by distance.
    counts: Vec<u64>,
    repeats: u64,
}

/// Number of requests before the first compaction.
const FIRST: usize = 1 << 12;

impl StackDistances {
    /// Counts one request. Returns its distance (0 for an immediate repeat); `None` for an
    /// object's first request.
    pub fn add(&mut self, object: u64) -> Option<u32> {
        if self.now as usize >= self.tree.len() {
            self.compact();
        }
        let now = self.now;
        self.now += 1;
        let before = self.last.insert(object, now);
        let distance = before.map(|then| {
            let distance = self.sum(now) - self.sum(then + 1);
            self.update(then, u32::MAX);
            distance
        });
        self.update(now, 1);
        if let Some(distance) = distance {
            let at = distance as usize;
            if at >= self.counts.len() {
                self.counts.resize(at + 1, 0);
            }
            self.counts[at] += 1;
            self.repeats += 1;
        }
        distance
    }

    /// Quantile `q` (0 to 1): the smallest distance `d` such that a share `q` of the repeats has at most
    /// distance `d`.
    #[must_use]
    pub fn quantile(&self, q: f64) -> u64 {
        let wanted = ((self.repeats as f64 * q).ceil() as u64).clamp(1, self.repeats.max(1));
        let mut seen = 0;
        for (distance, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return distance as u64;
            }
        }
        0
    }

    /// Share of repeats with a distance below `limit`.
    #[must_use]
    pub fn below(&self, limit: usize) -> f64 {
        super::ratio(self.counts.iter().take(limit).sum(), self.repeats)
    }

    /// Renumbers the last requests from 0, in order.
    fn compact(&mut self) {
        let mut times: Vec<(u32, u64)> = self.last.iter().map(|(o, t)| (*t, *o)).collect();
        times.sort_unstable();
        self.tree = vec![0; (times.len() * 2).max(FIRST)];
        self.now = times.len() as u32;
        for (time, (_, object)) in (0..).zip(times) {
            self.last.insert(object, time);
            self.update(time, 1);
        }
    }

    /// Adds `add` to the count of the time `time` (`u32::MAX` subtracts 1).
    fn update(&mut self, time: u32, add: u32) {
        let mut at = time as usize + 1;
        while at <= self.tree.len() {
            self.tree[at - 1] = self.tree[at - 1].wrapping_add(add);
            at += at & at.wrapping_neg();
        }
    }

    /// The sum of the counts of all times before `time`.
    fn sum(&self, time: u32) -> u32 {
        let (mut at, mut sum) = (time as usize, 0u32);
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at - 1]);
            at &= at - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Rng;

    #[test]
    fn agrees_with_a_plain_list() {
        let mut rng = Rng::new(8);
        let (mut fast, mut list) = (StackDistances::default(), Vec::<u64>::new());
        for _ in 0..20_000 {
            let object = rng.below(rng.clone().below(300) + 1);
            let found = list.iter().rev().position(|o| *o == object);
            assert_eq!(fast.add(object).map(|d| d as usize), found);
            if let Some(at) = found {
                list.remove(list.len() - 1 - at);
            }
            list.push(object);
        }
        assert!(fast.below(1) > 0.0 && fast.quantile(1.0) < 300);
    }
}
