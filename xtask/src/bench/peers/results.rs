//! Results of `bench peers` by scenario and proxy. They are saved in a file after each row.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::load::number;
use super::servers::Kind;

/// One row of a table: the results of one proxy in one scenario.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Row {
    /// `s1` to `s7`.
    pub(super) scenario: String,
    /// Name of the proxy in the table.
    pub(super) proxy: String,
    /// The values, each with a name such as `closed cpu`: the part of the scenario and the measured property.
    #[serde(rename = "figures")]
    pub(super) values: BTreeMap<String, f64>,
    /// Notes that a reader of this row needs.
    pub(super) notes: Vec<String>,
    /// Problems: errors, wrong bodies, a server that did not start.
    pub(super) problems: Vec<String>,
}

/// Greatest permitted fraction of the time in which the core of the load is busy. If the core is busier, the
/// load, and not the proxy, limits the result.
const BUSY: f64 = 0.9;

impl Row {
    pub(super) fn new(scenario: &str, kind: Kind) -> Self {
        Self {
            scenario: scenario.to_owned(),
            proxy: kind.name().to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn set(&mut self, name: &str, value: f64) {
        self.values.insert(name.to_owned(), value);
    }

    pub(super) fn get(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Adds the values of a load's report. The names of these values begin with `part`.
    pub(super) fn take(&mut self, part: &str, report: &Value) {
        let mut copy = |name: &str, path: &[&str], factor: f64| {
            if let Some(value) = number(report, path) {
                self.values.insert(format!("{part} {name}"), value * factor);
            }
        };
        copy("rate", &["rate"], 1.0);
        copy("MB/s", &["bytes_per_second"], 1e-6);
        copy("cpu", &["cpu_us", "total"], 1.0);
        copy("user", &["cpu_us", "user"], 1.0);
        copy("system", &["cpu_us", "system"], 1.0);
        copy("cores", &["cpu_us", "cores"], 1.0);
        copy("hit ratio", &["origin_hit_ratio"], 1.0);
        copy("answers", &["answers"], 1.0);
        for group in ["hits", "misses", "unknown"] {
            for time in ["mean", "p50", "p99", "p999"] {
                copy(&format!("{group} {time}"), &[group, time], 1e-3);
            }
            copy(&format!("{group} count"), &[group, "count"], 1.0);
        }
        self.judge(part, report);
    }

    /// Turns the problems of this row into notes. This is right when the offered load exceeds the limits of a
    /// proxy: then a problem is a result, and no fault of the measurement.
    pub(super) fn problems_are_results(&mut self) {
        self.notes.append(&mut self.problems);
    }

    /// Adds a problem if the report contains errors, wrong answers, or no answers at all. Adds a note if the
    /// load was too busy.
    fn judge(&mut self, part: &str, report: &Value) {
        let get = |path: &[&str]| number(report, path).unwrap_or(0.0);
        let (errors, wrong) = (get(&["errors"]), get(&["wrong"]));
        *self.values.entry("errors".into()).or_default() += errors;
        *self.values.entry("wrong".into()).or_default() += wrong;
        if errors + wrong > 0.0 {
            let text = &report["described"][0];
            self.problems.push(format!(
                "{part}: {errors} errors, {wrong} wrong answers: {text}"
            ));
        }
        if get(&["answers"]) < 1.0 {
            self.problems.push(format!("{part}: no answers"));
        }
        // Load and origin share a core, so the sum of their busy times must leave a part of the core idle.
        let origin = get(&["origin", "busy_ns"]) / 1e9 / get(&["seconds"]).max(1e-9);
        let busy = get(&["generator_busy"]) + origin;
        self.set(&format!("{part} busy"), busy);
        if busy >= BUSY {
            self.note(format!(
                "{part}: the load's core was {:.0} % busy",
                busy * 100.0
            ));
        }
    }
}

/// All rows of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Results {
    /// The conditions of the measurement: machine, versions, options.
    pub(super) about: BTreeMap<String, String>,
    #[serde(rename = "cells")]
    pub(super) rows: Vec<Row>,
    #[serde(skip)]
    path: PathBuf,
}

impl Results {
    /// Opens the results in `folder`. If `resume` is true, these are the results of an interrupted run.
    /// Otherwise the results are empty, and an existing file is renamed to `previous.json`.
    pub(super) fn open(folder: &Path, resume: bool) -> Result<Self, String> {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let path = folder.join("results.json");
        let mut results = Self::default();
        if resume && path.exists() {
            results = Self::read(&path)?;
        } else if path.exists() {
            let _ = fs::rename(&path, folder.join("previous.json"));
        }
        results.path = path;
        Ok(results)
    }

    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|e| format!("{shown}: {e}"))?;
        serde_json::from_str(&text).map_err(|e| format!("{shown}: {e}"))
    }

    /// True if the row exists and has no problems.
    pub(super) fn has(&self, scenario: &str, kind: Kind) -> bool {
        self.rows
            .iter()
            .any(|c| c.scenario == scenario && c.proxy == kind.name() && c.problems.is_empty())
    }

    /// Adds or replaces a row and writes the file. So finished rows are kept if the run is interrupted.
    pub(super) fn keep(&mut self, row: Row) -> Result<(), String> {
        self.rows
            .retain(|c| (&c.scenario, &c.proxy) != (&row.scenario, &row.proxy));
        self.rows.push(row);
        self.save()
    }

    pub(super) fn save(&self) -> Result<(), String> {
        let shown = self.path.display();
        let text = serde_json::to_string_pretty(self).map_err(|e| e.to_string())?;
        // The file is written under a temporary name and then renamed, so that readers always see a complete
        // file.
        let aside = self.path.with_extension("part");
        fs::write(&aside, text).map_err(|e| format!("{shown}: {e}"))?;
        fs::rename(&aside, &self.path).map_err(|e| format!("{shown}: {e}"))
    }

    /// The rows of a scenario.
    pub(super) fn of<'a>(&'a self, scenario: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |c| c.scenario == scenario)
    }
}
