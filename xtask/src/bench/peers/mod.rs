//! `cargo xtask bench peers`: compares Foxy and its peers in one table. Each proxy has one core.
//!
//! A row contains the results of one proxy in one scenario. Each row is saved as soon as it is measured, so
//! `--resume` can continue an interrupted run. All processes that the command starts end with it.

mod drive;
mod figures;
pub(crate) mod fork;
mod host;
mod lengths;
mod load;
mod results;
mod scenario;
mod servers;
mod table;
mod tools;
pub(crate) mod versions;

use std::path::{Path, PathBuf};

use foxy_base::{Clock, SystemClock};
use indicatif::{ProgressBar, ProgressStyle};

use crate::report::Outcome;
use crate::workspace::{released, root, target_folder};

use host::Host;
use lengths::Lengths;
use load::{Origin, Run};
use results::Results;
use scenario::{Job, SCENARIOS, Scenario};
use servers::{KINDS, Kind};

/// Options: measurements, and folders for them.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PeersArgs {
    /// Run only these scenarios: s1 to s7
    #[arg(long, value_delimiter = ',', value_name = "SCENARIO")]
    only: Vec<Scenario>,
    /// Measure only these rows, such as foxy,nginx
    #[arg(long, value_delimiter = ',', value_name = "PROXY")]
    proxies: Vec<Kind>,
    /// Run short measurements, to check that everything works; the results mean little
    #[arg(long)]
    quick: bool,
    /// Keep the rows of an interrupted run and measure only the missing rows
    #[arg(long)]
    resume: bool,
    /// Folder for stores; needs about 30 GB on the disk to be measured. Default: target
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Folder for tables and figures; default: target/bench/peers
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Foxy program to measure, with a `foxy-lab` in the same folder if there is one; default: a release
    /// build of this tree
    #[arg(long, value_name = "FILE")]
    foxy: Option<PathBuf>,
    /// Do not remove stores, configurations and logs of the servers
    #[arg(long)]
    keep: bool,
    /// Write the tables into docs/performance.md and the figures into its folder
    #[arg(long)]
    write_docs: bool,
    /// Measure nothing: print tables and figures from the existing rows
    #[arg(long)]
    print: bool,
}

/// Measures the requested rows and prints the tables.
pub(super) fn run(args: &PeersArgs) -> Result<Outcome, String> {
    let target = target_folder()?;
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| target.join("bench/peers"));
    let mut results = Results::open(&out, args.resume || args.print)?;
    let jobs = if args.print {
        Vec::new()
    } else {
        args.jobs(&results)
    };
    if !jobs.is_empty() {
        measure(args, &jobs, &mut results, &target)?;
    }
    let text = table::markdown(&results);
    println!("{text}");
    let path = out.join("table.md");
    std::fs::write(&path, &text).map_err(|e| format!("{}: {e}", path.display()))?;
    figures::save(&results, &out)?;
    println!("   {}: table.md, results.json, figures", out.display());
    if let Ok(previous) = Results::read(&out.join("previous.json")) {
        println!("{}", table::compare_order(&results, &previous));
    }
    if args.write_docs {
        table::write_docs(&text)?;
        figures::save(&results, &root().join("docs/figures"))?;
    }
    Ok(judge(&results))
}

fn judge(results: &Results) -> Outcome {
    let mut outcome = Outcome::default();
    for row in &results.rows {
        let name = format!("{} {}", row.scenario, row.proxy);
        outcome.note(match row.problems.as_slice() {
            [] => Ok(()),
            problems => Err(format!("{name}: {}", problems.join("; "))),
        });
    }
    outcome
}

impl PeersArgs {
    fn jobs(&self, results: &Results) -> Vec<Job> {
        let all = |some: &[Scenario]| {
            if some.is_empty() {
                SCENARIOS.to_vec()
            } else {
                some.to_vec()
            }
        };
        let kinds = if self.proxies.is_empty() {
            KINDS.to_vec()
        } else {
            self.proxies.clone()
        };
        let mut jobs = scenario::jobs(&all(&self.only), &kinds);
        for job in &mut jobs {
            job.scenarios.retain(|s| !results.has(s.name(), job.kind));
        }
        jobs.retain(|job| !job.scenarios.is_empty());
        jobs
    }
}

fn measure(
    args: &PeersArgs,
    jobs: &[Job],
    results: &mut Results,
    target: &Path,
) -> Result<(), String> {
    let mut kinds: Vec<_> = jobs.iter().map(|job| job.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    tools::ensure(&kinds)?;
    let programs = released(args.foxy.as_deref())?;
    let host = Host::new(args.dir.as_deref().unwrap_or(target), args.keep)?;
    let origin = Origin::start(&host, &programs.lab)?;
    let lengths = if args.quick {
        Lengths::QUICK
    } else {
        Lengths::FULL
    };
    results.about = table::about(&host, &kinds, args.quick);
    let run = Run {
        host,
        programs,
        lengths,
        origin,
    };
    let clock = SystemClock::default();
    let begun = clock.mono();
    go(&run, jobs, results)?;
    let seconds = clock.mono().since(begun).as_secs();
    results.about.insert(
        "took".into(),
        format!("{} min {} s", seconds / 60, seconds % 60),
    );
    results.save()
}

fn go(run: &Run, jobs: &[Job], results: &mut Results) -> Result<(), String> {
    let bar = ProgressBar::new(jobs.len() as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} [{elapsed}, {eta} left]");
    bar.set_style(style.map_err(|e| e.to_string())?);
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    for job in jobs {
        let names: Vec<_> = job.scenarios.iter().map(|s| s.name()).collect();
        bar.set_message(format!("{} {}", names.join("+"), job.kind));
        let mut missing = job.scenarios.clone();
        let mut keep = |row: results::Row| {
            missing.retain(|s| s.name() != row.scenario);
            bar.suspend(|| println!("   {}", table::line(&row)));
            results.keep(row)
        };
        // If one proxy fails, the rows of the other proxies must still be measured.
        if let Err(problem) = scenario::run(run, job, &mut keep) {
            for scenario in missing {
                let mut row = results::Row::new(scenario.name(), job.kind);
                row.problems.push(problem.clone());
                bar.suspend(|| println!("   {} {}: FAILED: {problem}", scenario.name(), job.kind));
                results.keep(row)?;
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}
