//! Judges segments that were searched for clusters, by the numbers and checksums that link the clusters to a
//! chain. The judgement states which clusters are missing, and whether a torn write or damage is the cause.
//!
//! Every cluster has a number in the store. It also contains the flushed number: the number of the cluster up
//! to which the log was durable when this cluster was written. If the number of a missing cluster is at most
//! the highest flushed number, the cluster was durable once. So it is damaged, and the removals in it are not
//! known. Therefore everything before the next valid cluster is dead. If the number of the missing cluster is
//! above that flushed number, the cluster was being written. So it is torn, and its removals are in the
//! removal log. The code is pure and performs no I/O.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use foxy_base::rule;
use foxy_format::{CHAIN_BEGINS, CHAIN_UNKNOWN, ChainLink, LogPosition};

/// A valid cluster that a search found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The beginning of the cluster in its segment, in units.
    pub(crate) at: u32,
    /// The end of the cluster in its segment, in units.
    pub(crate) end: u32,
    /// The checksum of the cluster; the link of the next cluster contains it.
    pub(crate) sum: u32,
    pub(crate) link: ChainLink,
}

/// The known clusters of one incarnation of a segment, in the order in which they were written.
#[derive(Debug)]
pub(super) struct Incarnation<'a> {
    pub(super) sequence: u64,
    /// `None`: the segment was not searched, because its summary contains its entries.
    pub(super) seen: Option<&'a [Seen]>,
    /// The number of the last cluster that the slot of the incarnation names as durable; 0 if it names none.
    pub(super) named: u64,
}

/// A cluster that is not valid, because its write failed or was torn. It was never durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GivenUp {
    pub(crate) number: u64,
    /// A place in the gap that the cluster left.
    pub(crate) at: LogPosition,
}

/// The result of [`judge`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Judged {
    /// Number of the newest cluster, for the link of the next cluster.
    pub(crate) last: u64,
    /// Checksum of the newest cluster, for the link of the next cluster.
    pub(crate) sum: u32,
    /// The log was durable up to the cluster with this number.
    pub(crate) flushed: u64,
    pub(crate) torn: Vec<GivenUp>,
    /// The number of damaged clusters.
    pub(super) damaged: u64,
    /// The position before which everything is dead.
    pub(super) floor: LogPosition,
    /// The incarnation whose last clusters are damaged, if there is one.
    pub(super) lost: Option<u64>,
}

/// Longest gap, in clusters, that torn writes can leave. A longer gap is damage, because the writer has fewer
/// clusters under way at the same time.
const TORN_MAX: u64 = 1 << 12;

/// Judges the incarnations of a store, oldest first. Records before `floor` are dead in any case. `given_up`
/// contains the numbers of the clusters whose writes failed or were torn earlier. Later clusters name these
/// numbers as given up, so the absence of these clusters is no damage.
pub(super) fn judge(
    incarnations: &[Incarnation<'_>],
    floor: LogPosition,
    given_up: &HashSet<u64>,
) -> Judged {
    let mut judge = Judge {
        given_up,
        judged: Judged::default(),
    };
    let clusters = || {
        incarnations
            .iter()
            .flat_map(|incarnation| incarnation.clusters())
    };
    let counts =
        |(incarnation, seen): &(u64, Seen)| LogPosition::new(*incarnation, seen.end) > floor;
    judge.judged.flushed = (clusters().filter(counts))
        .map(|(_, seen)| seen.link.flushed)
        .max()
        .unwrap_or(0);
    let mut before = Before::default();
    for incarnation in incarnations {
        let Some(seen) = incarnation.seen else {
            before = Before::named(incarnation.named);
            continue;
        };
        for next in seen {
            let here = LogPosition::new(incarnation.sequence, next.at);
            if here > floor {
                judge.gap(incarnation, &before, next);
            }
            before = Before::cluster(incarnation.sequence, *next);
        }
        if LogPosition::new(incarnation.sequence + 1, 0) > floor
            && rule!(
                "chain: a segment without the cluster that its slot names is lost",
                incarnation.named > before.number,
                false
            )
        {
            judge.judged.damaged += incarnation.named - before.number;
            judge.judged.lost = Some(incarnation.sequence);
            before = Before::named(incarnation.named);
        }
    }
    judge.end(incarnations, &before)
}

impl Incarnation<'_> {
    fn clusters(&self) -> impl Iterator<Item = (u64, Seen)> {
        let seen = self.seen.unwrap_or_default().iter();
        let sequence = self.sequence;
        seen.filter(|seen| seen.link.number != 0)
            .map(move |seen| (sequence, *seen))
    }
}

/// The predecessor of a cluster in the chain.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    /// The number of the cluster; 0: it is not known, or the cluster has no number.
    number: u64,
    /// The cluster itself, if it was found, and its incarnation.
    cluster: Option<(u64, Seen)>,
}

impl Before {
    const fn named(number: u64) -> Self {
        Self {
            number,
            cluster: None,
        }
    }
    const fn cluster(incarnation: u64, seen: Seen) -> Self {
        Self {
            number: seen.link.number,
            cluster: Some((incarnation, seen)),
        }
    }
    /// The place in `incarnation` where a gap after this cluster begins.
    fn end_in(&self, incarnation: u64) -> u32 {
        let same = self.cluster.filter(|(of, _)| *of == incarnation);
        same.map_or(0, |(_, seen)| seen.end)
    }
}

struct Judge<'a> {
    given_up: &'a HashSet<u64>,
    judged: Judged,
}

impl Judge<'_> {
    /// Checks for missing clusters between the clusters `before` and `next`.
    fn gap(&mut self, incarnation: &Incarnation<'_>, before: &Before, next: &Seen) {
        let link = next.link;
        if link.number <= 1 || link.before == CHAIN_BEGINS {
            return;
        }
        let here = LogPosition::new(incarnation.sequence, next.at);
        let begins = before.end_in(incarnation.sequence);
        // If the number of the cluster before `next` is not known, only unused space before `next` shows that
        // a cluster is missing.
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
            // `next` contains the checksum of its predecessor, and `before` has another checksum. So
            // `before` is not the predecessor.
            rule!(
                "chain: a checksum that does not fit the cluster before is damage",
                self.missing(&(link.number - 1..=link.number - 1), link.number - 1, here),
                ()
            );
        }
        // A slot names durable clusters of its own segment only, so `named` applies only to a gap in
        // this segment.
        let own = begins < next.at;
        let known = if own { incarnation.named } else { 0 };
        let gap = GivenUp {
            number: 0,
            at: LogPosition::new(incarnation.sequence, begins),
        };
        let flushed = rule!(
            "chain: a missing cluster up to the flushed number is damage",
            self.judged.flushed,
            0
        );
        self.missing(&missing, known.max(flushed), here);
        self.torn(&missing, gap);
    }

    /// Judges missing clusters. The clusters with numbers up to `flushed` were durable.
    fn missing(&mut self, numbers: &RangeInclusive<u64>, flushed: u64, here: LogPosition) {
        let long = numbers.end().saturating_sub(*numbers.start()) > TORN_MAX;
        let durable = *numbers.start()..=flushed.min(*numbers.end());
        let damaged = match long {
            true => 1,
            false => durable
                .filter(|n| {
                    rule!(
                        "chain: a number that was given up is no damage",
                        !self.given_up.contains(n),
                        true
                    )
                })
                .count() as u64,
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

    /// Sets the link of the next cluster. Numbers are never used twice. If the newest cluster does not have
    /// the highest known number, a new chain begins above that number.
    fn end(mut self, incarnations: &[Incarnation<'_>], before: &Before) -> Judged {
        let seen = incarnations
            .iter()
            .flat_map(|incarnation| incarnation.clusters());
        let seen = seen.map(|(_, seen)| seen.link.number).max().unwrap_or(0);
        let named = incarnations
            .iter()
            .map(|incarnation| incarnation.named)
            .max()
            .unwrap_or(0);
        self.judged.last = rule!(
            "chain: numbers of clusters are never given twice",
            seen.max(named),
            before.number
        );
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a cluster of one block; its checksum is a hundred times its number.
    fn seen(at: u32, number: u64, flushed: u64) -> Seen {
        let sum = |number: u64| number as u32 * 100;
        Seen {
            at: at * 256,
            end: (at + 1) * 256,
            sum: sum(number),
            link: ChainLink {
                number,
                before: sum(number.saturating_sub(1)),
                flushed,
            },
        }
    }

    fn judged(seen: &[Seen], named: u64, given_up: &[u64]) -> Judged {
        let incarnation = Incarnation {
            sequence: 1,
            seen: Some(seen),
            named,
        };
        judge(
            &[incarnation],
            LogPosition(0),
            &given_up.iter().copied().collect(),
        )
    }

    #[test]
    fn a_missing_cluster_is_damage_up_to_the_flushed_number_and_torn_above_it() {
        let whole = [seen(0, 1, 0), seen(1, 2, 0), seen(2, 3, 1)];
        let all = judged(&whole, 0, &[]);
        assert_eq!((all.damaged, all.floor, all.last), (0, LogPosition(0), 3));
        let gap = |flushed| [seen(0, 1, 0), seen(2, 3, flushed)];
        let damaged = judged(&gap(2), 0, &[]);
        let behind = LogPosition::new(1, 512);
        assert_eq!((damaged.damaged, damaged.floor), (1, behind));
        let torn = judged(&gap(1), 0, &[]);
        assert_eq!((torn.damaged, torn.floor), (0, LogPosition(0)));
        assert_eq!(torn.torn[0].number, 2);
        let given_up = judged(&gap(2), 0, &[2]);
        assert_eq!((given_up.damaged, given_up.torn.len()), (0, 0));
    }

    #[test]
    fn another_cluster_in_the_place_of_the_one_before_is_damage() {
        let mut other = seen(0, 1, 0);
        other.sum = 7;
        let judged = judged(&[other, seen(1, 2, 0)], 0, &[]);
        assert_eq!(
            (judged.damaged, judged.floor),
            (1, LogPosition::new(1, 256))
        );
    }

    #[test]
    fn a_segment_without_the_cluster_that_its_slot_names_is_lost() {
        let judged = judged(&[seen(0, 1, 0), seen(1, 2, 0)], 3, &[]);
        assert_eq!((judged.damaged, judged.lost, judged.last), (1, Some(1), 3));
    }

    /// The newest incarnation contains only a cluster without a number. New numbers continue above all known
    /// numbers.
    #[test]
    fn numbers_go_on_above_all_that_are_known() {
        let (old, new) = ([seen(0, 5, 0)], [seen(0, 0, 0)]);
        let incarnations = [(1, &old[..]), (2, &new[..])].map(|(sequence, seen)| Incarnation {
            sequence,
            seen: Some(seen),
            named: 0,
        });
        let judged = judge(&incarnations, LogPosition(0), &HashSet::new());
        assert_eq!((judged.last, judged.sum), (5, CHAIN_BEGINS));
    }
}
