//! The losses: the tests whose verdict with Foxy's default settings differs from the verdict in the pinned
//! table. The tests are listed by mode (reverse or forward proxy), each with the reason for the difference.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use super::servers::Mode;
use super::table::{Table, Verdicts};
use crate::report::Outcome;

const INTRODUCTION: &str = "\
# Where Foxy without configuration differs from the table beside this one, by mode: `fail: why` or
# `pass`; for tests of the kind `check`, which are no score, `no` or `yes`. Everything else is as
# there. `cargo xtask conformance --defaults` fails on any difference; with `--update` it writes this
# file anew and keeps the reasons.
";

/// Verdicts by mode and test.
#[derive(Debug, Default)]
pub(super) struct Losses(BTreeMap<String, BTreeMap<String, String>>);

impl Losses {
    /// Reads the losses. A missing file counts as no losses.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let show = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| show(&e))?;
        Ok(Self(toml::from_str(&text).map_err(|e| show(&e))?))
    }

    /// Compares the measured verdicts with `table` and the losses. If `update` is true, the losses are first
    /// made again from the measured verdicts, and written to the file at `path`.
    pub(super) fn compare(
        mut self,
        table: &Table,
        path: &Path,
        measured: &[(Mode, Verdicts)],
        update: bool,
    ) -> Result<Outcome, String> {
        if update {
            self.update(table, measured);
            std::fs::write(path, self.text())
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(self.judge(table, measured))
    }

    /// Returns `table` with the losses of a mode.
    pub(super) fn expected(&self, table: &Table, mode: Mode) -> Table {
        table.with(&self.of(mode))
    }

    fn of(&self, mode: Mode) -> BTreeMap<String, String> {
        self.0.get(mode.name()).cloned().unwrap_or_default()
    }

    fn judge(&self, table: &Table, measured: &[(Mode, Verdicts)]) -> Outcome {
        let mut outcome = Outcome::default();
        for (mode, verdicts) in measured {
            println!("   {:<8} {}", mode.name(), verdicts.summary());
            let expected = self.expected(table, *mode);
            outcome.join(expected.reasons_missing());
            outcome.join(expected.compare(mode.name(), verdicts));
        }
        outcome
    }

    fn update(&mut self, table: &Table, measured: &[(Mode, Verdicts)]) {
        for (mode, verdicts) in measured {
            let old = self.of(*mode);
            let keep = |(test, word): (String, &'static str)| {
                let known = old.get(&test).filter(|known| known.starts_with(word));
                let word = known.cloned().unwrap_or_else(|| word.to_owned());
                (test, word)
            };
            let new = table.differences(verdicts).into_iter().map(keep).collect();
            self.0.insert(mode.name().to_owned(), new);
        }
    }

    fn text(&self) -> String {
        let mut text = INTRODUCTION.to_owned();
        for (mode, tests) in &self.0 {
            let _ = writeln!(text, "\n[{mode}]");
            for (test, verdict) in tests {
                let (test, verdict) = (toml::Value::from(&**test), toml::Value::from(&**verdict));
                let _ = writeln!(text, "{test} = {verdict}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let text = "[required]\na = \"pass\"\nb = \"fail: x\"\n[check]\nc = \"no\"\n";
        Table(toml::from_str(text).unwrap())
    }

    #[test]
    fn losses_hold_for_their_mode_alone_and_need_a_reason() {
        let run = |a| {
            Verdicts::of(&[
                ("a", "required", a),
                ("b", "required", false),
                ("c", "check", false),
            ])
        };
        let measured = [(Mode::Reverse, run(false)), (Mode::Forward, run(true))];
        let mut losses = Losses::default();
        assert_eq!(losses.judge(&table(), &measured).complaints.len(), 1);
        losses.update(&table(), &measured);
        let complaints = losses.judge(&table(), &measured).complaints;
        assert!(
            complaints.len() == 1 && complaints[0].contains("without a reason"),
            "{complaints:?}"
        );
        let text = losses.text().replace("fail: ", "fail: for a reason");
        let mut losses = Losses(toml::from_str(&text).unwrap());
        assert_eq!(losses.judge(&table(), &measured).complaints.len(), 0);
        losses.update(&table(), &measured);
        assert_eq!(losses.0["reverse"]["a"], "fail: for a reason");
        let won = [(Mode::Reverse, run(true)), (Mode::Forward, run(true))];
        assert_eq!(losses.judge(&table(), &won).complaints.len(), 1);
    }
}
