//! Decides if a read of an object also reads the object's neighbours: the objects that are stored near it on
//! the disk.
//!
//! Objects that were requested together were written together. So one longer read, which includes the
//! neighbours, may save several later reads. (UCFS and Hummingbird, two published file systems for proxies,
//! read complete clusters of objects.) The rule measures whether longer reads save more than they cost. While
//! longer reads are off, the rule remembers the places that were read lately. It counts further reads of
//! these places, because an earlier longer read would have saved them. While longer reads are on, the rule
//! counts the neighbours that are requested after a longer read has read them. Longer reads are on only while
//! the saved reads outweigh the additional cost of longer reads.

/// Number of reads in a window. The rule judges at the end of each window.
const WINDOW: u32 = 64;
/// Least number of later reads that a longer read must save on average. If it saves fewer, the neighbours
/// that it reads are not worth their memory.
const LEAST: f64 = 0.125;
/// Longer reads are turned on if their expected gain is more than this multiple of their cost.
const MARGIN: f64 = 1.5;
/// Largest number of windows for which longer reads stay off after they cost more than they saved.
const HOLD_MAX: u32 = 256;

/// The state of the rule for one store.
#[derive(Clone, Debug)]
pub struct ReadAround {
    /// Numbers of the neighbourhoods (places) that were read lately. The hash of a place selects the only
    /// slot that may store the place.
    recent: Box<[u64]>,
    on: bool,
    /// Additional cost of a longer read, in units of a short read.
    cost: f64,
    /// Reads in the current window.
    reads: u32,
    /// Number of saved reads in this window. While longer reads are off, this is the number of reads of a
    /// place that was read lately. While they are on, it is the number of neighbours that were requested
    /// after a longer read.
    saved: u32,
    /// Number of windows until longer reads may be turned on again.
    wait: u32,
    /// Number of windows for which longer reads stay off when they are turned off the next time.
    hold: u32,
}

impl ReadAround {
    /// Creates a rule that remembers `recent` places. Choose `recent` as the number of longer reads whose
    /// objects fit into memory.
    #[must_use]
    pub fn new(recent: usize) -> Self {
        Self {
            recent: vec![u64::MAX; recent.max(1)].into(),
            on: false,
            cost: 2.0,
            reads: 0,
            saved: 0,
            wait: 0,
            hold: 1,
        }
    }

    /// Sets the additional cost of a longer read, in units of a short read.
    pub const fn set_cost(&mut self, cost: f64) {
        self.cost = cost;
    }

    /// True while longer reads are on.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// Called before an object is read. `place` is the number of the object's neighbourhood. Returns true if
    /// the read must include the object's neighbours.
    pub fn read(&mut self, place: u64) -> bool {
        if self.reads >= WINDOW {
            self.judge();
        }
        self.reads += 1;
        if !self.on {
            self.saved += u32::from(self.was_near(place));
        }
        self.on
    }

    fn was_near(&mut self, place: u64) -> bool {
        let spread = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        // The remainder is less than the length, so it fits in a usize.
        let slot = (spread % self.recent.len() as u64) as usize;
        std::mem::replace(&mut self.recent[slot], place) == place
    }

    /// Called when an object that was read as a neighbour is requested for the first time.
    pub const fn hit(&mut self) {
        if self.on {
            self.saved += 1;
        }
    }

    /// Called when a longer read failed. Turns longer reads off. Otherwise the reads of all objects around
    /// one damaged block would fail.
    pub fn failed(&mut self) {
        if self.on {
            self.turn_off();
        }
    }

    fn judge(&mut self) {
        let least = self.cost.max(LEAST);
        if self.on {
            let gain = f64::from(self.saved) / f64::from(self.reads);
            if gain < least {
                self.turn_off();
            } else if gain > least * MARGIN {
                self.hold = 1;
            }
        } else if self.wait > 0 {
            self.wait -= 1;
        } else {
            // If longer reads had been on, the first read of each place would have been a longer read, and it
            // would have saved the other reads.
            let longer = f64::from(self.reads - self.saved).max(1.0);
            self.on = f64::from(self.saved) / longer > least * MARGIN;
        }
        (self.reads, self.saved) = (0, 0);
    }

    fn turn_off(&mut self) {
        self.on = false;
        self.wait = self.hold;
        self.hold = (self.hold * 2).min(HOLD_MAX);
        (self.reads, self.saved) = (0, 0);
        self.recent.fill(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Rng;

    /// Visits `pages` random pages of `objects` objects each. After the first object of a page, each further
    /// object is requested with a probability of `used` percent. Returns the number of device reads, and the
    /// number of longer reads among them.
    fn visit(rule: &mut ReadAround, pages: u64, objects: u64, used: u64, seed: u64) -> (u64, u64) {
        let mut rng = Rng::new(seed);
        let (mut reads, mut longer) = (0, 0);
        for _ in 0..pages {
            let place = rng.below(1 << 30);
            let mut here = false;
            for object in 0..objects {
                if object > 0 && rng.below(100) >= used {
                    continue;
                }
                if here {
                    rule.hit();
                    continue;
                }
                here = rule.read(place);
                reads += 1;
                longer += u64::from(here);
            }
        }
        (reads, longer)
    }

    #[test]
    fn pages_are_read_at_once_after_the_first_few() {
        let mut rule = ReadAround::new(64);
        let (reads, longer) = visit(&mut rule, 1_000, 11, 100, 1);
        assert!(reads < 1_000 + 200, "{reads} reads");
        assert!(longer > 980, "{longer} longer ones");
    }

    #[test]
    fn what_has_nothing_to_do_with_each_other_is_never_read_together() {
        for cost in [0.05, 2.0] {
            let mut rule = ReadAround::new(64);
            rule.set_cost(cost);
            assert_eq!(visit(&mut rule, 50_000, 1, 0, 2), (50_000, 0));
        }
    }

    /// On average, one of the four neighbours is used, so a longer read saves one read. This is too little if
    /// the longer read costs as much as two additional reads. It is enough if the longer read costs hardly
    /// more than a short read.
    #[test]
    fn what_it_costs_decides() {
        for (cost, on) in [(2.0, false), (0.05, true)] {
            let mut rule = ReadAround::new(64);
            rule.set_cost(cost);
            visit(&mut rule, 2_000, 5, 25, 3);
            assert_eq!(rule.is_on(), on, "cost {cost}");
        }
    }

    /// The rule has turned longer reads on, but the neighbours that these reads return are not requested.
    #[test]
    fn a_disappointment_ends_soon_and_comes_back_ever_more_seldom() {
        let mut rule = ReadAround::new(64);
        visit(&mut rule, 200, 11, 100, 4);
        assert!(rule.is_on());
        let (_, longer) = visit(&mut rule, 100_000, 1, 0, 5);
        assert!(longer <= u64::from(2 * WINDOW), "{longer} longer ones");
        assert!(!rule.is_on());
        // Eight reads in a row are in the same neighbourhood, so longer reads seem useful. But `hit` is never
        // called, so longer reads save nothing.
        let mut longer = 0;
        for n in 0..200_000u64 {
            longer += u64::from(rule.read(n / 8));
        }
        assert!(longer < 2_000, "{longer} of 200,000");
    }

    #[test]
    fn a_failed_longer_read_turns_it_off() {
        let mut rule = ReadAround::new(64);
        visit(&mut rule, 200, 11, 100, 6);
        assert!(rule.is_on());
        rule.failed();
        assert!(!rule.is_on());
    }

    /// The test mixes phases in which many or few neighbours are used. For every mixture, the cost of longer
    /// reads is at most the number of saved reads plus a bounded share of all reads.
    #[test]
    fn the_loss_is_bounded_for_any_mixture() {
        for seed in 0..60 {
            let mut rng = Rng::new(seed);
            let mut rule = ReadAround::new(16);
            let (mut all, mut longer, mut hits) = (0u64, 0u64, 0u64);
            for _ in 0..300 {
                let (near, use_them) = (1 + rng.below(12), rng.below(101));
                for n in 0..rng.below(800) {
                    let wide = rule.read((seed << 32) + n / near);
                    all += 1;
                    longer += u64::from(wide);
                    if rule.is_on() && rng.below(100) < use_them {
                        let more = rng.below(4);
                        (0..more).for_each(|_| rule.hit());
                        hits += more;
                    }
                }
            }
            let loss = longer as f64 * 2.0 - hits as f64;
            assert!(loss < all as f64 / 4.0, "seed {seed}: {loss} of {all}");
        }
    }
}
