//! Measures the CPU time of a memory hit of 4 KiB and of a small disk hit. Foxy runs on one core, and the
//! load runs on another core.

use std::process::Command;

use serde_json::Value;

use super::process::{Bench, Foxy, number, report_of};
use crate::report::Outcome;

/// Number of runs. The lowest CPU time of all runs is the result, because the other runs contain more noise
/// of the machine.
const RUNS: usize = 5;

pub(crate) fn run(bench: &Bench) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.note(memory_hits(bench));
    outcome.note(disk_hits(bench));
    outcome
}

/// Measures hits of one popular object. For comparison, it also measures the simplest possible server, which
/// shows the kernel's part of the CPU time. Then it measures hits of many objects. Together these objects are
/// larger than the second-level cache of a processor. So the processor waits for memory when it copies an
/// object into the socket.
fn memory_hits(bench: &Bench) -> Result<(), String> {
    let one = ["--objects", "1", "--servers", "1"];
    for (work, name) in [
        ("0", "plainest server, 4 KiB"),
        ("500ns", "the same, computing for 0.5 us"),
    ] {
        let floor = bench.floor(work)?;
        row(bench, &floor, name, &one)?;
        floor.kill();
    }
    let foxy = bench.foxy(&["--store", "off", "--memory", "256MiB", "--workers", "1"])?;
    row(bench, &foxy, "memory hit, 4 KiB, one object", &one)?;
    let many = ["--objects", "1000"];
    row(bench, &foxy, "memory hit, 4 KiB, 1000 objects", &many)
}

fn row(bench: &Bench, server: &Foxy, name: &str, args: &[&str]) -> Result<(), String> {
    pin(server);
    let usual = ["--sizes", "4KiB", "--connections", "50", "--poll"];
    let (mut costs, mut valid) = (Vec::new(), 0);
    for _ in 0..RUNS {
        let report = measured(bench, server, &[&usual[..], args].concat())?;
        costs.push(cost(&report));
        valid += usize::from(report["valid"] == true);
    }
    print(name, &mut costs, valid);
    Ok(())
}

fn disk_hits(bench: &Bench) -> Result<(), String> {
    let store = bench.path("hit-store").to_string_lossy().into_owned();
    let foxy = bench.foxy(&[
        "--store",
        &store,
        "--store-size",
        "4GiB",
        "--memory",
        "32MiB",
        "--workers",
        "1",
    ])?;
    pin(&foxy);
    let objects = [
        "--objects",
        "200000",
        "--sizes",
        "exp:8000",
        "--connections",
        "50",
    ];
    let mut fill = bench.tool(
        "load",
        &foxy,
        &["--workload", "scan", "--requests", "200000"],
    );
    report_of(fill.args(objects).arg("--quiet"))?;
    let (mut costs, mut valid) = (Vec::new(), 0);
    let before = foxy.stats()?;
    for _ in 0..RUNS {
        let report = measured(bench, &foxy, &[&objects[..], &["--alpha", "0"]].concat())?;
        costs.push(cost(&report));
        valid += usize::from(report["valid"] == true);
    }
    print("disk hit, mean 8 KB", &mut costs, valid);
    let after = foxy.stats()?;
    let grown = |path: &[&str]| number(&after, path) - number(&before, path);
    let hits = grown(&["engine", "disk_hits"]);
    println!(
        "   device reads per disk hit {:.4}",
        grown(&["events", "disk_reads"]) / hits.max(1.0)
    );
    Ok(())
}

fn measured(bench: &Bench, foxy: &Foxy, args: &[&str]) -> Result<Value, String> {
    let pid = foxy.pid().to_string();
    let base = [
        "--warm-up",
        "1s",
        "--duration",
        "4s",
        "--check",
        "0.01",
        "--quiet",
        "--pid",
        &pid,
    ];
    let load = bench.tool("load", foxy, &[&base[..], args].concat());
    let mut pinned = Command::new("taskset");
    pinned
        .args(["-c", "1"])
        .arg(load.get_program())
        .args(load.get_args());
    let report = report_of(&mut pinned)?;
    let bad = number(&report, &["errors"]) + number(&report, &["wrong"]);
    if bad > 0.0 {
        return Err(format!("errors or wrong bytes: {}", report["described"]));
    }
    Ok(report)
}

/// Returns the CPU time per request in microseconds: total, user and system.
fn cost(report: &Value) -> [f64; 3] {
    ["total", "user", "system"].map(|part| number(report, &["cpu_us", part]))
}

fn print(name: &str, costs: &mut [[f64; 3]], valid: usize) {
    costs.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let (least, middle) = (costs[0], costs[costs.len() / 2]);
    println!(
        "   {name}: {:.2} us CPU (user {:.2}, system {:.2}) at best, median {:.2}, of {RUNS} runs; \
         generator below 90 % busy in {valid}",
        least[0], least[1], least[2], middle[0],
    );
}

/// Pins all threads of Foxy to core 0.
fn pin(foxy: &Foxy) {
    let pid = foxy.pid().to_string();
    let _ = Command::new("taskset")
        .args(["-a", "-c", "-p", "0", &pid])
        .output();
}
