//! Steps of `check` that run in parallel with the conformance suite and with the tests that start programs.
//! The suite and these tests mostly wait for sockets and timers, so the steps (unit tests and compilers) can
//! use the cores. The steps have the lowest priority, so that they do not slow down the tests.

use std::io::{self, Read, Seek};
use std::process::{Command, Stdio};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use foxy_base::{Clock, SystemClock};

use crate::report::{Outcome, Report};
use crate::workspace::line;

/// The steps in the order in which they run: name in the report, and arguments of `cargo xtask`.
const STEPS: [(&str, &[&str]); 4] = [
    ("unit tests", &["test", "--part", "units"]),
    ("lints", &["clippy"]),
    ("documentation", &["doc"]),
    ("model checks", &["models"]),
];

/// The thread that runs the steps; `None` before the start.
#[derive(Debug, Default)]
pub(crate) struct ParallelSteps(Option<JoinHandle<Vec<Ended>>>);

#[derive(Debug)]
struct Ended {
    name: &'static str,
    output: String,
    outcome: Outcome,
    took: Duration,
}

impl ParallelSteps {
    /// Starts the steps, which run one after the other. Their output is kept. If `long` is true, the tests
    /// use many more seeds.
    pub(crate) fn start(&mut self, long: bool) {
        self.0 = Some(spawn(move || STEPS.map(|step| run(step, long)).into()));
    }

    /// Waits until the steps have ended and shows their output. If they were not started before, starts them.
    pub(crate) fn report(mut self, report: &mut Report, long: bool) {
        if self.0.is_none() {
            self.start(long);
        }
        match self.0.map(JoinHandle::join) {
            Some(Ok(all)) => all.into_iter().for_each(|ended| {
                print!("{}", ended.output);
                report.note(ended.name, ended.outcome, ended.took);
            }),
            _ => report.step("lints", || {
                Outcome::single(Err("the thread of the parallel steps died".to_owned()))
            }),
        }
    }
}

fn run((name, step): (&'static str, &[&str]), long: bool) -> Ended {
    let clock = SystemClock::default();
    let start = clock.mono();
    let mut command = Command::new("nice");
    command.args(["-n", "19"]);
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
