//! Foxy is killed with SIGKILL under load, and is then started with an empty page cache. The measurement
//! shows which requests are still hits, and how soon.

use std::time::Duration;

use foxy_base::{Clock, SystemClock};
use serde_json::Value;

use super::process::{Bench, number, report_of};
use crate::report::Outcome;

const STORE: &str = "6GiB";
/// Duration of the load in seconds. Foxy is killed two seconds before the end of the load. Even on a slow
/// machine, well over 300,000 objects are on disk at this time.
const LOAD_SECONDS: u64 = 60;

pub(crate) fn run(bench: &Bench) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.note(kill_and_expect(bench));
    outcome.note(kill_under_a_checking_load(bench));
    outcome
}

/// Kills Foxy and starts it again. Then requests the newest 5 GiB of the stored objects, but no object that
/// was stored in the last five seconds before the kill.
fn kill_and_expect(bench: &Bench) -> Result<(), String> {
    let store = bench.path("restart-store").to_string_lossy().into_owned();
    let args = [
        "--store",
        &store,
        "--store-size",
        STORE,
        "--memory",
        "512MiB",
    ];
    let record = bench.path("record").to_string_lossy().into_owned();
    let foxy = bench.foxy(&args)?;
    let foxy_port = foxy.port();
    let seconds = format!("{LOAD_SECONDS}s");
    let mut load = bench.tool(
        "load",
        &foxy,
        &[
            "--workload",
            "web",
            "--objects",
            "5000000",
            "--servers",
            "200",
            "--duration",
            &seconds,
            "--versions",
            "reload",
            "--modified",
            "0.03",
            "--patient",
            "--quiet",
            "--record",
            &record,
        ],
    );
    let running = load
        .stdout(std::process::Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    std::thread::sleep(Duration::from_secs(LOAD_SECONDS - 2));
    foxy.kill();
    let stopped = unix_millis();
    let _ = running.wait_with_output();
    drop_page_cache();
    // This call does not wait until Foxy listens. So the times that `expect` measures begin at the start of
    // the process.
    let again = bench.foxy_at(foxy_port, &args)?;
    let mut expect = bench.tool(
        "expect",
        &again,
        &[
            "--record",
            &record,
            "--versions",
            "reload",
            "--stopped-at",
            &stopped,
            "--newest",
            "5GiB",
        ],
    );
    let report = report_of(&mut expect)?;
    print(&report, &again.stats()?);
    judge(&report)
}

/// The load continues while Foxy is killed and restarted. The load rejects every answer with a version that
/// was replaced earlier.
fn kill_under_a_checking_load(bench: &Bench) -> Result<(), String> {
    let store = bench.path("checked-store").to_string_lossy().into_owned();
    let args = [
        "--store",
        &store,
        "--store-size",
        "2GiB",
        "--memory",
        "64MiB",
    ];
    let mut killed = 0;
    let mut foxy = bench.foxy(&args)?;
    let port = foxy.port();
    let mut load = bench.tool(
        "load",
        &foxy,
        &[
            "--workload",
            "web",
            "--objects",
            "20000",
            "--servers",
            "200",
            "--duration",
            "30s",
            "--versions",
            "reload",
            "--modified",
            "0.2",
            "--patient",
            "--quiet",
        ],
    );
    let running = std::thread::spawn(move || report_of(&mut load));
    while !running.is_finished() {
        std::thread::sleep(Duration::from_millis(2_500));
        if running.is_finished() {
            break;
        }
        foxy.kill();
        killed += 1;
        foxy = bench.foxy_at(port, &args)?;
    }
    let report = running.join().map_err(|_| "the load died".to_owned())??;
    let wrong = number(&report, &["wrong"]);
    println!(
        "   {killed} kills under load: {:.0} answers, {wrong:.0} wrong or superseded, hit ratio {:.3}",
        number(&report, &["answers"]),
        number(&report, &["hit_ratio"]),
    );
    if wrong > 0.0 || killed < 5 {
        return Err(format!(
            "wrong or superseded answers over {killed} kills: {}",
            report["described"]
        ));
    }
    Ok(())
}

fn print(report: &Value, stats: &Value) {
    let counts = &stats["stores"][0]["counts"];
    println!(
        "   after SIGKILL: {:.0} objects asked for, {:.4} hits, first hit after {:.3} s, 90 % of hits \
         after {:.2} s; {:.0} entries loaded in {:.2} s",
        number(report, &["answers"]),
        number(report, &["hit_ratio"]),
        number(report, &["restart", "first_hit"]),
        number(report, &["restart", "ninety"]),
        number(counts, &["loaded"]),
        number(counts, &["load_nanos"]) / 1e9,
    );
}

fn judge(report: &Value) -> Result<(), String> {
    let (asked, hits) = (number(report, &["answers"]), number(report, &["hit_ratio"]));
    let bad = number(report, &["errors"]) + number(report, &["wrong"]);
    if bad > 0.0 {
        return Err(format!(
            "errors or wrong bytes after the restart: {}",
            report["described"]
        ));
    }
    if asked < 300_000.0 {
        return Err(format!(
            "only {asked} objects were on disk: give the machine a quieter moment"
        ));
    }
    if hits < 0.99 {
        return Err(format!(
            "{hits:.4} of what was on disk is a hit; at least 0.99 are promised"
        ));
    }
    Ok(())
}

fn unix_millis() -> String {
    SystemClock::default().wall().millis().to_string()
}

/// Drops the page cache, if this process is root. Otherwise the page cache stays. The checks are valid in
/// both cases, because stores use direct I/O. But with a page cache, the measured times mean less.
fn drop_page_cache() {
    let _ = std::fs::write("/proc/sys/vm/drop_caches", "3");
}
