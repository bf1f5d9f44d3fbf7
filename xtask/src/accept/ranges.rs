//! Measures how many bytes the origin sends for ranges of large objects, in one run of Foxy and over a
//! restart.

use super::process::{Bench, Foxy, number};
use crate::report::Outcome;

/// Greatest number of bytes that the origin may send for a range of 100 bytes in 10 GB.
const LITTLE: f64 = 2.0 * 1024.0 * 1024.0;
/// Length of the object that is read in a random order.
const GIB: u64 = 1 << 30;
/// Number of pieces in which the object of [`GIB`] bytes is read. Nearly every piece begins and ends within a
/// fragment (the part of an object that Foxy stores as one record).
const PIECES: &str = "3000";
/// Rate at which the origin sends the object of [`GIB`] bytes, in bytes per second. A busy disk can still
/// write at this rate. At a higher rate, the store might not write a fragment in time. The fragment would
/// then not be stored, and would be fetched again.
const RATE: u64 = 100_000_000;

pub(crate) fn run(bench: &Bench) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.note(little(bench));
    outcome.note(jumping(bench, "one life", &["1/1"]));
    outcome.note(jumping(bench, "restart in between", &["1/2", "2/2"]));
    outcome
}

/// Reads 100 bytes at a random position in an object larger than the store, three times.
fn little(bench: &Bench) -> Result<(), String> {
    let foxy = start(bench, "ranges-little", "1GiB")?;
    let mut most = 0.0_f64;
    for seed in ["1", "2", "3"] {
        let object = format!("/o/{seed}0?s=10000000000");
        let report = bench.ranges(&foxy, &object, &["--bytes", "100", "--seed", seed])?;
        right(&report)?;
        most = most.max(number(&report, &["origin", "bytes"]));
    }
    println!("   100 bytes out of 10 GB: at most {most:.0} bytes from the origin");
    match most <= LITTLE {
        true => Ok(()),
        false => Err(format!(
            "100 bytes out of 10 GB cost {most} bytes, {LITTLE} are allowed"
        )),
    }
}

/// Reads a complete object once, in a random order. The origin must send each byte once.
fn jumping(bench: &Bench, name: &str, parts: &[&str]) -> Result<(), String> {
    let place = format!("ranges-{}", name.replace(' ', "-"));
    let (mut sent, mut requests) = (0.0, 0.0);
    for (life, part) in parts.iter().enumerate() {
        let foxy = start(bench, &place, "4GiB")?;
        let object = format!("/o/7?s={GIB}&b={RATE}");
        let report = bench.ranges(&foxy, &object, &["--pieces", PIECES, "--part", part])?;
        right(&report)?;
        sent += number(&report, &["origin", "bytes"]);
        requests += number(&report, &["origin", "requests"]);
        if life + 1 < parts.len() {
            foxy.stop()?;
        }
    }
    println!(
        "   1 GiB in {PIECES} pieces, {name}: {sent:.0} bytes in {requests} requests, of {GIB}"
    );
    match sent <= GIB as f64 {
        true => Ok(()),
        false => Err(format!("{name}: {sent} bytes from the origin for {GIB}")),
    }
}

fn start(bench: &Bench, store: &str, size: &str) -> Result<Foxy, String> {
    let store = bench.path(store).to_string_lossy().into_owned();
    bench.foxy(&[
        "--store",
        &store,
        "--store-size",
        size,
        "--memory",
        "256MiB",
    ])
}

fn right(report: &serde_json::Value) -> Result<(), String> {
    let (right, reads) = (number(report, &["right"]), number(report, &["reads"]));
    match right == reads && reads > 0.0 {
        true => Ok(()),
        false => Err(format!(
            "{right} of {reads} readings right: {}",
            report["problem"]
        )),
    }
}
