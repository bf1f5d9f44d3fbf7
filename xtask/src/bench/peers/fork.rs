//! `cargo xtask bench fork`: compares Foxy with a proxy that starts a process for each request and keeps a
//! file for each URL. Each proxy runs with and without a cache. Maltzahn, Richardson and Grunwald compared
//! the proxies CERN and Harvest in this way.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde_json::Value;

use super::host::{Host, pause, sync};
use super::lengths::{Lengths, text};
use super::load::{Origin, Run, number};
use super::servers::{Kind, Server, Shape};
use crate::report::Outcome;
use crate::workspace::{cargo, released, succeed, target_folder};

/// Options of the measurement.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ForkArgs {
    /// Run short measurements, to check that everything works
    #[arg(long)]
    quick: bool,
    /// Folder for stores; default: target
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Folder with `foxy` and `foxy-fork-proxy`; default: a release build
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

/// The measured systems: name, server, and true if the origin's answers may be stored.
const SYSTEMS: [(&str, Kind, bool); 4] = [
    ("process per request, cache", Kind::Fork, true),
    ("process per request, no cache", Kind::ForkBare, true),
    ("Foxy", Kind::Foxy, true),
    ("Foxy, nothing cacheable", Kind::Foxy, false),
];

pub(in super::super) fn run(args: &ForkArgs) -> Result<Outcome, String> {
    let target = target_folder()?;
    let built = args.programs.as_ref().map(|folder| folder.join("foxy"));
    if built.is_none() {
        let mut build = cargo(&["build", "--release", "-p", "foxy-fork-proxy"]);
        succeed(&mut build, "the messages above name file and line")?;
    }
    let programs = released(built.as_deref())?;
    let host = Host::new(args.dir.as_deref().unwrap_or(&target), false)?;
    let origin = Origin::start(&host, &programs.lab)?;
    let lengths = if args.quick {
        Lengths::QUICK
    } else {
        Lengths::FULL
    };
    let run = Run {
        host,
        programs,
        lengths,
        origin,
    };
    println!(
        "| | load | req/s | service ms mean | p50 / p99 | user us | kernel us | hit ratio | memory MB | \
         KB written/request |\n|---|---|{}",
        "---:|".repeat(8)
    );
    let mut outcome = Outcome::default();
    for (name, kind, cacheable) in SYSTEMS {
        outcome.note(system(&run, name, kind, cacheable));
    }
    Ok(outcome)
}

/// Measures a system at two loads. Low load: 10 clients with 200 requests each, as in the measurement of
/// Harvest. High load: 100 clients in a closed loop (each client sends its next request after the answer).
fn system(run: &Run, name: &str, kind: Kind, cacheable: bool) -> Result<(), String> {
    let label = if cacheable { "fork" } else { "fork-bare" };
    let mut server = Server::new(run, kind, &Shape::on_disk(run, label))?;
    server.start()?;
    let knobs = if cacheable { "" } else { "&n=1" };
    let mix = [
        "--workload",
        "polygraph",
        "--recurrence",
        "0.3",
        "--alpha",
        "0.6",
        "--sizes",
        "exp:5000",
        "--knobs",
        knobs,
    ];
    let closed = text(run.lengths.closed);
    let low = ["--connections", "10", "--requests", "2000", "--seed", "1"];
    let high = ["--connections", "100", "--duration", &closed, "--seed", "2"];
    let mut faults = 0.0;
    for (load, args) in [("low", &low), ("high", &high)] {
        sync();
        let before = run.host.device();
        let (report, memory) = watched(run, &server, &[&mix[..], args].concat())?;
        sync();
        let written = run.host.device().written.saturating_sub(before.written);
        row(name, load, &report, memory, written);
        faults += number(&report, &["errors"]).unwrap_or(1.0);
    }
    server.kill();
    if faults > 0.0 {
        return Err(format!("{name}: {faults} errors"));
    }
    Ok(())
}

/// Runs a load. Returns its report, and the greatest memory of the server during the load.
fn watched(run: &Run, server: &Server, args: &[&str]) -> Result<(Value, u64), String> {
    let (over, most) = (AtomicBool::new(false), AtomicU64::new(0));
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                most.fetch_max(server.resident(), Relaxed);
                pause(Duration::from_millis(200));
            }
        });
        let report = run.load(server, args);
        over.store(true, Relaxed);
        report
    })?;
    Ok((report, most.into_inner()))
}

fn row(name: &str, load: &str, report: &Value, memory: u64, written: u64) {
    let get = |path: &[&str]| number(report, path).unwrap_or(0.0);
    let groups = ["hits", "misses", "unknown"];
    let count = |group: &str| get(&[group, "count"]);
    let all: f64 = groups.iter().map(|g| count(g)).sum::<f64>().max(1.0);
    let mean: f64 = groups
        .iter()
        .map(|g| count(g) * get(&[g, "mean"]))
        .sum::<f64>()
        / all;
    let most = if count("misses") > count("unknown") {
        "misses"
    } else {
        "unknown"
    };
    println!(
        "| {name} | {load} | {:.0} | {:.2} | {:.2} / {:.2} | {:.0} | {:.0} | {:.3} | {:.0} | {:.1} |",
        get(&["rate"]),
        mean / 1000.0,
        get(&[most, "p50"]) / 1000.0,
        get(&[most, "p99"]) / 1000.0,
        get(&["cpu_us", "user"]),
        get(&["cpu_us", "system"]),
        get(&["origin_hit_ratio"]),
        memory as f64 / 1e6,
        written as f64 / 1000.0 / get(&["answers"]).max(1.0),
    );
}

/// Path of the proxy with a process for each request, in the same folder as Foxy.
pub(super) fn program(foxy: &Path) -> PathBuf {
    foxy.with_file_name("foxy-fork-proxy")
}
