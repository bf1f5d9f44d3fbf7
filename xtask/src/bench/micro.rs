//! `cargo xtask bench micro`: instruction counts of the frequently executed code, compared with a baseline.
//!
//! Each case runs under callgrind with two repetition counts. The difference of the instructions is divided
//! by the difference of the counts. The result is the number of instructions for one repetition, without the
//! start of the program. Only instructions are judged, because they are repeatable and times are not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use foxy_base::{Clock, SystemClock};
use foxy_lab::kit::{free_port, wait_for};
use serde::{Deserialize, Serialize};

use crate::report::Outcome;
use crate::workspace::{Released, cargo, released, root, succeed, target_folder};

/// Options of the command.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct MicroArgs {
    /// Write the counts into the baseline and do not judge them
    #[arg(long)]
    bless: bool,
    /// Run only these cases
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
}

/// Cases of the program `foxy-micro` (bench/micro), each with its two repetition counts.
const CODE: [(&str, u64, u64); 14] = [
    ("request-head", 2_000, 12_000),
    ("response-head", 2_000, 12_000),
    ("decide", 2_000, 12_000),
    ("hit-rules", 2_000, 12_000),
    ("hit-rules-all", 2_000, 12_000),
    ("can-store", 1_000, 6_000),
    ("index-lookup", 10_000, 60_000),
    ("index-insert", 10_000, 60_000),
    ("record-encode", 200, 1_200),
    ("record-parse", 200, 1_200),
    ("access-rules", 2_000, 12_000),
    ("access-rules-hosts", 2_000, 12_000),
    ("access-rules-many", 2_000, 12_000),
    ("access-rules-paths", 2_000, 12_000),
];
/// The loads for a complete Foxy that has one client connection and keeps its contents only in memory. Each
/// entry consists of a name and the arguments of the load.
const WHOLE: [(&str, &[&str]); 2] = [
    ("hit", &["--workload", "popular", "--objects", "1"]),
    ("miss", &["--workload", "scan", "--objects", "100000"]),
];
/// The function in which the instructions of the worker thread are counted.
const WORKER: &str = "--toggle-collect=foxy_proxy::client::worker::Worker::run";
const FEW: u64 = 500;
const MANY: u64 = 4_500;

/// The instruction counts in bench/micro/baseline.toml.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Baseline {
    /// An increase of instructions up to this percentage counts as noise.
    tolerance: f64,
    /// Instructions of each case.
    instructions: BTreeMap<String, u64>,
}

pub(super) fn run(args: &MicroArgs) -> Result<Outcome, String> {
    Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .map_err(|e| format!("valgrind: {e}; get it with: apt-get install valgrind"))?;
    let asked = |name: &str| args.cases.is_empty() || args.cases.iter().any(|c| c == name);
    let mut build = cargo(&["build", "--release", "-p", "foxy-micro"]);
    succeed(&mut build, "the messages above name file and line")?;
    let target = target_folder()?.join("release");
    let mut counts = BTreeMap::new();
    println!("   {:<16} {:>12} {:>10}", "case", "instructions", "wall ns");
    for (name, few, many) in CODE.into_iter().filter(|(name, ..)| asked(name)) {
        let program = target.join("foxy-micro");
        let count = |n: u64| under_callgrind(&program, name, n);
        counts.insert(name.to_owned(), per(count(few)?, count(many)?, many - few));
        let wall = wall(&program, name, few, many)?;
        println!("   {name:<16} {:>12} {wall:>10.0}", counts[name]);
    }
    for (name, load) in WHOLE.into_iter().filter(|(name, _)| asked(name)) {
        let programs = released(None)?;
        let (few, many) = (whole(&programs, load, FEW)?, whole(&programs, load, MANY)?);
        counts.insert(name.to_owned(), per(few, many, MANY - FEW));
        println!("   {name:<16} {:>12} {:>10}", counts[name], "-");
    }
    let mut outcome = held(args, &counts)?;
    if asked("hit") {
        outcome.note(no_allocations());
    }
    Ok(outcome)
}

const fn per(few: u64, many: u64, times: u64) -> u64 {
    many.saturating_sub(few) / times
}

fn path() -> PathBuf {
    root().join("bench/micro/baseline.toml")
}

fn held(args: &MicroArgs, counts: &BTreeMap<String, u64>) -> Result<Outcome, String> {
    let path = path();
    let shown = path.display();
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut baseline: Baseline = if text.is_empty() {
        Baseline {
            tolerance: 1.0,
            ..Baseline::default()
        }
    } else {
        toml::from_str(&text).map_err(|e| format!("{shown}: {e}"))?
    };
    if args.bless {
        baseline.instructions.extend(counts.clone());
        let text = toml::to_string(&baseline).map_err(|e| e.to_string())?;
        let head = "# Instructions per call, as `cargo xtask bench micro --bless` counted them.\n";
        fs::write(&path, format!("{head}{text}")).map_err(|e| format!("{shown}: {e}"))?;
        println!("   {shown} written");
    }
    let mut outcome = Outcome::default();
    for (name, now) in counts {
        outcome.note(judge(name, *now, &baseline));
    }
    Ok(outcome)
}

fn judge(name: &str, now: u64, baseline: &Baseline) -> Result<(), String> {
    let Some(before) = baseline.instructions.get(name) else {
        return Err(format!("{name}: not in the baseline; add it with --bless"));
    };
    let grown = (now as f64 / (*before).max(1) as f64 - 1.0) * 100.0;
    if grown > baseline.tolerance {
        return Err(format!(
            "{name}: {now} instructions, {grown:.1} % more than {before}: mend it, or say why in \
             the commit and use --bless"
        ));
    }
    if grown < -baseline.tolerance {
        println!("   {name}: {:.1} % fewer; --bless keeps that", -grown);
    }
    Ok(())
}

fn callgrind(program: &Path, out: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "-q"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program);
    command
}

fn under_callgrind(program: &Path, case: &str, count: u64) -> Result<u64, String> {
    let out = out_file()?;
    let mut command = callgrind(program, out.path());
    let status = command.args([case, &count.to_string()]).status();
    match status {
        Ok(status) if status.success() => total(out.path()),
        Ok(status) => Err(format!("{case}: {status}")),
        Err(e) => Err(format!("valgrind: {e}")),
    }
}

fn out_file() -> Result<tempfile::NamedTempFile, String> {
    tempfile::NamedTempFile::new().map_err(|e| format!("a scratch file: {e}"))
}

/// Reads the `totals:` or `summary:` line of callgrind's output.
fn total(out: &Path) -> Result<u64, String> {
    let text = fs::read_to_string(out).map_err(|e| format!("callgrind's output: {e}"))?;
    let line = text.lines().rev().find_map(|l| {
        l.strip_prefix("totals: ")
            .or_else(|| l.strip_prefix("summary: "))
    });
    let count = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    count.ok_or_else(|| "callgrind's output has no total".into())
}

/// Nanoseconds per call without callgrind. The value is printed, but not judged.
fn wall(program: &Path, case: &str, few: u64, many: u64) -> Result<f64, String> {
    let clock = SystemClock::default();
    let time = |count: u64| -> Result<f64, String> {
        let begun = clock.mono();
        let status = Command::new(program)
            .args([case, &count.to_string()])
            .status();
        status.map_err(|e| format!("{case}: {e}"))?;
        Ok(clock.mono().since(begun).as_nanos() as f64)
    };
    Ok(((time(many * 10)? - time(few * 10)?) / ((many - few) as f64 * 10.0)).max(0.0))
}

/// A child process that is killed when this value is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the number of instructions of the worker of a complete Foxy that answers `requests` requests on
/// one connection.
fn whole(programs: &Released, load: &[&str], requests: u64) -> Result<u64, String> {
    let (port, origin_port) = (free_port()?, free_port()?);
    let origin = Command::new(&programs.lab)
        .args([
            "bench",
            "origin",
            "--listen",
            &format!("0.0.0.0:{origin_port}"),
        ])
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| format!("{}: {e}", programs.lab.display()))?;
    let _origin = Ended(origin);
    let out = out_file()?;
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "-q"])
        // Only the worker counts, because the work of the other threads does not depend on the number of
        // requests.
        .args(["--collect-atstart=no", WORKER])
        .arg(format!("--callgrind-out-file={}", out.path().display()))
        .arg(&programs.foxy)
        .args([
            "serve",
            "--store",
            "off",
            "--workers",
            "1",
            "--memory",
            "256MiB",
        ])
        .args(["--access-log", "off", "--admin", "off"])
        .args(["--listen", &format!("127.0.0.1:{port}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut foxy = Ended(command.spawn().map_err(|e| format!("valgrind: {e}"))?);
    wait_for(port, Duration::from_secs(30))?;
    let status = Command::new(&programs.lab)
        .args([
            "bench",
            "load",
            "--quiet",
            "--connections",
            "1",
            "--servers",
            "1",
        ])
        .args(["--target", &format!("127.0.0.1:{port}")])
        .args(["--origin", &format!("127.0.0.1:{origin_port}")])
        .args(["--requests", &requests.to_string()])
        .args(load)
        .stdout(Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return Err("the load against Foxy under callgrind failed".into());
    }
    let pid = foxy.0.id().to_string();
    let _ = Command::new("kill").args(["-s", "TERM", &pid]).status();
    let _ = foxy.0.wait();
    total(out.path())
}

fn no_allocations() -> Result<(), String> {
    let mut test = cargo(&["test", "-q", "-p", "foxy-proxy", "--test", "allocations"]);
    succeed(&mut test, "a memory hit allocates")?;
    println!("   allocations per memory hit: 0 (the test that counts them passed)");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_beyond_the_tolerance_is_named() {
        let baseline = Baseline {
            tolerance: 3.0,
            instructions: BTreeMap::from([("hit".to_owned(), 1000)]),
        };
        assert!(judge("hit", 1029, &baseline).is_ok());
        assert!(judge("hit", 500, &baseline).is_ok());
        let problem = judge("hit", 1031, &baseline).unwrap_err();
        assert!(
            problem.contains("hit") && problem.contains("3.1 %"),
            "{problem}"
        );
        assert!(judge("new", 1, &baseline).is_err());
    }

    #[test]
    fn totals_are_read() {
        let out = out_file().unwrap();
        fs::write(out.path(), "events: Ir\nfn=x\n1 2\ntotals: 4711\n").unwrap();
        assert_eq!(total(out.path()), Ok(4711));
    }
}
