//! Test programs that contain all mutants.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use cargo_metadata::Message;
use foxy_base::{Clock, SystemClock};

use crate::workspace::cargo;

/// A broken rule may make a test wait forever. So a test without a result after this time counts as failed.
const HANGS: Duration = Duration::from_secs(180);
/// Longest duration of a quick test. A slower test is run only when no quick test fails for the broken rule.
const QUICK: Duration = Duration::from_millis(700);

/// A test program of a package.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) package: String,
    path: PathBuf,
    folder: PathBuf,
    /// The tests of the program, and the duration of each test. They are determined at the first use.
    tests: OnceLock<BTreeMap<String, Duration>>,
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Every test passed.
    Passed,
    /// This test failed, or did not end.
    Failed(String),
}

/// Packages of which only the library's tests and the listed test programs are run. The other test programs
/// of these packages do not test rules.
const CHOSEN: &[(&str, &[&str])] = &[("foxy-proxy", &["it"])];

/// Builds the test programs of these packages with all mutants.
///
/// # Errors
/// Returned if a program does not compile.
pub(crate) fn build(packages: impl Iterator<Item = &'static str>) -> Result<Vec<Program>, String> {
    let mut names: Vec<_> = packages.collect();
    names.sort_unstable();
    names.dedup();
    let built = names.into_iter().map(build_one);
    Ok(built.collect::<Result<Vec<_>, _>>()?.concat())
}

fn build_one(name: &'static str) -> Result<Vec<Program>, String> {
    let mut command = cargo(&[
        "test",
        "--no-run",
        "--message-format",
        "json-render-diagnostics",
    ]);
    command.args(["--features", "foxy-base/mutants", "-p", name, "--lib"]);
    match CHOSEN.iter().find(|(of, _)| *of == name) {
        None => command.arg("--tests"),
        Some((_, tests)) => command.args(tests.iter().flat_map(|test| ["--test", test])),
    };
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cargo did not start: {error}"))?;
    let out = child.stdout.take().ok_or("cargo has no output")?;
    let mut programs = Vec::new();
    for message in Message::parse_stream(BufReader::new(out)).map_while(Result::ok) {
        let Message::CompilerArtifact(built) = message else {
            continue;
        };
        let Some(path) = built.executable else {
            continue;
        };
        let folder = built.manifest_path.parent().map(|f| f.as_std_path());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        if built.profile.test && format!("foxy-{}", last(&folder)) == name {
            programs.push(Program {
                package: name.to_owned(),
                path: path.into_std_path_buf(),
                folder,
                tests: OnceLock::new(),
            });
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(programs),
        _ => Err("the tests do not compile with the feature `mutants` of foxy-base".to_owned()),
    }
}

fn last(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl Program {
    /// Path of the notes, a file beside the program. [`Program::note`] writes the program's tests and their
    /// durations to it.
    fn notes(&self) -> PathBuf {
        self.path.with_extension("times")
    }

    fn noted(&self) -> Option<BTreeMap<String, Duration>> {
        let changed = |path: &PathBuf| path.metadata().and_then(|m| m.modified()).ok();
        let (built, noted) = (changed(&self.path)?, changed(&self.notes())?);
        let text = std::fs::read_to_string(self.notes()).ok()?;
        let tests = text.lines().map(|line| {
            let (micros, name) = line.split_once(' ')?;
            let took = Duration::from_micros(micros.parse().ok()?);
            Some((name.to_owned(), took))
        });
        tests.collect::<Option<_>>().filter(|_| noted >= built)
    }

    /// Writes the notes. An error is ignored, because it only makes the next call slower.
    fn note(&self, tests: &BTreeMap<String, Duration>) {
        let lines = tests
            .iter()
            .map(|(name, took)| format!("{} {name}\n", took.as_micros()));
        let _ = std::fs::write(self.notes(), lines.collect::<String>());
    }

    /// Name of the package without `foxy-`.
    pub(crate) fn short(&self) -> &str {
        self.package.trim_start_matches("foxy-")
    }

    /// Every test and its duration. If the program fails although no rule is broken, the list is empty.
    fn times(&self) -> &BTreeMap<String, Duration> {
        self.tests.get_or_init(|| {
            if let Some(tests) = self.noted() {
                return tests;
            }
            let clock = SystemClock::default();
            let mut began = clock.mono();
            let mut tests = BTreeMap::new();
            let end = self.watch("", &[], |test| {
                let now = clock.mono();
                tests.insert(test.to_owned(), now.since(began));
                began = now;
            });
            match end {
                End::Passed => self.note(&tests),
                End::Failed(test) => {
                    println!("   {test} of {} fails as it is", self.package);
                    tests.clear();
                }
            }
            tests
        })
    }

    /// Returns the quick tests, or the other tests.
    pub(crate) fn tests(&self, quick: bool) -> Vec<String> {
        let tests = self.times().iter();
        let wanted = tests.filter(|(_, took)| (**took <= QUICK) == quick);
        wanted.map(|(name, _)| name.clone()).collect()
    }

    /// Runs these tests while this rule is broken. Stops at the first test that fails.
    pub(crate) fn run(&self, rule: &str, tests: &[String]) -> End {
        match tests {
            [] => End::Passed,
            tests => self.watch(rule, tests, |_| {}),
        }
    }

    /// Runs these tests one by one; an empty list means all tests. `passed` is called for each test that
    /// passes.
    fn watch(&self, rule: &str, tests: &[String], mut passed: impl FnMut(&str)) -> End {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).env("FOXY_MUTANT", rule);
        command
            .env_remove("FOXY_LONG")
            .args(["--test-threads", "1"]);
        if !tests.is_empty() {
            command.arg("--exact").args(tests);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else {
            return End::Failed("the program".to_owned());
        };
        let output = output(&mut child);
        let mut text = String::new();
        let end = loop {
            let Ok(more) = output.recv_timeout(HANGS) else {
                break None;
            };
            if more.is_empty() {
                break child.wait().ok().filter(std::process::ExitStatus::success);
            }
            text.push_str(&more);
            if let Some(failed) = take_lines(&mut text, &mut passed) {
                stop(&mut child);
                return End::Failed(failed);
            }
        };
        stop(&mut child);
        match end {
            Some(_) => End::Passed,
            // The program hangs or was killed during the test whose name it printed last.
            None => End::Failed(running(&text).unwrap_or("the program").to_owned()),
        }
    }
}

fn stop(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns a channel that gets the output of a child as it arrives. An empty text marks the end.
fn output(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    let out = child.stdout.take();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        let mut out = out;
        loop {
            let read = out.as_mut().and_then(|out| out.read(&mut bytes).ok());
            let read = read.unwrap_or(0);
            let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
            if sender.send(text).is_err() || read == 0 {
                return;
            }
        }
    });
    receiver
}

/// Removes complete lines from `text`. Returns the first test that failed.
fn take_lines(text: &mut String, passed: &mut impl FnMut(&str)) -> Option<String> {
    while let Some((line, rest)) = text.split_once('\n') {
        let result = line
            .strip_prefix("test ")
            .and_then(|line| line.split_once(" ... "));
        match result {
            Some((name, "ok")) => passed(plain(name)),
            Some((name, result)) if result.starts_with("FAILED") => {
                return Some(plain(name).to_owned());
            }
            _ => {}
        }
        *text = rest.to_owned();
    }
    None
}

/// The test that is still running: its line in the output is incomplete.
fn running(text: &str) -> Option<&str> {
    let line = text.lines().next_back()?.strip_prefix("test ")?;
    Some(plain(line.split(" ...").next()?))
}

fn plain(name: &str) -> &str {
    name.trim_end_matches(" - should panic")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_found_in_pieces_of_output() {
        let mut passed = Vec::new();
        let mut text = "running 3 tests\ntest a ... ok\ntest b ... ".to_owned();
        assert_eq!(
            take_lines(&mut text, &mut |t| passed.push(t.to_owned())),
            None
        );
        assert_eq!(running(&text), Some("b"));
        text.push_str("FAILED\ntest c ... ok\n");
        let failed = take_lines(&mut text, &mut |t| passed.push(t.to_owned()));
        assert_eq!(
            (failed.as_deref(), &passed[..]),
            (Some("b"), &["a".to_owned()][..])
        );
    }
}
