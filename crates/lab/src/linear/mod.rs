//! The linearizability load. A real Foxy runs between an origin and clients that read, change and purge. Foxy
//! is killed repeatedly. This program knows every version of every resource that the origin has made.
//!
//! Each answer is checked against four rules. The bytes of the answer belong to one version. This version is
//! not older than the version of a change that was acknowledged before the request began. The version is also
//! not older than a version that another request had received completely before this request began. If the
//! answer must be validated at each use, the version is not older than the origin's version at the beginning
//! of the request.

mod actors;
mod buffered_conn;
mod origin;
mod process;
mod record;
mod world;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use clap::Args;
use foxy_base::Rng;

use self::actors::{Counts, RunState, purger, reader, writer};
use self::process::Foxy;
use self::record::Violation;
use self::world::{Life, World, lock};

const READERS: u64 = 24;
const WRITERS: u64 = 2;
const PURGERS: u64 = 2;
/// Greatest number of violations whose histories are printed.
const PRINTED: usize = 5;

/// Check every answer of Foxy against an oracle that knows all versions, while Foxy is killed repeatedly.
#[derive(Args, Clone, Debug)]
pub struct Linear {
    /// Duration of the load.
    #[arg(long, default_value_t = 30)]
    pub seconds: u64,
    /// Seed of all random decisions; the interleaving also depends on the machine.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of times that Foxy is killed and restarted.
    #[arg(long, default_value_t = 2)]
    pub kills: u64,
    /// Number of URLs whose contents change.
    #[arg(long, default_value_t = 24)]
    pub urls: u64,
    /// Foxy program to run [default: the `foxy` in the folder of this program]
    #[arg(long)]
    pub foxy: Option<PathBuf>,
}

/// Result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of violations of each rule.
    pub broken: BTreeMap<&'static str, u64>,
    /// Some of the histories with violations, as text.
    pub histories: Vec<String>,
    /// One line of text with numbers.
    pub summary: String,
}

impl Report {
    fn add(&mut self, url: &str, violation: &Violation) {
        *self.broken.entry(violation.rule).or_default() += 1;
        if self.histories.len() < PRINTED {
            let Violation { rule, text } = violation;
            self.histories.push(format!("{rule}: {url}: {text}"));
        }
    }
}

impl Linear {
    /// Runs the load. The exit code is 1 if a rule was broken, and 2 if the load could not be run.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        match self.load() {
            Ok(report) => {
                for history in &report.histories {
                    println!("{history}\n");
                }
                println!("{}", report.summary);
                match report.broken.is_empty() {
                    true => ExitCode::SUCCESS,
                    false => {
                        println!("broken: {:?}", report.broken);
                        ExitCode::from(1)
                    }
                }
            }
            Err(problem) => {
                eprintln!("{problem}");
                ExitCode::from(2)
            }
        }
    }

    /// Runs the load.
    ///
    /// # Errors
    /// An error if Foxy does not start, or if it ends by itself.
    pub fn load(&self) -> Result<Report, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("no scratch folder: {error}"))?;
        let (listener, port) = origin::bind().map_err(|error| format!("no origin: {error}"))?;
        let world = Arc::new(World::new(self.urls.max(6), port));
        origin::serve(listener, Arc::clone(&world), self.seed);
        let beside = || {
            let own = std::env::current_exe().unwrap_or_default();
            own.with_file_name("foxy")
        };
        let program = self.foxy.clone().unwrap_or_else(beside);
        let state = RunState {
            world,
            foxy: Foxy::start(&program, folder.path())?,
            counts: Counts::default(),
            wrong: Mutex::default(),
            over: AtomicBool::new(false),
        };
        let ended = thread::scope(|scope| {
            let rng = |kind: u64, number: u64| Rng::new(self.seed ^ kind << 50 ^ number << 40);
            let state = &state;
            for number in 0..READERS {
                scope.spawn(move || reader(state, rng(1, number)));
            }
            for number in 0..WRITERS {
                scope.spawn(move || writer(state, rng(2, number)));
            }
            for number in 0..PURGERS {
                scope.spawn(move || purger(state, rng(3, number)));
            }
            let ended = self.direct(state);
            state.over.store(true, Ordering::SeqCst);
            ended
        });
        state.foxy.kill();
        ended?;
        Ok(report(&state))
    }

    /// Kills Foxy at regular times until the end of the load.
    fn direct(&self, state: &RunState) -> Result<(), String> {
        let elapsed = || Duration::from_micros(state.world.time());
        let (began, whole) = (elapsed(), Duration::from_secs(self.seconds));
        let between = whole / u32::try_from(self.kills + 1).unwrap_or(u32::MAX);
        let mut next = began + between;
        let mut left = self.kills;
        while elapsed() < began + whole {
            thread::sleep(Duration::from_millis(50));
            if let Some(ended) = state.foxy.has_ended() {
                return Err(ended);
            }
            if left > 0 && elapsed() > next {
                state.foxy.kill_and_start()?;
                left -= 1;
                next += between;
            }
        }
        Ok(())
    }
}

fn report(state: &RunState) -> Report {
    let mut report = Report::default();
    for violation in lock(&state.wrong).iter() {
        report.add("at once", violation);
    }
    let mut judged = 0;
    for resource in &state.world.resources {
        let record = lock(&resource.record);
        judged += record.answers();
        for violation in record.check(resource.life == Life::Validated) {
            report.add(&resource.url(), &violation);
        }
    }
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let Counts {
        answers,
        hits,
        errors,
        cut,
        changes,
        purges,
        refused,
    } = &state.counts;
    report.summary = format!(
        "{} answers, {judged} judged, {} hits, {} errors, {} cut off; {} changes, {} purges, {} refused",
        get(answers),
        get(hits),
        get(errors),
        get(cut),
        get(changes),
        get(purges),
        get(refused),
    );
    report
}
