//! Runs the tests with plain `cargo test`. Shows the complete output of failures, and only the number of
//! passed tests.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::report::Outcome;
use crate::tools;
use crate::workspace::{cargo, line, metadata, succeed};

/// Name of the integration tests that start servers, clients and programs. They mostly wait and use little
/// processor time.
const PROGRAMS: &str = "it";

/// A part of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Integration tests named `it`: whole servers, real clients
    Programs,
    /// All other tests: unit tests, other integration tests, examples in the documentation
    Units,
}

/// The simulated runs (histories) of the whole-system simulation in [`fast`]. They are half of the runs of
/// the complete check.
const FAST_HISTORIES: &str = "0..120";

/// Runs only the unit tests in the libraries and programs, with fewer runs of the whole-system simulation.
pub(crate) fn fast() -> Outcome {
    let mut tests = tests(&["--lib", "--bins"], false);
    if std::env::var_os("FOXY_SEED").is_none() {
        tests.env("FOXY_SEED", FAST_HISTORIES);
    }
    tallied(tests)
}

/// Runs all tests of a part, or of both parts. If `long` is true, randomised tests use many more seeds. Calls
/// `compiled` when all test programs of both parts are built. During the build, missing programs that the
/// tests need are installed: the installation mostly waits for the network, while the compiler uses the
/// cores.
pub(crate) fn run(part: Option<Part>, long: bool, compiled: impl FnOnce()) -> Outcome {
    let tools = (part != Some(Part::Units)).then(|| std::thread::spawn(tools::ensure));
    let built = succeed(
        &mut cargo(&[
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--no-run",
        ]),
        "the messages above name file and line",
    );
    let tools = tools.map(|tools| tools.join().unwrap_or(false));
    if built.is_err() {
        return Outcome::single(built);
    }
    compiled();
    let mut outcome = Outcome::default();
    if part != Some(Part::Units) {
        let mut programs = tests(&["--test", PROGRAMS], long);
        if tools == Some(true) {
            // With this setting, a test fails if its client program cannot be started.
            programs.env("FOXY_CLIENTS", "required");
        }
        outcome.join(tallied(programs));
    }
    if part != Some(Part::Programs) {
        outcome.join(units(long));
    }
    outcome
}

fn units(long: bool) -> Outcome {
    let others = match other_targets() {
        Ok(others) => others,
        Err(complaint) => return Outcome::single(Err(complaint)),
    };
    let others = others.iter().flat_map(|name| ["--test", name]);
    let targets: Vec<_> = ["--lib", "--bins"].into_iter().chain(others).collect();
    let mut outcome = tallied(tests(&targets, long));
    outcome.join(tallied(tests(&["--doc"], long)));
    outcome
}

/// Names of the integration tests that are not [`PROGRAMS`].
fn other_targets() -> Result<BTreeSet<String>, String> {
    let packages = metadata()?.packages;
    let targets = packages.iter().flat_map(|package| &package.targets);
    let others = targets.filter(|target| target.is_test() && target.name != PROGRAMS);
    Ok(others.map(|target| target.name.clone()).collect())
}

/// A `cargo test` command for these targets of the whole workspace.
fn tests(targets: &[&str], long: bool) -> Command {
    let mut command = cargo(&[&["test", "--workspace", "--no-fail-fast"], targets].concat());
    if long {
        command.env("FOXY_LONG", "1");
    }
    // More test threads than cores are used, because most tests of the proxy wait for a socket or a timer,
    // not for a core.
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        command.env("RUST_TEST_THREADS", (2 * cores).to_string());
    }
    command
}

/// Runs the model checks (loom): small scenarios of the concurrent core of the index, with every order of the
/// threads' steps that has at most three preemptions. The build uses a separate target folder, because all
/// crates are compiled with settings that no other test uses.
pub(crate) fn models() -> Outcome {
    let mut command = cargo(&["test", "-p", "foxy-index", "--lib"]);
    command.args(["--target-dir", "target/loom"]);
    command.env("RUSTFLAGS", "--cfg loom");
    tallied(command)
}

fn tallied(mut command: Command) -> Outcome {
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return Outcome::single(Err(format!("cargo did not start: {error}"))),
    };
    let mut tally = Tally::default();
    if let Some(out) = child.stdout.take() {
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        lines.for_each(|text| tally.take(&text));
    }
    match child.wait() {
        Ok(status) => tally.outcome(status.success(), &line(&command)),
        Err(error) => Outcome::single(Err(format!("cargo test was lost: {error}"))),
    }
}

/// Counts the results in the output of `cargo test`.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
    ignored: usize,
}

impl Tally {
    /// Handles one line. A test's result is counted. Other lines are shown if they are relevant.
    fn take(&mut self, text: &str) {
        if let Some((name, result)) = text
            .strip_prefix("test ")
            .and_then(|rest| rest.split_once(" ... "))
        {
            match result {
                "ok" => self.passed += 1,
                result if result.starts_with("ignored") => self.ignored += 1,
                result if result.starts_with("FAILED") => self.failed.push(name.to_owned()),
                // The test has printed text, so the line contains this text in place of the result. The
                // summary line counts the test.
                _ => {}
            }
            if result == "ok" {
                return;
            }
        }
        if !text.is_empty() && !text.starts_with("running ") {
            println!("   {text}");
        }
    }

    fn outcome(self, success: bool, command: &str) -> Outcome {
        let mut outcome = Outcome {
            passed: self.passed,
            complaints: Vec::new(),
        };
        for name in &self.failed {
            outcome
                .complaints
                .push(format!("test {name}; its output is above"));
        }
        if self.ignored > 0 {
            outcome.complaints.push(format!(
                "{} tests are ignored; mend or delete them, an ignored test rots",
                self.ignored
            ));
        }
        if !success && outcome.complaints.is_empty() {
            outcome.complaints.push(format!(
                "{command} failed outside a test (did it compile?); its output is above"
            ));
        }
        if self.passed == 0 {
            outcome.complaints.push("no test ran".to_owned());
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str], success: bool) -> Outcome {
        let mut tally = Tally::default();
        lines.iter().for_each(|text| tally.take(text));
        tally.outcome(success, "cargo test")
    }

    /// An integration test that belongs to neither part would never run.
    #[test]
    fn every_integration_test_belongs_to_a_part() {
        let others = other_targets().unwrap();
        assert!(others.contains("allocations") && !others.contains(PROGRAMS));
        let all = metadata().unwrap().packages;
        let all = all.iter().flat_map(|package| &package.targets);
        let mut tests = all.filter(|target| target.is_test());
        assert!(tests.all(|target| target.name == PROGRAMS || others.contains(&target.name)));
    }

    #[test]
    fn counts_passes_and_names_failures() {
        let outcome = tally(
            &["running 2 tests", "test a ... ok", "test b::c ... FAILED"],
            false,
        );
        assert_eq!(outcome.passed, 1);
        assert_eq!(outcome.complaints, ["test b::c; its output is above"]);
    }

    #[test]
    fn compile_errors_and_ignored_tests_do_not_pass() {
        assert_eq!(tally(&["test a ... ok"], false).complaints.len(), 1);
        assert_eq!(
            tally(&["test a ... ok", "test b ... ignored"], true)
                .complaints
                .len(),
            1
        );
        assert_eq!(tally(&[], true).complaints, ["no test ran"]);
    }
}
