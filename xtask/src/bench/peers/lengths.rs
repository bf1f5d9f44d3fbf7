//! The durations and amounts of the measurements of `bench peers`. The scenarios S1 to S7 are described in
//! `scenario/mod.rs`.

use std::time::Duration;

/// Durations and amounts of all scenarios. The complete table takes about 25 minutes, with `--quick` about 5.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    pub(super) warm_up: Duration,
    pub(super) closed: Duration,
    pub(super) open: Duration,
    /// Number of objects in the store that S3 fills and that S2 and S5 use.
    pub(super) objects: u64,
    /// Time limit for filling the store in S3.
    pub(super) fill_limit: Duration,
    /// Number of objects that are requested after a restart.
    pub(super) sample: usize,
    /// Least time from the first start of a server to its stop in S5. Traffic Server loses its contents if it
    /// is stopped within a minute of its first start.
    pub(super) age_of_store: Duration,
    pub(super) sweep_step: Duration,
    pub(super) sweep: &'static [u32],
    /// Number of requests that fill the store in S7, before the drive is slowed down.
    pub(super) slow_fill: u64,
    pub(super) slow_warm_up: Duration,
    pub(super) slow_step: Duration,
    pub(super) slow_sweep: &'static [u32],
}

impl Lengths {
    /// Values for the table in the documents.
    pub(super) const FULL: Self = Self {
        warm_up: Duration::from_millis(1000),
        closed: Duration::from_secs(6),
        open: Duration::from_secs(4),
        objects: 300_000,
        fill_limit: Duration::from_secs(75),
        sample: 2400,
        age_of_store: Duration::from_secs(75),
        sweep_step: Duration::from_secs(3),
        sweep: &[
            1_000, 2_000, 4_000, 6_000, 8_000, 11_000, 14_000, 18_000, 23_000, 29_000, 36_000,
        ],
        slow_fill: 300_000,
        slow_warm_up: Duration::from_secs(3),
        slow_step: Duration::from_secs(8),
        slow_sweep: &[50, 110, 200, 340, 600, 1_000, 1_700, 3_000],
    };
    /// Values for a quick check that everything works.
    pub(super) const QUICK: Self = Self {
        warm_up: Duration::from_millis(300),
        closed: Duration::from_millis(1500),
        open: Duration::from_millis(1000),
        objects: 15_000,
        fill_limit: Duration::from_secs(20),
        sample: 400,
        age_of_store: Duration::ZERO,
        sweep_step: Duration::from_millis(1000),
        sweep: &[1_000, 3_000, 9_000],
        slow_fill: 20_000,
        slow_warm_up: Duration::from_secs(1),
        slow_step: Duration::from_secs(3),
        slow_sweep: &[50, 340, 1_000],
    };
}

/// Formats a time for the load tools.
pub(super) fn text(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}
