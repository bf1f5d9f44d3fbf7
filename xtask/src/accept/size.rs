//! Compares the hit ratio that `foxy sim size` predicts for a log with the hit ratio that Foxy reaches on
//! this log.

use std::path::Path;

use super::process::{Bench, number, report_of};
use crate::report::Outcome;

/// Greatest permitted error of the prediction, in percentage points of the hit ratio.
const POINTS: f64 = 1.5;
/// Sizes of the store, for which the prediction is checked. Foxy has the same memory, [`MEMORY`], with each
/// size.
const SIZES: [&str; 3] = ["60MB", "100MB", "140MB"];
const MEMORY: &str = "64MiB";
/// Requests per second. At this rate, even a slow disk can write all new objects. The prediction does not
/// apply to a store that must drop objects because its disk is too slow.
const RATE: &str = "4000";

/// Measures each size once, beginning with an empty store.
pub(crate) fn run(bench: &Bench, log: &Path) -> Outcome {
    let mut outcome = Outcome::default();
    let log = log.to_string_lossy().into_owned();
    for (row, size) in SIZES.iter().enumerate() {
        outcome.note(one(bench, &log, row, size));
    }
    outcome
}

fn one(bench: &Bench, log: &str, row: usize, size: &str) -> Result<(), String> {
    let sizes = SIZES.join(",");
    let mut sim = bench.lab();
    sim.args(["sim", "size", log, "--form", "json"]).args([
        "--policies",
        "foxy",
        "--memory",
        MEMORY,
        "--sizes",
        &sizes,
    ]);
    let report = report_of(&mut sim)?;
    let point = &report["curves"][0]["points"][row];
    let predicted = number(point, &["hit_ratio"]);
    let store = bench.path("size-store");
    let _ = std::fs::remove_file(&store);
    let store = store.to_string_lossy().into_owned();
    let foxy = bench.foxy(&["--store", &store, "--store-size", size, "--memory", MEMORY])?;
    let load = [
        "--workload",
        "trace",
        "--trace",
        log,
        "--versions",
        "reload",
        "--rate",
        RATE,
    ];
    let real = number(&bench.load(&foxy, &load)?, &["hit_ratio"]);
    let dropped = number(&foxy.stats()?, &["engine", "drop_pending"]);
    let off = 100.0 * (predicted - real);
    println!(
        "   {size}: predicted {predicted:.4}, achieved {real:.4} ({off:+.2} points), \
         {dropped:.0} not written for want of time"
    );
    if off.abs() > POINTS {
        return Err(format!(
            "{size}: predicted {off:+.2} points off, over {POINTS} are too many"
        ));
    }
    Ok(())
}
