//! Runs steps one after the other, prints the result and the duration of each step, and counts passed and
//! failed checks.

use std::process::ExitCode;
use std::time::Duration;

use foxy_base::{Clock, SystemClock};

/// Result of one step: the number of passed checks, and the complaints of the failed checks.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Number of passed checks.
    pub(crate) passed: usize,
    /// One message for each failed check. The message describes the problem and how to mend it.
    pub(crate) complaints: Vec<String>,
}

impl Outcome {
    /// Outcome of one check, which passes or fails with a message.
    pub(crate) fn single(result: Result<(), String>) -> Self {
        let mut outcome = Self::default();
        outcome.note(result);
        outcome
    }

    /// Counts the result of one more check.
    pub(crate) fn note(&mut self, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(complaint) => self.complaints.push(complaint),
        }
    }

    /// Adds the checks of another outcome.
    pub(crate) fn join(&mut self, other: Self) {
        self.passed += other.passed;
        self.complaints.extend(other.complaints);
    }
}

/// The steps so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    clock: SystemClock,
    lines: Vec<Line>,
    complaints: Vec<String>,
}

#[derive(Debug)]
struct Line {
    name: &'static str,
    passed: usize,
    failed: usize,
    took: Duration,
}

impl Report {
    /// Runs one step, and prints its result as soon as the step has ended.
    pub(crate) fn step(&mut self, name: &'static str, run: impl FnOnce() -> Outcome) {
        println!("== {name}");
        let start = self.clock.mono();
        let outcome = run();
        let took = self.clock.mono().since(start);
        for complaint in &outcome.complaints {
            println!("   FAILED: {}", complaint.replace('\n', "\n           "));
        }
        let line = self.note(name, outcome, took);
        println!("{line}");
    }

    /// Adds a step that has already run, for example in parallel. Returns the usual line about a step.
    pub(crate) fn note(&mut self, name: &'static str, outcome: Outcome, took: Duration) -> String {
        let line = Line {
            name,
            passed: outcome.passed,
            failed: outcome.complaints.len(),
            took,
        };
        let text = line.text();
        self.lines.push(line);
        self.complaints.extend(outcome.complaints);
        text
    }

    /// Prints the summary. The exit code is 0 if all checks passed.
    pub(crate) fn finish(self) -> ExitCode {
        let passed: usize = self.lines.iter().map(|line| line.passed).sum();
        let failed: usize = self.lines.iter().map(|line| line.failed).sum();
        if self.lines.len() > 1 {
            println!("\n== summary");
            self.lines
                .iter()
                .for_each(|line| println!("{}", line.text()));
            for complaint in &self.complaints {
                println!("FAILED: {}", complaint.lines().next().unwrap_or_default());
            }
        }
        println!("{passed} passed, {failed} failed");
        if failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

impl Line {
    fn text(&self) -> String {
        let mark = if self.failed == 0 { "ok" } else { "FAILED" };
        format!(
            "   {:<22} {mark:<6} {:>5} passed {:>3} failed  {:>6.1} s",
            self.name,
            self.passed,
            self.failed,
            self.took.as_secs_f64()
        )
    }
}
