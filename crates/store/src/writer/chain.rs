//! The state of the log: the links of its clusters, the cluster up to which it is durable, and the
//! removals that a durable cluster confirms.
//!
//! A removal stays in the removal log until its tombstone is *confirmed*. It is confirmed once a later,
//! durable cluster states that the log was durable up to the tombstone's cluster. From then on, a start
//! detects damage of the tombstone's cluster, and so it notices that removals were lost.

use std::collections::VecDeque;

use foxy_base::{KeyHash, rule};
use foxy_format::{ChainLink, Entry, EntryKind, LogPosition};

use crate::recovery::{GivenUp, Judged};

/// The chain of clusters of one store.
#[derive(Debug)]
pub(super) struct Chain {
    /// The number of the newest cluster.
    last: u64,
    /// The checksum of the newest cluster.
    sum: u32,
    /// Clusters that are not valid: they were torn when the store was opened, or could not be written.
    /// They stay here until a complete cluster names them as given up.
    given_up: Vec<GivenUp>,
    /// The log is durable up to the cluster with this number.
    durable: u64,
    /// The flush that begins next, and the flush before it. Each has its number, and the number of the
    /// last cluster that it makes durable.
    flushes: [(u64, u64); 2],
    /// Clusters with removals that are not confirmed. Each element has two numbers: the number of the
    /// cluster, and the lowest number in the removal log of all removals in this cluster and later clusters.
    removals: VecDeque<(u64, u64)>,
    /// Clusters whose flushed number (the number of the cluster up to which the log was durable) is higher
    /// than the flushed numbers of all earlier clusters. Each element has the number of the cluster, and its
    /// flushed number.
    flushed_numbers: VecDeque<(u64, u64)>,
    /// The highest flushed number that a cluster contains.
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
            flushed_numbers: VecDeque::new(),
            named: found.flushed,
        }
    }

    /// The number of the newest cluster.
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

    /// The entries by which the next cluster names the given-up clusters. The next cluster is at `base` in
    /// its segment.
    pub(super) fn entries(&self, base: u32) -> impl Iterator<Item = Entry> {
        self.given_up.iter().map(move |given_up| Entry {
            hash: KeyHash(u128::from(given_up.number) << 64 | u128::from(given_up.at.0)),
            offset_units: base,
            len_units: 0,
            kind: EntryKind::RecordTombstone,
        })
    }

    /// The number of entries that [`Self::entries`] returns.
    pub(super) const fn entry_count(&self) -> usize {
        self.given_up.len()
    }

    /// Notes that the next cluster was made with the link that [`Self::next_link`] returned, and has
    /// the checksum `sum`. `removals` is the lowest number in the removal log of all removals in this
    /// cluster.
    pub(super) fn made(&mut self, sum: u32, removals: Option<u64>) {
        self.last += 1;
        self.sum = sum;
        if self.durable > self.named {
            self.named = self.durable;
            self.flushed_numbers.push_back((self.last, self.durable));
        }
        let Some(first) = removals else { return };
        // Each element contains the lowest number of a removal in its cluster and in all later
        // clusters, because removals of a failed cluster are written again in a later cluster.
        for earlier in self.removals.iter_mut().rev() {
            if earlier.1 <= first {
                break;
            }
            earlier.1 = first;
        }
        self.removals.push_back((self.last, first));
    }

    /// Notes that a cluster was written completely. This cluster names the clusters in `told` as given up.
    pub(super) fn complete(&mut self, told: &[u64]) {
        self.given_up
            .retain(|given_up| !told.contains(&given_up.number));
    }

    /// The numbers of the clusters that are given up at present.
    pub(super) fn given_up(&self) -> Vec<u64> {
        self.given_up
            .iter()
            .map(|given_up| given_up.number)
            .collect()
    }

    /// Notes that the write of a cluster failed.
    pub(super) fn failed(&mut self, number: u64, at: LogPosition) {
        self.given_up.push(GivenUp { number, at });
        self.removals.retain(|(cluster, _)| *cluster != number);
    }

    /// Notes which clusters the next flush will make durable: all clusters before the first cluster that is
    /// being written or was given up. `first` is the number of the first cluster that is being written now.
    pub(super) fn note(&mut self, first: Option<u64>, next_flush: u64) {
        let given_up = self.given_up.iter().map(|given_up| given_up.number);
        let open = rule!(
            "chain: no flushed number passes a cluster that is under way or was given up",
            given_up.chain(first).min(),
            None::<u64>
        );
        let complete = open.map_or(self.last, |number| number - 1);
        if self.flushes[0].0 != next_flush {
            self.flushes[1] = self.flushes[0];
        }
        self.flushes[0] = (next_flush, complete);
    }

    /// Notes that a flush was carried out. Returns true if more removals are confirmed than before.
    pub(super) fn flushed(&mut self, number: u64) -> bool {
        let of = |flush: &&(u64, u64)| flush.0 == number;
        let Some((_, durable)) = self.flushes.iter().find(of) else {
            return false;
        };
        self.durable = self.durable.max(*durable);
        let mut confirmed = 0;
        let durable = rule!(
            "chain: a flushed number confirms once the cluster that names it is durable",
            self.durable,
            u64::MAX
        );
        while let Some((_, flushed)) = self.flushed_numbers.pop_front_if(|(by, _)| *by <= durable) {
            confirmed = flushed;
        }
        self.confirm(confirmed)
    }

    fn confirm(&mut self, confirmed: u64) -> bool {
        let before = self.removals.len();
        while self
            .removals
            .pop_front_if(|(n, _)| *n <= confirmed)
            .is_some()
        {}
        self.removals.len() < before
    }

    /// Notes that durable summaries contain the entries of all clusters, so all removals are confirmed.
    pub(super) fn summarised(&mut self) {
        self.confirm(self.last);
    }

    /// The lowest number in the removal log of all removals that are not confirmed.
    pub(super) fn first_removal(&self) -> Option<u64> {
        self.removals.front().map(|(_, first)| *first)
    }

    /// Returns whether one more cluster is needed to confirm removals: their tombstones are durable, but no
    /// cluster so far states that. If `some` is true, only the oldest unconfirmed removals are checked.
    /// Otherwise the newest are checked, so that one cluster confirms all removals.
    pub(super) fn is_due(&self, some: bool) -> bool {
        let cluster = match some {
            true => self.removals.front(),
            false => self.removals.back(),
        };
        cluster.is_some_and(|(number, _)| self.named < *number && *number <= self.durable)
    }

    /// Returns whether there are clusters with removals that are not durable or not confirmed.
    pub(super) fn is_open(&self) -> bool {
        !self.removals.is_empty()
    }
}
