//! Judgement of searched segments by the chain of clusters: which clusters are missing, and whether
//! a torn write or damage is the cause.
//!
//! Every cluster has a number in the store and names the number up to which the log was durable
//! when it was written. A missing cluster up to the highest such mark was durable once: it is
//! damaged, and nobody knows what it removed. Nothing counts therefore that lies before the next
//! whole cluster. A missing cluster above the mark was being written: it is torn, and its removals
//! are in the removal log. Pure: no I/O.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use foxy_format::{CHAIN_BEGINS, CHAIN_UNKNOWN, ChainLink, LogPosition};

/// A whole cluster as a search found it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Where it begins and ends in its segment, in units.
    pub(crate) at: u32,
    pub(crate) end: u32,
    /// Its checksum, as the next link names it.
    pub(crate) sum: u32,
    pub(crate) link: ChainLink,
}

/// What is known of the clusters of a life, which must come in order of writing.
#[derive(Debug)]
pub(super) struct Life<'a> {
    pub(super) sequence: u64,
    /// `None`: it was not searched, its summary tells.
    pub(super) seen: Option<&'a [Seen]>,
    /// The last cluster that its slot names as durable; 0: none.
    pub(super) named: u64,
}

/// A cluster that does not count and that was never durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GivenUp {
    pub(crate) number: u64,
    /// A place in the gap that it left.
    pub(crate) at: LogPosition,
}

/// The judgement.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Judged {
    /// Number and checksum of the newest cluster, for the link of the next one.
    pub(crate) last: u64,
    pub(crate) sum: u32,
    /// The log was durable up to this number.
    pub(crate) flushed: u64,
    pub(crate) torn: Vec<GivenUp>,
    /// Clusters that are damaged.
    pub(super) damaged: u64,
    /// Nothing counts that was written before this place.
    pub(super) floor: LogPosition,
    /// The last clusters of this life are damaged.
    pub(super) lost: Option<u64>,
}

/// A gap longer than this is damage: so many clusters are never under way at once.
const TORN_MAX: u64 = 1 << 12;

/// Judges the lives of a store, oldest first. `floor`: what lies before it does not count anyway.
/// `given_up`: numbers of clusters that later ones name as given up.
pub(super) fn judge(lives: &[Life<'_>], floor: LogPosition, given_up: &HashSet<u64>) -> Judged {
    let mut judge = Judge {
        given_up,
        judged: Judged::default(),
    };
    let clusters = || lives.iter().flat_map(|life| life.clusters());
    let counts = |(life, seen): &(u64, Seen)| LogPosition::new(*life, seen.end) > floor;
    judge.judged.flushed = (clusters().filter(counts))
        .map(|(_, seen)| seen.link.flushed)
        .max()
        .unwrap_or(0);
    let mut before = Before::default();
    for life in lives {
        let Some(seen) = life.seen else {
            before = Before::named(life.named);
            continue;
        };
        for next in seen {
            let here = LogPosition::new(life.sequence, next.at);
            if here > floor {
                judge.gap(life, &before, next);
            }
            before = Before::cluster(life.sequence, *next);
        }
        if LogPosition::new(life.sequence + 1, 0) > floor && life.named > before.number {
            judge.judged.damaged += life.named - before.number;
            judge.judged.lost = Some(life.sequence);
            before = Before::named(life.named);
        }
    }
    judge.end(lives, &before)
}

impl Life<'_> {
    fn clusters(&self) -> impl Iterator<Item = (u64, Seen)> {
        let seen = self.seen.unwrap_or_default().iter();
        let sequence = self.sequence;
        seen.filter(|seen| seen.link.number != 0)
            .map(move |seen| (sequence, *seen))
    }
}

/// What comes before a cluster.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    /// 0: not known, or without a number.
    number: u64,
    /// The cluster itself, if it was seen, and its life.
    cluster: Option<(u64, Seen)>,
}

impl Before {
    const fn named(number: u64) -> Self {
        Self {
            number,
            cluster: None,
        }
    }
    const fn cluster(life: u64, seen: Seen) -> Self {
        Self {
            number: seen.link.number,
            cluster: Some((life, seen)),
        }
    }
    /// Where a gap behind it begins, in the life `life`.
    fn end_in(&self, life: u64) -> u32 {
        let same = self.cluster.filter(|(of, _)| *of == life);
        same.map_or(0, |(_, seen)| seen.end)
    }
}

struct Judge<'a> {
    given_up: &'a HashSet<u64>,
    judged: Judged,
}

impl Judge<'_> {
    /// Looks at what should lie between a cluster and the one `before`.
    fn gap(&mut self, life: &Life<'_>, before: &Before, next: &Seen) {
        let link = next.link;
        if link.number <= 1 || link.before == CHAIN_BEGINS {
            return;
        }
        let here = LogPosition::new(life.sequence, next.at);
        let begins = before.end_in(life.sequence);
        // With nothing known before it, an empty place alone tells that something is missing.
        let missing = match (before.number, begins < next.at) {
            (0, true) => link.number - 1..=link.number - 1,
            (0, false) => return,
            (number, _) => number + 1..=link.number - 1,
        };
        if let Some((_, seen)) = before.cluster
            && seen.link.number + 1 == link.number
            && link.before != CHAIN_UNKNOWN
            && link.before != seen.sum
        {
            // Another cluster was there when this one was written.
            self.missing(&(link.number - 1..=link.number - 1), link.number - 1, here);
        }
        // What a slot names as durable lies in its own segment.
        let own = begins < next.at;
        let known = if own { life.named } else { 0 };
        let gap = GivenUp {
            number: 0,
            at: LogPosition::new(life.sequence, begins),
        };
        self.missing(&missing, known.max(self.judged.flushed), here);
        self.torn(&missing, gap);
    }

    /// Clusters up to `flushed` were durable.
    fn missing(&mut self, numbers: &RangeInclusive<u64>, flushed: u64, here: LogPosition) {
        let long = numbers.end().saturating_sub(*numbers.start()) > TORN_MAX;
        let durable = *numbers.start()..=flushed.min(*numbers.end());
        let damaged = match long {
            true => 1,
            false => durable.filter(|n| !self.given_up.contains(n)).count() as u64,
        };
        if damaged > 0 {
            self.judged.damaged += damaged;
            self.judged.floor = self.judged.floor.max(here);
        }
    }

    fn torn(&mut self, numbers: &RangeInclusive<u64>, gap: GivenUp) {
        let first = (*numbers.start()).max(self.judged.flushed + 1);
        let torn = (first..=*numbers.end()).take(TORN_MAX as usize);
        let torn = torn.filter(|number| !self.given_up.contains(number));
        let torn = torn.map(|number| GivenUp { number, ..gap });
        self.judged.torn.extend(torn);
    }

    /// Where the next cluster stands. Numbers are never given twice; if some of them are known from
    /// elsewhere than the newest cluster, the chain begins anew.
    fn end(mut self, lives: &[Life<'_>], before: &Before) -> Judged {
        let seen = lives.iter().flat_map(|life| life.clusters());
        let seen = seen.map(|(_, seen)| seen.link.number).max().unwrap_or(0);
        let named = lives.iter().map(|life| life.named).max().unwrap_or(0);
        self.judged.last = seen.max(named);
        self.judged.sum = match before.cluster {
            Some((_, seen)) if seen.link.number == self.judged.last => seen.sum,
            None if before.number == self.judged.last && self.judged.lost.is_none() => {
                CHAIN_UNKNOWN
            }
            _ => CHAIN_BEGINS,
        };
        self.judged
    }
}
