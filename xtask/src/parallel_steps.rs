//! Steps of `check` that run in parallel with the conformance suite and with the tests that start programs.
//! The suite and these tests mostly wait for sockets and timers, so the steps (unit tests and compilers) can
//! use the cores. The steps have a low priority, so that they do not slow down the tests.

use std::io::{self, Read, Seek};
use std::process::{Command, Stdio};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use foxy_base::{Clock, SystemClock};

use crate::report::{Outcome, Report};
use crate::workspace::line;

/// A step: its name in the report, and arguments of `cargo xtask`.
type Step = (&'static str, &'static [&'static str]);

/// Sequences of steps, each with its priority (an argument of `nice`). The sequences run in parallel, and the
/// steps of a sequence one after the other. Compilers have a lower priority than tests, because tests contain
/// timeouts. Lints and documentation hold cargo's lock of the target folder for minutes. The model checks have
/// their own target folder, so they come first: during them, the other commands take the lock and start their
/// tests.
const SEQUENCES: [(&str, &[Step]); 2] = [
    ("10", &[("unit tests", &["test", "--part", "units"])]),
    (
        "19",
        &[
            ("model checks", &["models"]),
            ("lints", &["clippy"]),
            ("documentation", &["doc"]),
        ],
    ),
];

/// A thread for each sequence; no thread before the start.
#[derive(Debug, Default)]
pub(crate) struct ParallelSteps(Vec<JoinHandle<Vec<Ended>>>);

#[derive(Debug)]
struct Ended {
    name: &'static str,
    output: String,
    outcome: Outcome,
    took: Duration,
}

impl ParallelSteps {
    /// Starts the steps. Their output is kept. If `long` is true, the tests use many more seeds.
    pub(crate) fn start(&mut self, long: bool) {
        let started = SEQUENCES.map(|(nice, steps)| {
            spawn(move || steps.iter().map(|&step| run(step, nice, long)).collect())
        });
        self.0 = started.into();
    }

    /// Waits until the steps have ended and shows their output. If they were not started before, starts them.
    pub(crate) fn report(mut self, report: &mut Report, long: bool) {
        if self.0.is_empty() {
            self.start(long);
        }
        for thread in self.0 {
            match thread.join() {
                Ok(all) => all.into_iter().for_each(|ended| {
                    print!("{}", ended.output);
                    report.note(ended.name, ended.outcome, ended.took);
                }),
                Err(_) => report.step("parallel steps", || {
                    Outcome::single(Err("a thread of the parallel steps died".to_owned()))
                }),
            }
        }
    }
}

fn run((name, step): Step, nice: &str, long: bool) -> Ended {
    let clock = SystemClock::default();
    let start = clock.mono();
    let mut command = Command::new("nice");
    command.args(["-n", nice]);
    let program = std::env::current_exe().unwrap_or_else(|_| "xtask".into());
    command.arg(program).args(step).stdin(Stdio::null());
    if long && step.contains(&"test") {
        command.arg("--long");
    }
    let (output, outcome) = match printed(&mut command) {
        Ok((output, success)) => outcome(&output, success, &step.join(" ")),
        Err(error) => {
            let text = format!("{} did not run: {error}", line(&command));
            (String::new(), Outcome::single(Err(text)))
        }
    };
    let took = clock.mono().since(start);
    Ended {
        name,
        output,
        outcome,
        took,
    }
}

/// Runs the command. Returns its standard output and standard error as one text, in the order in which they
/// were written, and true if the command succeeded.
fn printed(command: &mut Command) -> io::Result<(String, bool)> {
    let mut file = tempfile::tempfile()?;
    command.stdout(file.try_clone()?).stderr(file.try_clone()?);
    let status = command.status()?;
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok((
        String::from_utf8_lossy(&bytes).into_owned(),
        status.success(),
    ))
}

/// Splits the output of a step. Returns the output without the summary in its last line, and the outcome.
fn outcome(output: &str, success: bool, step: &str) -> (String, Outcome) {
    let (shown, sum) = match output.trim_end().rsplit_once('\n') {
        Some((shown, sum)) => (format!("{shown}\n"), sum),
        None => (String::new(), output),
    };
    let passed = sum.split_once(" passed, ");
    let passed = passed.and_then(|(passed, _)| passed.parse().ok());
    let failed = shown
        .lines()
        .filter_map(|line| line.strip_prefix("   FAILED: "));
    let mut complaints: Vec<String> = failed.map(str::to_owned).collect();
    if (!success || passed.is_none()) && complaints.is_empty() {
        complaints.push(format!("`cargo xtask {step}` failed: {sum}"));
    }
    let passed = passed.unwrap_or(0);
    (shown, Outcome { passed, complaints })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_is_read_from_what_a_step_prints() {
        let (shown, good) = outcome(
            "== lints\n   lints  ok\n2 passed, 0 failed\n",
            true,
            "clippy",
        );
        assert_eq!((good.passed, good.complaints.len()), (2, 0));
        assert_eq!(shown, "== lints\n   lints  ok\n");
        let text = "== lints\n   FAILED: cargo clippy (exit 101)\n1 passed, 1 failed\n";
        let (_, bad) = outcome(text, false, "clippy");
        assert_eq!(bad.complaints, ["cargo clippy (exit 101)"]);
        assert_eq!(outcome("killed", false, "doc").1.complaints.len(), 1);
        assert_eq!(outcome("", true, "doc").1.complaints.len(), 1, "no result");
    }
}
