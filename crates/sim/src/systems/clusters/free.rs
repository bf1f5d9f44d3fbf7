//! Free clusters, with counts for each group of 100 clusters (Hummingbird's rule), so that the nearest free
//! cluster is found without checking each cluster.

/// Number of clusters in a group.
const GROUP: u32 = 100;
/// Number of groups that are searched for a run (a number of adjacent free clusters). If no run in them is
/// long enough, the longest run is used.
const RUN_GROUPS: u32 = 8;

/// A map of the free clusters.
#[derive(Clone, Debug)]
pub struct FreeMap {
    free: Vec<bool>,
    groups: Vec<u32>,
    total: u32,
}

impl FreeMap {
    /// Creates a map of `count` clusters that are all free.
    #[must_use]
    pub fn new(count: u32) -> Self {
        let groups = (0..count.div_ceil(GROUP)).map(|g| GROUP.min(count - g * GROUP));
        Self {
            free: vec![true; count as usize],
            groups: groups.collect(),
            total: count,
        }
    }

    /// Number of clusters.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.free.len() as u32
    }

    /// Number of free clusters.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.total
    }

    /// True if a cluster is free.
    #[must_use]
    pub fn is_free(&self, cluster: u32) -> bool {
        self.free.get(cluster as usize).copied().unwrap_or(false)
    }

    /// Takes a cluster. Returns false if it was not free.
    pub fn take(&mut self, cluster: u32) -> bool {
        self.set(cluster, false)
    }

    /// Frees a cluster. Returns false if it was already free.
    pub fn give(&mut self, cluster: u32) -> bool {
        self.set(cluster, true)
    }

    fn set(&mut self, cluster: u32, to: bool) -> bool {
        let Some(free) = self.free.get_mut(cluster as usize) else {
            return false;
        };
        if *free == to {
            return false;
        }
        *free = to;
        let group = &mut self.groups[(cluster / GROUP) as usize];
        if to {
            *group += 1;
            self.total += 1;
        } else {
            *group -= 1;
            self.total -= 1;
        }
        true
    }

    /// The free cluster nearest to `at`. If two clusters are equally near, it is the cluster with the higher
    /// number.
    #[must_use]
    pub fn nearest(&self, at: u32) -> Option<u32> {
        if self.total == 0 {
            return None;
        }
        let at = at.min(self.count().saturating_sub(1));
        let home = at / GROUP;
        let mut best: Option<u32> = None;
        for step in 0..self.groups.len() as u32 {
            // If this is true, no cluster in the remaining groups is nearer to `at` than the cluster found.
            if best.is_some_and(|b| b.abs_diff(at) < step.saturating_sub(1) * GROUP) {
                break;
            }
            for group in [home.checked_add(step), home.checked_sub(step)] {
                let found = group.and_then(|g| self.nearest_in(g, at));
                best = nearer(best, found, at);
            }
        }
        best
    }

    fn nearest_in(&self, group: u32, at: u32) -> Option<u32> {
        if self
            .groups
            .get(group as usize)
            .is_none_or(|free| *free == 0)
        {
            return None;
        }
        let range = group * GROUP..((group + 1) * GROUP).min(self.count());
        range
            .filter(|c| self.is_free(*c))
            .fold(None, |best, c| nearer(best, Some(c), at))
    }

    /// Searches `RUN_GROUPS` groups near `at` for a run of `most` free clusters. If no run is that long,
    /// takes the longest run found. Returns the first cluster and the length of the run.
    #[must_use]
    pub fn run(&self, at: u32, most: u32) -> Option<(u32, u32)> {
        let first = self.nearest(at)?;
        let mut best = self.extend(first, most);
        let mut next = first;
        let end = first.saturating_add(RUN_GROUPS * GROUP).min(self.count());
        while best.1 < most {
            next = next.saturating_add(1);
            if next >= end {
                break;
            }
            if self.is_free(next) {
                let found = self.extend(next, most);
                next += found.1;
                if found.1 > best.1 {
                    best = found;
                }
            }
        }
        Some(best)
    }

    /// The run of free clusters that begins at `first`, cut at `most` clusters.
    fn extend(&self, first: u32, most: u32) -> (u32, u32) {
        let free = (first..self.count()).take(most as usize);
        (first, free.take_while(|c| self.is_free(*c)).count() as u32)
    }
}

fn nearer(a: Option<u32>, b: Option<u32>, at: u32) -> Option<u32> {
    let key = |c: u32| (c.abs_diff(at), c < at);
    match (a, b) {
        (Some(a), Some(b)) if key(b) < key(a) => Some(b),
        (None, b) => b,
        (a, _) => a,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Rng;

    #[test]
    fn the_nearest_is_what_a_look_at_each_finds() {
        let mut rng = Rng::new(3);
        let mut map = FreeMap::new(950);
        for _ in 0..940 {
            map.take(rng.below(950) as u32);
        }
        for _ in 0..2_000 {
            let at = rng.below(950) as u32;
            let each = (0..950)
                .filter(|c| map.is_free(*c))
                .min_by_key(|c| (c.abs_diff(at), *c < at));
            assert_eq!(map.nearest(at), each, "{at}");
            let cluster = rng.below(950) as u32;
            if rng.chance(0.5) {
                map.take(cluster);
            } else {
                map.give(cluster);
            }
            let counted = (0..950).filter(|c| map.is_free(*c)).count();
            assert_eq!(map.total() as usize, counted);
        }
    }

    #[test]
    fn runs_are_whole_where_there_is_one() {
        let mut map = FreeMap::new(400);
        (0..400).for_each(|c| assert!(map.take(c)));
        assert_eq!(map.run(10, 4), None);
        (50..54).chain(20..22).for_each(|c| assert!(map.give(c)));
        assert_eq!(map.run(10, 4), Some((50, 4)));
        assert_eq!(map.run(10, 2), Some((20, 2)));
        assert_eq!(map.run(10, 5), Some((50, 4)));
        assert!(!map.take(10) && !map.give(20));
    }
}
