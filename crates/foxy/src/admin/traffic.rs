//! Answers and origins in the tree of statistics: counts by class of status, bytes, failures, times.

use std::collections::BTreeMap;

use foxy_proxy::{CLASSES, OriginTotals, Outcome, Totals, Trouble};
use serde::{Deserialize, Serialize};

use super::stats::{Durations, durations};

/// Answers to clients.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Answers {
    /// Number of requests by class of the status that was sent. Class `none`: the client left before an
    /// answer.
    pub classes: BTreeMap<String, u64>,
    /// Number of body bytes that were sent, by outcome.
    pub body_bytes: BTreeMap<String, u64>,
    /// Share of hits in the body bytes that were sent for the requests that `hit_ratio` counts. `None` while
    /// the sum of these bytes is 0.
    pub byte_hit_ratio: Option<f64>,
}

/// Answers and failures of origins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Origins {
    /// Number of final answers by class of their status.
    pub classes: BTreeMap<String, u64>,
    /// Number of requests that failed, by reason.
    pub errors: BTreeMap<String, u64>,
    /// Time to connect, TLS handshake included.
    pub connect: Durations,
    /// Time from a request to the head of its answer.
    pub first_byte: Durations,
}

impl Answers {
    pub(super) fn of(totals: &Totals) -> Self {
        let bytes = |wanted: &dyn Fn(Outcome) -> bool| -> u64 {
            let all = Outcome::ALL.into_iter().filter(|outcome| wanted(*outcome));
            all.map(|outcome| totals.body(outcome)).sum()
        };
        let asked = bytes(&|outcome| outcome.asks_cache());
        let hits = bytes(&|outcome| outcome.is_hit());
        let named = Outcome::ALL.map(|of| (of.as_str().to_owned(), totals.body(of)));
        Self {
            classes: classes(&totals.classes),
            body_bytes: named.into_iter().filter(|(_, bytes)| *bytes > 0).collect(),
            byte_hit_ratio: (asked > 0).then(|| hits as f64 / asked as f64),
        }
    }
}

impl Origins {
    pub(super) fn of(totals: &OriginTotals) -> Self {
        let errors = Trouble::ALL.map(|of| (of.as_str().to_owned(), totals.trouble(of)));
        Self {
            classes: classes(&totals.classes),
            errors: errors.into_iter().collect(),
            connect: durations(&totals.connects),
            first_byte: durations(&totals.answers),
        }
    }
}

fn classes(counts: &[u64; CLASSES.len()]) -> BTreeMap<String, u64> {
    let named = CLASSES.iter().zip(counts);
    named
        .map(|(class, count)| ((*class).to_owned(), *count))
        .collect()
}
