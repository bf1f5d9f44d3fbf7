//! One fetch for a crowd (clients that request one object at the same time). The cases are large objects, a
//! leader (first client) that disconnects, slow readers, a store that breaks, and answers that must not be
//! shared.
//!
//! A case fails if bytes are wrong, or if the requests to the origin are not as expected (for example, too
//! many). Times and memory are printed beside their goals, but they are not judged, because they change on a
//! busy machine.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::process::{Bench, Foxy, number};
use crate::report::Outcome;

/// Memory budget of each Foxy.
const MEMORY: &str = "256MiB";
/// Memory budget of each Foxy in MiB.
const MEMORY_MIB: f64 = 256.0;
/// Latency of the origin in milliseconds. It is so long that all clients of a crowd have sent their requests
/// before the origin sends the first byte.
const LATENCY_MS: f64 = 300.0;

/// One case: a crowd of clients and the object that they request.
struct Crowd<'a> {
    name: &'a str,
    object: String,
    args: &'a [&'a str],
    /// Greatest permitted number of requests at the origin.
    requests: f64,
}

pub(crate) fn run(bench: &Bench) -> Outcome {
    let mut outcome = Outcome::default();
    println!(
        "   {:<46} {:>8} {:>9} {:>17} {:>9} {:>8}",
        "crowd", "right", "origin", "first byte ms", "total ms", "RSS MiB"
    );
    println!(
        "   {:<46} {:>8} {:>9} {:>17}",
        "", "", "requests", "median / p99"
    );
    outcome.note(large(bench));
    outcome.note(many(bench));
    outcome.note(broken_store(bench));
    outcome.note(small(bench));
    outcome
}

/// 100 clients request an object of 100 MB, which the origin sends at 50 MB/s. Then the crowd runs again with
/// a leader that disconnects and a client that reads 10 KB/s.
fn large(bench: &Bench) -> Result<(), String> {
    let (foxy, _) = foxy(bench, "collapse-large")?;
    let calm = crowd(
        bench,
        &foxy,
        &Crowd {
            name: "100 clients, 100 MB at 50 MB/s",
            object: format!("/o/1?s=100000000&l={LATENCY_MS}&b=50000000"),
            args: &["--clients", "100"],
            requests: 1.0,
        },
    )?;
    target("first byte after the leader's, median", &calm, 1.0);
    crowd(
        bench,
        &foxy,
        &Crowd {
            name: "  leader leaves at 30 MB, one reads 10 KB/s",
            object: format!("/o/2?s=100000000&l={LATENCY_MS}&b=50000000"),
            args: &["--clients", "100", "--leave-after", "30MB", "--slow", "1"],
            requests: 1.0,
        },
    )?;
    within_budget(&foxy)
}

/// 1,000 clients request an object of 10 MB. Then the clients request the object again, and these requests
/// are plain hits.
fn many(bench: &Bench) -> Result<(), String> {
    let (foxy, _) = foxy(bench, "collapse-many")?;
    let object = format!("/o/3?s=10000000&l={LATENCY_MS}");
    let args = &["--clients", "1000"];
    let first = Crowd {
        name: "1,000 clients, 10 MB",
        object: object.clone(),
        args,
        requests: 1.0,
    };
    let fetched = crowd(bench, &foxy, &first)?;
    target("first byte after the leader's, median", &fetched, 10.0);
    let mut best = f64::MAX;
    for name in ["  the same again: hits", "  and again"] {
        let again = Crowd {
            name,
            object: object.clone(),
            args,
            requests: 0.0,
        };
        best = best.min(number(&crowd(bench, &foxy, &again)?, &["total_ms"]));
    }
    let ratio = (number(&fetched, &["total_ms"]) - LATENCY_MS) / best.max(1.0);
    println!(
        "   -> time without the origin's latency, to that of hits: {ratio:.2} ({})",
        met(ratio <= 1.3)
    );
    within_budget(&foxy)
}

/// While a crowd reads, the store's file is truncated to length 0. So the store loses all its contents during
/// the reads.
fn broken_store(bench: &Bench) -> Result<(), String> {
    let (foxy, store) = foxy(bench, "collapse-broken")?;
    let breaker = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1000));
        empty(&store)
    });
    let done = crowd(
        bench,
        &foxy,
        &Crowd {
            name: "100 clients, 100 MB, store lost after 1 s",
            object: format!("/o/4?s=100000000&l={LATENCY_MS}&b=50000000"),
            args: &["--clients", "100", "--slow", "1"],
            requests: f64::INFINITY,
        },
    );
    let emptied = breaker
        .join()
        .map_err(|_| "the store was not emptied".to_owned())?;
    emptied.map_err(|error| format!("emptying the store: {error}"))?;
    done?;
    within_budget(&foxy)
}

fn empty(store: &Path) -> std::io::Result<()> {
    std::fs::OpenOptions::new()
        .write(true)
        .open(store)?
        .set_len(0)
}

/// 1,000 clients request an expired object, an uncacheable object, and an object that varies by cookie.
fn small(bench: &Bench) -> Result<(), String> {
    let (foxy, _) = foxy(bench, "collapse-small")?;
    let expired = format!("/o/5?s=10000&m=1&l={LATENCY_MS}");
    let ask = |name, object: &str, args: &[&str], requests| {
        let object = object.to_owned();
        crowd(
            bench,
            &foxy,
            &Crowd {
                name,
                object,
                args,
                requests,
            },
        )
    };
    ask(
        "an object of one second",
        &expired,
        &["--clients", "1"],
        1.0,
    )?;
    std::thread::sleep(Duration::from_millis(2500));
    let again = ask(
        "  1,000 clients when it has expired",
        &expired,
        &["--clients", "1000"],
        1.0,
    )?;
    if number(&again, &["origin", "not_modified"]) != 1.0 {
        return Err("the expired object was not revalidated".to_owned());
    }
    let uncacheable = format!("/o/6?s=10000&n=1&l={LATENCY_MS}");
    let alone = ask(
        "1,000 clients, uncacheable",
        &uncacheable,
        &["--clients", "1000"],
        1000.0,
    )?;
    side_by_side(&alone)?;
    let cookie = format!("/o/7?s=10000&l={LATENCY_MS}");
    let cookies = &["--clients", "1000", "--cookies"];
    let each = ask("1,000 clients, each its cookie", &cookie, cookies, 1000.0)?;
    side_by_side(&each)?;
    ask("  the same again", &cookie, cookies, 0.0)?;
    within_budget(&foxy)
}

/// Checks that at least nine in ten of the requests were at the origin at the same time.
fn side_by_side(report: &Value) -> Result<(), String> {
    let peak = number(report, &["origin", "peak"]);
    println!("   -> {peak} at the origin at the same time");
    match peak >= 900.0 {
        true => Ok(()),
        false => Err(format!(
            "they waited for each other: {peak} of 1,000 at a time"
        )),
    }
}

/// Starts a Foxy with its own store. Returns the Foxy and the store's path.
fn foxy(bench: &Bench, name: &str) -> Result<(Foxy, std::path::PathBuf), String> {
    let path = bench.path(name);
    let store = path.to_string_lossy().into_owned();
    let args = [
        "--store",
        &store,
        "--store-size",
        "1GiB",
        "--memory",
        MEMORY,
    ];
    Ok((bench.foxy(&args)?, path))
}

/// Runs a crowd and prints its row. Fails if bytes are wrong or the origin got too many requests.
fn crowd(bench: &Bench, foxy: &Foxy, crowd: &Crowd<'_>) -> Result<Value, String> {
    let report = bench.together(foxy, &crowd.object, crowd.args)?;
    let at = |path: &[&str]| number(&report, path);
    let (right, wanted) = (at(&["right"]), at(&["wanted"]));
    let requests = at(&["origin", "requests"]);
    println!(
        "   {:<46} {:>8} {:>9} {:>8.2} /{:>7.2} {:>9.0} {:>8.0}",
        crowd.name,
        format!("{right}/{wanted}"),
        requests,
        at(&["first_byte_median_ms"]),
        at(&["first_byte_p99_ms"]),
        at(&["total_ms"]),
        foxy.resident() as f64 / f64::from(1 << 20),
    );
    if right < wanted || report["problems"].as_array().is_none_or(|p| !p.is_empty()) {
        return Err(format!(
            "{}: {right} of {wanted} right: {}",
            crowd.name, report["problems"]
        ));
    }
    if requests > crowd.requests {
        return Err(format!(
            "{}: {requests} requests at the origin, {} are enough",
            crowd.name, crowd.requests
        ));
    }
    Ok(report)
}

fn target(what: &str, report: &Value, limit: f64) {
    let ms = number(report, &["first_byte_median_ms"]);
    println!(
        "   -> {what}: {ms:.2} ms of {limit} ms ({})",
        met(ms <= limit)
    );
}

fn met(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

/// Prints the peak memory of the process beside its budget.
fn within_budget(foxy: &Foxy) -> Result<(), String> {
    let peak = foxy.peak_resident() as f64 / f64::from(1 << 20);
    println!(
        "   -> at most {peak:.0} MiB resident, budget {MEMORY_MIB} MiB ({})",
        met(peak <= MEMORY_MIB)
    );
    Ok(())
}
