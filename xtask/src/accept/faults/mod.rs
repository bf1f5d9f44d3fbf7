//! Foxy has two stores, and the disk of one store fills up, becomes slow, fails or is pulled out while a load
//! runs. The only permitted effect on clients is slower answers. Log, metrics and `foxy stats` must show the
//! state of the store.

mod device;

use std::time::Duration;

use serde_json::Value;

use self::device::Device;
use super::process::{Bench, Foxy, number, report_of};
use crate::report::Outcome;

/// Size of the failing disk in MiB.
const BAD_MIB: u64 = 192;
/// Size of the disk that does not fail.
const GOOD: &str = "512MiB";
/// Time from the start of the load until the disk gets its fault, in seconds.
const TROUBLE_AT: u64 = 10;
/// Duration of the load in seconds.
const LOAD_SECONDS: u64 = 30;
/// Longest wait for one answer.
const TIMEOUT: &str = "10s";

/// A fault of the bad disk, and the state of its store that Foxy must show.
struct FaultScenario {
    name: &'static str,
    /// Causes the fault.
    trouble: fn(&mut Device, &Foxy) -> Result<(), String>,
    /// States of the bad store. Foxy must show one of them.
    states: &'static [&'static str],
}

const SCENARIOS: [FaultScenario; 4] = [
    FaultScenario {
        name: "full",
        trouble: |device, _| device.fill(),
        states: &["read-only"],
    },
    FaultScenario {
        name: "slow",
        trouble: |device, foxy| device.slow_down(foxy.pid(), 128 << 10),
        states: &["slow"],
    },
    FaultScenario {
        name: "failing",
        trouble: |device, _| device.break_behind(16),
        states: &["read-only", "offline"],
    },
    FaultScenario {
        name: "pulled",
        trouble: |device, _| device.pull(),
        states: &["offline"],
    },
];

pub(crate) fn run(bench: &Bench) -> Outcome {
    let mut outcome = Outcome::default();
    if let Some(why) = device::missing() {
        outcome.note(Err(format!("not shown: {why}")));
        return outcome;
    }
    for scenario in &SCENARIOS {
        let ended = run_scenario(bench, scenario);
        outcome.note(ended.map_err(|why| format!("a store that is {}: {why}", scenario.name)));
    }
    outcome
}

/// The outputs of a running Foxy at one time.
#[derive(Clone)]
struct Seen {
    stats: Value,
    /// Output of `foxy stats`.
    page: String,
    metrics: String,
}

fn run_scenario(bench: &Bench, scenario: &FaultScenario) -> Result<(), String> {
    let folder = bench.path(&format!("device-{}", scenario.name));
    std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut device = Device::new(&folder, BAD_MIB)?;
    let good = bench.path(&format!("good-{}", scenario.name));
    let good = good.to_string_lossy().into_owned();
    let bad_size = format!("{BAD_MIB}MiB");
    let log = bench.path(&format!("log-{}", scenario.name));
    let foxy = bench.foxy_logging(
        &log,
        &[
            "--store",
            device.path(),
            "--store-size",
            &bad_size,
            "--store",
            &good,
            "--store-size",
            GOOD,
            "--memory",
            "160MiB",
        ],
    )?;
    let seconds = format!("{LOAD_SECONDS}s");
    let load = bench.tool("load", &foxy, &load_arguments(&seconds));
    let mut load = load;
    let running = std::thread::spawn(move || report_of(&mut load));
    std::thread::sleep(Duration::from_secs(TROUBLE_AT));
    let before = see(bench, &foxy)?;
    (scenario.trouble)(&mut device, &foxy)?;
    // The store may be in the expected state only for a short time, so its state is observed again and again
    // during the load.
    let mut told = None;
    while !running.is_finished() {
        std::thread::sleep(Duration::from_millis(200));
        if told.is_none() {
            told = Some(see(bench, &foxy)?).filter(|seen| scenario.states.contains(&state(seen)));
        }
    }
    let report = running.join().map_err(|_| "the load died".to_owned())??;
    let after = see(bench, &foxy)?;
    let told = told.unwrap_or_else(|| after.clone());
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    foxy.kill();
    print(scenario, &report, &before, &after, &told);
    judge_load(&report, &before, &after)?;
    judge_told(scenario, &device, &told, &log)
}

fn load_arguments(seconds: &str) -> [&str; 15] {
    [
        "--workload",
        "web",
        "--objects",
        "20000",
        "--servers",
        "200",
        "--versions",
        "reload",
        "--modified",
        "0.02",
        "--timeout",
        TIMEOUT,
        "--duration",
        seconds,
        "--quiet",
    ]
}

fn see(bench: &Bench, foxy: &Foxy) -> Result<Seen, String> {
    // The statistics are read first, because the other outputs are compared with them. A state that the
    // statistics contain lasts long enough to be in the other outputs too.
    let stats = foxy.stats()?;
    let page = bench
        .program()
        .args(["stats", "--admin", &foxy.admin()])
        .output()
        .map_err(|error| error.to_string())?;
    Ok(Seen {
        stats,
        page: String::from_utf8_lossy(&page.stdout).into_owned(),
        metrics: foxy.page("/metrics")?,
    })
}

fn state(seen: &Seen) -> &str {
    seen.stats["stores"][0]["health"]
        .as_str()
        .unwrap_or("unknown")
}

/// Growth of a statistic between two observations.
fn grown(before: &Seen, after: &Seen, path: &[&str]) -> f64 {
    number(&after.stats, path) - number(&before.stats, path)
}

/// The longest time for an answer, in seconds.
fn longest(report: &Value) -> f64 {
    let kinds = ["hits", "misses", "unknown"];
    let each = kinds.iter().map(|kind| number(report, &[*kind, "max"]));
    each.fold(0.0, f64::max) / 1e6
}

/// Number of records (objects or fragments) that the good store has written between the two observations.
fn taken_over(before: &Seen, after: &Seen) -> f64 {
    let records = |seen: &Seen| number(&seen.stats["stores"][1]["counts"], &["records"]);
    records(after) - records(before)
}

fn hits(before: &Seen, after: &Seen) -> f64 {
    grown(before, after, &["outcomes", "memory-hit"])
        + grown(before, after, &["outcomes", "disk-hit"])
}

fn print(scenario: &FaultScenario, report: &Value, before: &Seen, after: &Seen, told: &Seen) {
    println!(
        "   {:<8} {:>7.0} answers, {:.0} errors, {:.0} wrong; after it began {:.0} requests, {:.0} \
         hits, {:.0} records to the other store; longest answer {:.2} s; state: {}",
        scenario.name,
        number(report, &["answers"]),
        number(report, &["errors"]),
        number(report, &["wrong"]),
        grown(before, after, &["requests"]),
        hits(before, after),
        taken_over(before, after),
        longest(report),
        state(told),
    );
}

fn judge_load(report: &Value, before: &Seen, after: &Seen) -> Result<(), String> {
    let bad = number(report, &["errors"]) + number(report, &["wrong"]);
    if bad > 0.0 {
        return Err(format!("failed or wrong answers: {}", report["described"]));
    }
    if state(before) != "good" {
        return Err(format!("it was {} before the trouble", state(before)));
    }
    if hits(before, after) < 100.0 || taken_over(before, after) < 100.0 {
        return Err("hits or storing did not go on".to_owned());
    }
    Ok(())
}

fn judge_told(
    scenario: &FaultScenario,
    device: &Device,
    seen: &Seen,
    log: &str,
) -> Result<(), String> {
    let word = state(seen);
    if !scenario.states.contains(&word) {
        let wanted = scenario.states.join(" or ");
        return Err(format!("the store is {word}, and not {wanted}"));
    }
    let metric = format!("foxy_store_state{{store=\"0\",state=\"{word}\"}} 1");
    if !seen.page.contains(word) || !seen.metrics.contains(&metric) {
        return Err(format!(
            "`foxy stats` or the metrics do not say that the store is {word}"
        ));
    }
    let lines = log.lines().filter(|line| line.contains(device.path()));
    let told = lines.filter(|line| line.contains(&format!("now {word}")));
    let told: Vec<_> = told.collect();
    if let [line] = told[..] {
        println!("            {line}");
        return Ok(());
    }
    Err(format!(
        "the log tells {} times that {} is {word}, and not once",
        told.len(),
        device.path()
    ))
}
