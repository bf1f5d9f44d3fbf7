//! S5: a server is stopped and started again. Then it is killed and started again. The results show how soon
//! there are hits, and how many objects are kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use foxy_base::Clock;
use serde_json::Value;

use super::super::host::pause;
use super::super::load::{Run, number};
use super::super::results::Row;
use super::store::Filled;

/// Time from the start of the check (`bench expect`) to the start of the server. The check waits for the
/// server.
const AHEAD: Duration = Duration::from_millis(100);
/// Number of the first object among the objects that are stored right before the kill.
const LAST: &str = "100000000";

pub(super) fn run(run: &Run, filled: &mut Filled) -> Result<Row, String> {
    let mut row = Row::new("s5", filled.server.kind);
    let age = filled.clock.mono().since(filled.begun);
    pause(run.lengths.age_of_store.saturating_sub(age));
    let known = sample(&filled.record, run.lengths.sample)?;
    row.set("stop s", filled.server.stop()?);
    run.host.drop_caches()?;
    let report = start_and_ask(run, filled, &known)?;
    take(&mut row, "stop", &report);
    let read = filled.server.group.bytes_read();
    row.set("stop MB read", read as f64 / 1e6);
    filled.server.pin()?;

    let last = run
        .host
        .scratch
        .join(format!("{}.last", filled.server.kind));
    let record = last.to_string_lossy().into_owned();
    let count = (run.lengths.objects / 60).to_string();
    let args = [
        "--workload",
        "scan",
        "--first",
        LAST,
        "--objects",
        &count,
        "--sizes",
        "exp:8000",
        "--connections",
        "100",
        "--record",
        &record,
    ];
    let report = run.load(&filled.server, &args)?;
    row.take("last", &report);
    filled.server.kill();
    run.host.drop_caches()?;
    let report = start_and_ask(run, filled, &known)?;
    take(&mut row, "kill", &report);
    let report = expect(run, filled, &last, None)?.wait_with_output();
    let output = report.map_err(|e| format!("expect: {e}"))?;
    let report: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("expect: {e}"))?;
    take(&mut row, "newest", &report);
    Ok(row)
}

/// Starts the server while the check already tries to connect.
fn start_and_ask(run: &Run, filled: &mut Filled, known: &Path) -> Result<Value, String> {
    let asking = expect(run, filled, known, Some("400"))?;
    pause(AHEAD);
    filled.server.spawn()?;
    let output = asking
        .wait_with_output()
        .map_err(|e| format!("expect: {e}"))?;
    serde_json::from_slice(&output.stdout).map_err(|e| format!("expect: no report: {e}"))
}

fn expect(
    run: &Run,
    filled: &Filled,
    record: &Path,
    rate: Option<&str>,
) -> Result<std::process::Child, String> {
    let mut command = run.tool("expect", &filled.server)?;
    command
        .arg("--record")
        .arg(record)
        .args(["--older-than", "0s", "--least", "0"])
        .stdout(Stdio::piped());
    if let Some(rate) = rate {
        command.args(["--rate", rate]);
    }
    command.spawn().map_err(|e| format!("expect: {e}"))
}

fn take(row: &mut Row, part: &str, report: &Value) {
    row.take(part, report);
    let ahead = AHEAD.as_secs_f64();
    for (name, field) in [
        ("first answer s", "first_answer"),
        ("first hit s", "first_hit"),
        ("90 % s", "ninety"),
    ] {
        if let Some(seconds) = number(report, &["restart", field]) {
            row.set(&format!("{part} {name}"), (seconds - ahead).max(0.0));
        }
    }
    let all = number(report, &["share_of_hits"]).unwrap_or(0.0);
    row.set(&format!("{part} hits from the start"), all);
    // While the server still loads its objects, a request can be a miss although the object is not lost. So
    // only the answers in the second half of the run count. The newest objects are requested last. By then,
    // all objects are loaded, so all answers count.
    let later = number(report, &["restart", "later_level"]).unwrap_or(0.0);
    let kept = if part == "newest" { all } else { later };
    row.set(&format!("{part} retained"), kept);
}

/// Writes evenly spread lines of a record to another file for the check, and returns the path of that file.
/// If the check read all 300,000 lines, this would take longer than the start that is measured.
fn sample(record: &Path, count: usize) -> Result<PathBuf, String> {
    let shown = record.display();
    let text = fs::read_to_string(record).map_err(|e| format!("{shown}: {e}"))?;
    let lines: Vec<&str> = text.lines().collect();
    let step = (lines.len() / count.max(1)).max(1);
    let chosen: Vec<&str> = lines.into_iter().step_by(step).collect();
    let path = record.with_extension("sample");
    fs::write(&path, chosen.join("\n") + "\n").map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}
