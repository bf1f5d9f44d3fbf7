//! Runs many histories. (A history is one run of the simulation, and its seed determines it.) The seeds are
//! distributed over threads, and the findings of all histories are collected.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::history::{Done, History};

/// The findings of all histories.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Seeds of histories with a wrong answer, in order.
    pub(super) wrong: Vec<u64>,
    /// Number of events of all histories, by kind.
    pub(super) counts: BTreeMap<&'static str, u64>,
}

impl Batch {
    /// Runs a history for each seed. Each history runs on one thread, and each core runs one history at a
    /// time.
    pub(super) fn run(seeds: Range<u64>) -> Self {
        let next = AtomicU64::new(seeds.start);
        let part = || {
            let mut part = Self::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    return part;
                }
                part.add(seed);
            }
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut all = Self::default();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(part)).collect();
            for thread in threads {
                all.merge(thread.join().expect("panics of histories are caught"));
            }
        });
        all.wrong.sort_unstable();
        all
    }

    fn add(&mut self, seed: u64) {
        let done = catch_unwind(|| History::run(seed)).unwrap_or_else(|_| Done {
            wrong: Some("it panicked".to_owned()),
            ..Done::default()
        });
        if let Some(wrong) = done.wrong {
            println!("history {seed} (FOXY_SEED={seed} repeats it): {wrong}");
            self.wrong.push(seed);
        }
        for (name, count) in done.counts {
            *self.counts.entry(name).or_default() += count;
        }
    }

    fn merge(&mut self, part: Self) {
        self.wrong.extend(part.wrong);
        for (name, count) in part.counts {
            *self.counts.entry(name).or_default() += count;
        }
    }
}
