//! The counts of one run: the answers and the faults of each kind, and the response times.

use std::fmt;

use crate::Histogram;

use super::answer::Served;

/// Reasons why a request did not get a correct answer, or why a connection without a request is faulty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// No connection could be opened.
    Connect,
    /// The connection ended before the answer was complete.
    Cut,
    /// There was no complete answer within the time limit.
    Timeout,
    /// The head could not be parsed.
    Head,
    /// The chunked coding was invalid, or bytes arrived that belong to no answer.
    Framing,
    /// The status was not 200.
    Status,
    /// The announced or received length was not that of the object.
    Length,
    /// The answer was for another object, or for a version that never existed.
    Identity,
    /// The version was older than a version that the cache must have stored before.
    Superseded,
    /// Body bytes differed from the bytes that the origin generates.
    Bytes,
}

/// All faults, in the order of [`Stats::faults`].
pub const FAULTS: [Fault; 10] = [
    Fault::Connect,
    Fault::Cut,
    Fault::Timeout,
    Fault::Head,
    Fault::Framing,
    Fault::Status,
    Fault::Length,
    Fault::Identity,
    Fault::Superseded,
    Fault::Bytes,
];

impl Fault {
    /// True if an answer was received but was wrong.
    #[must_use]
    pub const fn is_wrong(self) -> bool {
        matches!(
            self,
            Self::Length | Self::Identity | Self::Superseded | Self::Bytes
        )
    }

    /// Name of the fault in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Cut => "cut",
            Self::Timeout => "timeout",
            Self::Head => "head",
            Self::Framing => "framing",
            Self::Status => "status",
            Self::Length => "length",
            Self::Identity => "identity",
            Self::Superseded => "superseded",
            Self::Bytes => "bytes",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Greatest number of faults that are described.
const DESCRIBED: usize = 10;

/// The counts of one thread, or of all threads after merging.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Number of correct answers.
    pub answers: u64,
    /// Number of correct answers whose bytes were all compared.
    pub checked: u64,
    /// Body bytes of correct answers.
    pub bytes: u64,
    /// Number of connections that were opened.
    pub connections: u64,
    /// Number of requests that were sent again because an idle connection had been closed.
    pub resent: u64,
    /// Number of faults by kind, in the order of [`FAULTS`].
    pub faults: [u64; FAULTS.len()],
    /// Descriptions of the first few faults.
    pub described: Vec<String>,
    /// Response times of hits.
    pub hits: Histogram,
    /// Response times of misses.
    pub misses: Histogram,
    /// Response times of answers that do not state their source.
    pub unknown: Histogram,
}

impl Stats {
    pub(crate) fn right(&mut self, served: Served, body: u64, checked: bool, nanos: u64) {
        self.answers += 1;
        self.checked += u64::from(checked);
        self.bytes += body;
        match served {
            Served::Hit => self.hits.add(nanos),
            Served::Miss => self.misses.add(nanos),
            Served::Unknown => self.unknown.add(nanos),
        }
    }

    pub(crate) fn wrong(&mut self, fault: Fault, describe: impl FnOnce() -> String) {
        self.faults[fault as usize] += 1;
        if self.described.len() < DESCRIBED {
            self.described.push(format!("{fault}: {}", describe()));
        }
    }

    /// Number of faults of this kind.
    #[must_use]
    pub const fn faults_of(&self, fault: Fault) -> u64 {
        self.faults[fault as usize]
    }

    /// Number of all faults.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.faults.iter().sum()
    }

    /// Number of answers that were received but were wrong.
    #[must_use]
    pub fn wrong_answers(&self) -> u64 {
        FAULTS
            .iter()
            .filter(|f| f.is_wrong())
            .map(|f| self.faults_of(*f))
            .sum()
    }

    /// Adds the counts of another thread.
    pub fn merge(&mut self, other: &Self) {
        self.answers += other.answers;
        self.checked += other.checked;
        self.bytes += other.bytes;
        self.connections += other.connections;
        self.resent += other.resent;
        for (mine, theirs) in self.faults.iter_mut().zip(other.faults) {
            *mine += theirs;
        }
        let room = DESCRIBED - self.described.len();
        self.described
            .extend(other.described.iter().take(room).cloned());
        self.hits.merge(&other.hits);
        self.misses.merge(&other.misses);
        self.unknown.merge(&other.unknown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_in_the_order_of_their_numbers() {
        for (at, fault) in FAULTS.into_iter().enumerate() {
            assert_eq!(fault as usize, at);
        }
    }

    #[test]
    fn merging_adds() {
        let mut a = Stats::default();
        a.right(Served::Hit, 10, true, 5);
        a.wrong(Fault::Bytes, || "x".into());
        let mut b = Stats::default();
        for _ in 0..20 {
            b.wrong(Fault::Cut, || "y".into());
        }
        a.merge(&b);
        assert_eq!((a.answers, a.errors(), a.wrong_answers()), (1, 21, 1));
        assert_eq!((a.hits.count(), a.described.len()), (1, 10));
    }
}
