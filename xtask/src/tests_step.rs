//! Runs the tests with plain `cargo test`, shows failures whole and passes as numbers.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::report::Outcome;
use crate::tools;
use crate::workspace::{cargo, line, succeed};

/// Scope of a test run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Unit tests in the libraries and binaries.
    Fast,
    /// Everything.
    Normal,
    /// Everything, randomised tests with many more seeds.
    Long,
}

impl Scope {
    /// Normal, or long if asked for.
    pub(crate) fn of(long: bool) -> Self {
        if long { Self::Long } else { Self::Normal }
    }
}

/// Runs all tests of the workspace; a failing test program does not stop the others. `compiled` is
/// called when the test programs are there. The programs that tests drive are installed meanwhile:
/// that waits for a network, and the compiler does not.
pub(crate) fn run(scope: Scope, compiled: impl FnOnce()) -> Outcome {
    let tools = (scope != Scope::Fast).then(|| std::thread::spawn(tools::ensure));
    let built = succeed(
        &mut test(scope, &["--no-run"]),
        "the messages above name file and line",
    );
    let tools = tools.map(|tools| tools.join().unwrap_or(false));
    if built.is_err() {
        return Outcome::single(built);
    }
    compiled();
    let mut command = test(scope, &["--no-fail-fast"]);
    if tools == Some(true) {
        // From here on a client that cannot be started is a failure.
        command.env("FOXY_CLIENTS", "required");
    }
    if scope == Scope::Long {
        command.env("FOXY_LONG", "1");
    }
    // Most tests of the proxy wait for a socket or a timer, not for a core.
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        command.env("RUST_TEST_THREADS", (2 * cores).to_string());
    }
    tallied(command)
}

/// `cargo test` for a scope.
fn test(scope: Scope, options: &[&str]) -> Command {
    let programs: &[&str] = match scope {
        Scope::Fast => &["--lib", "--bins"],
        Scope::Normal | Scope::Long => &[],
    };
    cargo(&[&["test", "--workspace"], programs, options].concat())
}

/// Every interleaving of small scenarios in the index's concurrent core. In a target folder of its
/// own, since all of it is compiled otherwise.
pub(crate) fn models() -> Outcome {
    let mut command = cargo(&["test", "-p", "foxy-index", "--lib", "--release"]);
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

/// Reads what `cargo test` prints.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
    ignored: usize,
}

impl Tally {
    /// One line: counted if it is a test's result, shown unless it is of no interest.
    fn take(&mut self, text: &str) {
        if let Some((name, result)) = text
            .strip_prefix("test ")
            .and_then(|rest| rest.split_once(" ... "))
        {
            match result {
                "ok" => self.passed += 1,
                result if result.starts_with("ignored") => self.ignored += 1,
                result if result.starts_with("FAILED") => self.failed.push(name.to_owned()),
                // Something else was printed into the line; the summary line counts it.
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
