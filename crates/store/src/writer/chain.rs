//! Where the log stands: the links of its clusters, up to which of them it is durable, and which
//! removals a durable cluster vouches for.
//!
//! A removal counts in the removal log until its tombstone is *covered*: a later cluster, itself
//! durable, says that the log was durable up to the tombstone's cluster. From then on damage of the
//! tombstone's cluster is noticed at a start, and no removal is undone by it in silence.

use std::collections::VecDeque;

use foxy_base::{KeyHash, rule};
use foxy_format::{ChainLink, Entry, EntryKind, LogPosition};

use crate::recovery::{GivenUp, Judged};

/// The chain of clusters of one store.
#[derive(Debug)]
pub(super) struct Chain {
    /// Number and checksum of the cluster made last.
    last: u64,
    sum: u32,
    /// Clusters that count for nothing, until a complete cluster says so: they were torn when the
    /// store was opened, or could not be written.
    given_up: Vec<GivenUp>,
    /// The log is durable up to this number.
    durable: u64,
    /// What the next flush to begin, and the flush before it, make durable: the number of the flush,
    /// and the number of the last cluster that it makes durable.
    flushes: [(u64, u64); 2],
    /// Clusters with removals that are not covered: the number of the cluster, and the lowest number
    /// in the removal log of the removals in it or in a later one.
    removals: VecDeque<(u64, u64)>,
    /// Clusters that name a higher mark than those before: number and mark.
    marks: VecDeque<(u64, u64)>,
    /// The highest mark that a cluster names.
    named: u64,
}

impl Chain {
    pub(super) fn new(found: Judged) -> Self {
        Self {
            last: found.last,
            sum: found.sum,
            given_up: found.torn,
            durable: found.flushed,
            flushes: [(0, 0); 2],
            removals: VecDeque::new(),
            marks: VecDeque::new(),
            named: found.flushed,
        }
    }

    /// Number of the cluster made last.
    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    /// The link of the next cluster.
    pub(super) const fn next_link(&self) -> ChainLink {
        ChainLink {
            number: self.last + 1,
            before: self.sum,
            flushed: self.durable,
        }
    }

    /// Entries for the next cluster, at `base` in its segment: what was given up.
    pub(super) fn entries(&self, base: u32) -> impl Iterator<Item = Entry> {
        self.given_up.iter().map(move |given_up| Entry {
            hash: KeyHash(u128::from(given_up.number) << 64 | u128::from(given_up.at.0)),
            offset_units: base,
            len_units: 0,
            kind: EntryKind::Void,
        })
    }

    /// The number of these entries.
    pub(super) const fn entry_count(&self) -> usize {
        self.given_up.len()
    }

    /// The next cluster was made with the link given for it and has this checksum. `removals`: the
    /// lowest number of its removals in the removal log.
    pub(super) fn made(&mut self, sum: u32, removals: Option<u64>) {
        self.last += 1;
        self.sum = sum;
        if self.durable > self.named {
            self.named = self.durable;
            self.marks.push_back((self.last, self.durable));
        }
        let Some(first) = removals else { return };
        // Each cluster knows the lowest number in it and all later ones: removals of a failed cluster
        // come again in a later one.
        for earlier in self.removals.iter_mut().rev() {
            if earlier.1 <= first {
                break;
            }
            earlier.1 = first;
        }
        self.removals.push_back((self.last, first));
    }

    /// A cluster is complete that names the clusters `told` as given up.
    pub(super) fn complete(&mut self, told: &[u64]) {
        self.given_up
            .retain(|given_up| !told.contains(&given_up.number));
    }

    /// Numbers of what is given up at present.
    pub(super) fn given_up(&self) -> Vec<u64> {
        self.given_up
            .iter()
            .map(|given_up| given_up.number)
            .collect()
    }

    /// The write of a cluster failed.
    pub(super) fn failed(&mut self, number: u64, at: LogPosition) {
        self.given_up.push(GivenUp { number, at });
        self.removals.retain(|(cluster, _)| *cluster != number);
    }

    /// `first`: the first cluster that is being written now. The flush that begins next makes
    /// durable what is complete.
    pub(super) fn note(&mut self, first: Option<u64>, next_flush: u64) {
        let given_up = self.given_up.iter().map(|given_up| given_up.number);
        let open = rule!(
            "chain: no mark passes a cluster that is under way or was given up",
            given_up.chain(first).min(),
            None::<u64>
        );
        let complete = open.map_or(self.last, |number| number - 1);
        if self.flushes[0].0 != next_flush {
            self.flushes[1] = self.flushes[0];
        }
        self.flushes[0] = (next_flush, complete);
    }

    /// A flush was carried out. True if more removals are covered than before.
    pub(super) fn flushed(&mut self, number: u64) -> bool {
        let of = |flush: &&(u64, u64)| flush.0 == number;
        let Some((_, durable)) = self.flushes.iter().find(of) else {
            return false;
        };
        self.durable = self.durable.max(*durable);
        let mut covered = 0;
        let durable = rule!(
            "chain: a mark covers once the cluster that names it is durable",
            self.durable,
            u64::MAX
        );
        while let Some((_, mark)) = self.marks.pop_front_if(|(by, _)| *by <= durable) {
            covered = mark;
        }
        self.cover(covered)
    }

    fn cover(&mut self, covered: u64) -> bool {
        let before = self.removals.len();
        while self.removals.pop_front_if(|(n, _)| *n <= covered).is_some() {}
        self.removals.len() < before
    }

    /// Durable summaries tell what is in all clusters, so all removals are covered.
    pub(super) fn summarised(&mut self) {
        self.cover(self.last);
    }

    /// The lowest number in the removal log of a removal that is not covered.
    pub(super) fn first_removal(&self) -> Option<u64> {
        self.removals.front().map(|(_, first)| *first)
    }

    /// Returns whether another cluster would cover removals that no cluster so far covers: all of
    /// them, or (`some`) at least one.
    pub(super) fn is_due(&self, some: bool) -> bool {
        let cluster = match some {
            true => self.removals.front(),
            false => self.removals.back(),
        };
        cluster.is_some_and(|(number, _)| self.named < *number && *number <= self.durable)
    }

    /// Clusters with removals are not durable or not covered.
    pub(super) fn is_open(&self) -> bool {
        !self.removals.is_empty()
    }
}
