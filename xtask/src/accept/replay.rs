//! Replays of real traces and of the synthetic stream. Every byte is checked, and the hit ratio is compared
//! with that of an exact LRU.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::process::{Bench, number};
use crate::report::Outcome;
use crate::workspace::root;

/// Greatest permitted loss of hit ratio compared with an exact LRU, in percentage points. The LRU has as many
/// bytes as Foxy's store.
const POINTS: f64 = 4.0;

/// Each trace: its file, the size of Foxy's store, and Foxy's memory.
const TRACES: [(&str, &str, &str); 3] = [
    ("1999-011-usertrace-98.tr.xz", "140MB", "64MiB"),
    ("nasa_19950701.tsv.xz", "17MB", "32MiB"),
    ("nasa_19950801.tsv.xz", "30MB", "32MiB"),
];

/// Replays the real traces. A missing trace is reported and left out.
pub(crate) fn traces(bench: &Bench) -> Outcome {
    let mut outcome = Outcome::default();
    for (file, disk, memory) in TRACES {
        let Some(path) = find(file) else {
            continue;
        };
        let path = path.to_string_lossy().into_owned();
        let load = [
            "--workload",
            "trace",
            "--trace",
            &path,
            "--versions",
            "reload",
            "--lru",
            disk,
        ];
        outcome.note(replay(bench, file, disk, memory, &load));
    }
    outcome
}

/// Runs `part` with the first trace, which is the log of a proxy, if its file exists.
pub(crate) fn with_log(part: impl FnOnce(&Path) -> Outcome) -> Outcome {
    find(TRACES[0].0).map_or_else(Outcome::default, |log| part(&log))
}

/// Returns the path of a trace. If the trace is missing, reports this.
fn find(file: &str) -> Option<PathBuf> {
    let places = [
        std::env::var_os("FOXY_TRACES").map(PathBuf::from),
        Some(root().join("../shared/traces")),
    ];
    let mut files = places.into_iter().flatten().map(|dir| dir.join(file));
    let found = files.find(|path| path.exists());
    if found.is_none() {
        println!("   {file}: absent, not replayed; set FOXY_TRACES to the folder that has it");
    }
    found
}

/// Replays many requests to 200 origin servers. All objects together are twice as large as the disk space.
/// The disk space is five times as large as the memory.
pub(crate) fn stream(bench: &Bench, requests: u64) -> Outcome {
    let requests = requests.to_string();
    let load = [
        "--workload",
        "web",
        "--requests",
        &requests,
        "--servers",
        "200",
        "--distinct",
        "8GiB",
        "--versions",
        "reload",
        "--modified",
        "0.02",
        "--lru",
        "4GiB",
    ];
    Outcome::single(replay(bench, "synthetic stream", "4GiB", "819MiB", &load))
}

/// Runs one replay with an empty store.
fn replay(
    bench: &Bench,
    name: &str,
    disk: &str,
    memory: &str,
    load: &[&str],
) -> Result<(), String> {
    let store = bench.path("replay-store");
    let _ = std::fs::remove_file(&store);
    let store = store.to_string_lossy().into_owned();
    let foxy = bench.foxy(&["--store", &store, "--store-size", disk, "--memory", memory])?;
    let report = bench.load(&foxy, load)?;
    let budget = number(&foxy.stats()?, &["memory", "budget_bytes"]);
    print(name, &report, foxy.resident() as f64 / budget);
    judge(name, &report)
}

fn print(name: &str, report: &Value, resident_share: f64) {
    println!(
        "   {name}: {:.0} answers, {:.0} req/s, {:.1} us CPU, hit ratio {:.4} ({:+.2} points beside exact LRU), \
         errors {:.0}, wrong {:.0}, memory {:.2} of its budget",
        number(report, &["answers"]),
        number(report, &["rate"]),
        number(report, &["cpu_us", "total"]),
        number(report, &["hit_ratio"]),
        number(report, &["points_beside_lru"]),
        number(report, &["errors"]),
        number(report, &["wrong"]),
        resident_share,
    );
}

fn judge(name: &str, report: &Value) -> Result<(), String> {
    let bad = number(report, &["errors"]) + number(report, &["wrong"]);
    let points = number(report, &["points_beside_lru"]);
    if bad > 0.0 {
        return Err(format!(
            "{name}: errors or wrong bytes: {}",
            report["described"]
        ));
    }
    if points < -POINTS {
        return Err(format!(
            "{name}: {points:.2} points beside exact LRU, over {POINTS} are too many"
        ));
    }
    Ok(())
}
