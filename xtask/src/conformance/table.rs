//! The pinned table of verdicts. It maps each test of the suite to `pass`, or to `fail: ` and the reason.
//! Tests that only show a property of the cache have `yes` or `no`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;

use super::servers::Mode;
use crate::report::Outcome;

const KINDS: [&str; 3] = ["required", "optimal", "check"];
const INTRODUCTION: &str = "\
# What Foxy makes of each test: `pass`, or `fail: why`. Tests of the kind `check` are no score,
# they say `yes` or `no`. `cargo xtask conformance` fails on any difference; with `--update` it
# writes this file anew and keeps the reasons.
";

/// The results of one run of the suite: a verdict for each test.
#[derive(Debug, Default)]
pub(super) struct Verdicts(BTreeMap<String, Verdict>);

#[derive(Debug, Deserialize)]
struct Verdict {
    kind: String,
    holds: bool,
    why: String,
}

impl Verdicts {
    #[cfg(test)]
    pub(super) fn of(all: &[(&str, &str, bool)]) -> Self {
        let one = |(test, kind, holds): &(&str, &str, bool)| {
            let (kind, why) = ((*kind).to_owned(), "because".to_owned());
            let holds = *holds;
            ((*test).to_owned(), Verdict { kind, holds, why })
        };
        Self(all.iter().map(one).collect())
    }

    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let verdicts =
            serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(verdicts))
    }

    /// Replaces the verdicts of `tests` with the verdicts of another run.
    pub(super) fn replace(&mut self, tests: &[String], mut other: Self) {
        for test in tests {
            if let Some(verdict) = other.0.remove(test) {
                self.0.insert(test.clone(), verdict);
            }
        }
    }

    /// A summary such as `required 160/160, optimal ...`
    pub(super) fn summary(&self) -> String {
        let count = |kind: &str| {
            let all = self.0.values().filter(|v| v.kind == kind);
            let (held, total) = all.fold((0, 0), |(h, t), v| (h + usize::from(v.holds), t + 1));
            format!("{kind} {held}/{total}")
        };
        KINDS.map(count).join(", ")
    }
}

/// The table: for each kind of tests and each test, the expected verdict.
#[derive(Debug, Default)]
pub(super) struct Table(pub(super) BTreeMap<String, BTreeMap<String, String>>);

impl Table {
    /// Reads the table. A missing file counts as an empty table.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let table = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(table))
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), String> {
        std::fs::write(path, self.text()).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn text(&self) -> String {
        let mut text = INTRODUCTION.to_owned();
        for kind in KINDS {
            let _ = writeln!(text, "\n[{kind}]");
            for (test, expected) in self.0.get(kind).into_iter().flatten() {
                let value = toml::Value::from(expected.as_str());
                // Some names contain a `.` or `=`, so all names are quoted.
                let _ = writeln!(text, "{} = {value}", toml::Value::from(test.as_str()));
            }
        }
        text
    }

    /// Returns a copy of the table in which `other` replaces the verdicts of some tests.
    pub(super) fn with(&self, other: &BTreeMap<String, String>) -> Self {
        let mut changed = self.0.clone();
        for (test, expected) in changed.values_mut().flatten() {
            if let Some(other) = other.get(test) {
                expected.clone_from(other);
            }
        }
        Self(changed)
    }

    /// Returns the tests whose verdict in a run differs from the table, each with its verdict in that run.
    pub(super) fn differences(&self, verdicts: &Verdicts) -> BTreeMap<String, &'static str> {
        let differs = |(test, verdict): &(&String, &Verdict)| {
            let expected = self.expected(&verdict.kind, test);
            expected.is_none_or(|expected| passes(expected) != verdict.holds)
        };
        let all = verdicts.0.iter().filter(differs);
        all.map(|(test, verdict)| (test.clone(), word(&verdict.kind, verdict.holds)))
            .collect()
    }

    fn expected(&self, kind: &str, test: &str) -> Option<&str> {
        self.0.get(kind)?.get(test).map(String::as_str)
    }

    /// Writes the measured verdicts into the table. If a test failed in any mode, its entry in the table is a
    /// failure.
    pub(super) fn update(&mut self, measured: &[(Mode, Verdicts)]) {
        let mut new: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (test, verdict) in measured.iter().flat_map(|(_, verdicts)| &verdicts.0) {
            let good = word(&verdict.kind, true);
            let old = self
                .expected(&verdict.kind, test)
                .filter(|old| !passes(old));
            let bad = old.unwrap_or(word(&verdict.kind, false));
            let now = new.entry(verdict.kind.clone()).or_default();
            let entry = now.entry(test.clone()).or_insert_with(|| good.to_owned());
            if !verdict.holds {
                *entry = bad.to_owned();
            }
        }
        self.0 = new;
    }

    /// Checks that every failure has a reason.
    pub(super) fn reasons_missing(&self) -> Outcome {
        let mut outcome = Outcome::default();
        for (test, expected) in self.0.values().flatten() {
            let reason = expected
                .strip_prefix("fail")
                .map(|rest| rest.trim_matches([':', ' ']));
            if reason == Some("") {
                let text = format!("{test} may fail by the table, but without a reason");
                outcome.complaints.push(text);
            }
        }
        outcome
    }

    /// Compares one run with the table.
    pub(super) fn compare(&self, mode: &str, verdicts: &Verdicts) -> Outcome {
        let mut outcome = Outcome::default();
        for (test, verdict) in &verdicts.0 {
            outcome.note(self.judge(mode, test, verdict));
        }
        let expected: BTreeSet<&String> = self.0.values().flat_map(BTreeMap::keys).collect();
        for test in expected
            .iter()
            .filter(|test| !verdicts.0.contains_key(**test))
        {
            outcome.note(Err(format!(
                "{mode}: {test} is in the table but was not run"
            )));
        }
        outcome
    }

    fn judge(&self, mode: &str, test: &str, verdict: &Verdict) -> Result<(), String> {
        let kind = &verdict.kind;
        match self.expected(kind, test) {
            None => Err(format!("{mode}: {test} ({kind}) is not in the table")),
            Some(expected) if passes(expected) == verdict.holds => Ok(()),
            Some(_) if verdict.holds => Err(format!(
                "{mode}: {test} ({kind}) passes now; put that into the table (--update)"
            )),
            Some(_) => Err(format!("{mode}: {test} ({kind}) fails: {}", verdict.why)),
        }
    }
}

fn passes(expected: &str) -> bool {
    matches!(expected, "pass" | "yes")
}

fn word(kind: &str, holds: bool) -> &'static str {
    match (kind, holds) {
        ("check", true) => "yes",
        ("check", false) => "no",
        (_, true) => "pass",
        (_, false) => "fail: ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        Table(toml::from_str(text).unwrap())
    }

    fn verdicts(all: &[(&str, &str, bool)]) -> Verdicts {
        Verdicts::of(all)
    }

    #[test]
    fn differences_in_both_directions_are_told() {
        let table = table("[required]\na = \"pass\"\nb = \"fail: x\"\n[check]\nc = \"no\"\n");
        let same = verdicts(&[
            ("a", "required", true),
            ("b", "required", false),
            ("c", "check", false),
        ]);
        let outcome = table.compare("m", &same);
        assert_eq!((outcome.passed, outcome.complaints.len()), (3, 0));
        let other = verdicts(&[
            ("a", "required", false),
            ("b", "required", true),
            ("d", "check", true),
        ]);
        let complaints = table.compare("m", &other).complaints.join("\n");
        for part in [
            "a (required) fails: because",
            "b (required) passes now",
            "d (check) is not",
            "c is in",
        ] {
            assert!(complaints.contains(part), "{part}: {complaints}");
        }
    }

    #[test]
    fn a_second_run_replaces_only_the_verdicts_of_the_tests_that_ran_again() {
        let mut first = verdicts(&[("a", "check", false), ("b", "check", true)]);
        let second = verdicts(&[("a", "check", true), ("b", "check", false)]);
        first.replace(&["a".to_owned(), "unknown".to_owned()], second);
        assert_eq!(first.summary(), "required 0/0, optimal 0/0, check 2/2");
    }

    #[test]
    fn updating_keeps_reasons_and_asks_for_new_ones() {
        let mut table = table("[required]\n\"a.b=c\" = \"fail: known\"\n");
        let reverse = verdicts(&[("a.b=c", "required", false), ("n", "optimal", true)]);
        let forward = verdicts(&[("a.b=c", "required", true), ("n", "optimal", false)]);
        table.update(&[(Mode::Reverse, reverse), (Mode::Forward, forward)]);
        assert_eq!(table.expected("required", "a.b=c"), Some("fail: known"));
        assert_eq!(table.reasons_missing().complaints.len(), 1);
        let again: BTreeMap<String, BTreeMap<String, String>> =
            toml::from_str(&table.text()).unwrap();
        assert_eq!(again["optimal"]["n"], "fail: ");
    }

    #[test]
    fn the_summary_counts_each_kind() {
        let all = verdicts(&[
            ("a", "required", true),
            ("b", "required", false),
            ("c", "check", true),
        ]);
        assert_eq!(all.summary(), "required 1/2, optimal 0/0, check 1/1");
    }
}
