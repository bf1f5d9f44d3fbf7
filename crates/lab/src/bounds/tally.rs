//! Counts of the answers and failures that the clients of a load got.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::conn::{Fault, Seen};

/// Results of the clients of a load.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Number of complete and correct answers.
    pub(super) right: u64,
    /// Failed requests by reason.
    pub(super) faults: BTreeMap<Fault, u64>,
    /// Final states of the connections that were held open.
    pub(super) held: BTreeMap<Seen, u64>,
    /// Further observations.
    pub(super) notes: Vec<String>,
}

impl Tally {
    /// Counts a request.
    pub(super) fn add(&mut self, result: Result<(), Fault>) {
        match result {
            Ok(()) => self.right += 1,
            Err(fault) => *self.faults.entry(fault).or_default() += 1,
        }
    }

    /// Counts a held connection.
    pub(super) fn hold(&mut self, seen: Seen) {
        *self.held.entry(seen).or_default() += 1;
    }

    /// Adds the counts of another tally.
    pub(super) fn merge(&mut self, other: Self) {
        self.right += other.right;
        for (fault, count) in other.faults {
            *self.faults.entry(fault).or_default() += count;
        }
        for (seen, count) in other.held {
            *self.held.entry(seen).or_default() += count;
        }
        self.notes.extend(other.notes);
    }

    /// Number of failed requests.
    pub(super) fn failed(&self) -> u64 {
        self.faults.values().sum()
    }

    /// The counts as one line of text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if self.right > 0 {
            let _ = write!(text, "{} right, ", self.right);
        }
        for (fault, count) in &self.faults {
            let _ = write!(text, "{count} {fault}, ");
        }
        for (seen, count) in &self.held {
            let _ = match seen {
                Seen::Silent => write!(text, "{count} held without an answer, "),
                Seen::Status(status) => write!(text, "{count} held with status {status}, "),
                Seen::Closed => write!(text, "{count} closed by the proxy, "),
            };
        }
        for note in &self.notes {
            let _ = write!(text, "{note}, ");
        }
        text.truncate(text.len().saturating_sub(2));
        text
    }
}
