//! The published experiments, done again: published value, ours, their ratio, and what kind of
//! comparison is possible at all.
//!
//! No constant of the models was fitted to these results (decision 0010).

mod claim;
mod conditions;
mod usits;

pub use claim::{Claim, Comparison, claims_table};
pub use conditions::Conditions;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{
    figure::Figure,
    report::{Table, runs_table},
    run::{RunError, RunResult},
};

/// What came out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reproduction {
    /// Everything that has a published figure.
    pub claims: Vec<Claim>,
    /// The runs behind them.
    pub runs: Vec<RunResult>,
    /// The figures, by file name.
    #[serde(skip)]
    pub figures: Vec<(&'static str, Figure)>,
}

/// The file-space study of USITS'99: its tables 1 and 2 and its figures 2 to 8, and the
/// efficiency and read distances that the journal version adds.
///
/// # Errors
/// As [`crate::run::run`].
pub fn usits(
    conditions: &Conditions,
    progress: &(dyn Fn(&str, usize, usize) + Sync),
) -> Result<Reproduction, RunError> {
    usits::all(conditions, progress)
}

impl Reproduction {
    /// The comparison as a table.
    #[must_use]
    pub fn table(&self) -> Table {
        claims_table(&self.claims)
    }

    /// Writes tables, JSON and figures into a folder; returns the files.
    ///
    /// # Errors
    /// A file cannot be written, a figure cannot be drawn.
    pub fn save(&self, folder: &Path) -> Result<Vec<PathBuf>, RunError> {
        let mut files = Vec::new();
        let output = |path: &Path, source| RunError::Output {
            path: path.to_owned(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(|source| output(folder, source))?;
        let json = serde_json::to_string_pretty(self)
            .map_err(|error| RunError::Config(error.to_string()))?;
        let texts = [
            ("comparison.txt", self.table().to_string()),
            ("comparison.csv", self.table().csv()),
            ("comparison.md", self.table().markdown()),
            ("runs.csv", runs_table(&self.runs).csv()),
            ("results.json", json),
        ];
        for (name, text) in texts {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|source| output(&path, source))?;
            files.push(path);
        }
        for (name, figure) in &self.figures {
            files.extend(figure.save(&folder.join(name))?);
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests;
