//! Files that a reproduction writes into its folder.

use std::path::{Path, PathBuf};

use super::{Reproduction, html};
use crate::{report::runs_table, run::RunError};

impl Reproduction {
    /// Writes tables, JSON, figures and the page `index.html` into a folder. Returns the paths of the files.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written or a figure cannot be drawn.
    pub fn save(&self, folder: &Path) -> Result<Vec<PathBuf>, RunError> {
        let mut files = Vec::new();
        std::fs::create_dir_all(folder).map_err(|source| output(folder, source))?;
        for drawn in self.sections.iter().flat_map(|s| &s.figures) {
            files.extend(drawn.figure.save(&folder.join(&drawn.stem))?);
        }
        let json = serde_json::to_string_pretty(self)
            .map_err(|error| RunError::Config(error.to_string()))?;
        let runs: Vec<_> = self.sections.iter().flat_map(|s| s.runs.clone()).collect();
        let texts = [
            ("comparison.txt", self.text()),
            ("comparison.csv", self.table().csv()),
            ("runs.csv", runs_table(&runs).csv()),
            ("results.json", json),
            ("index.html", html::page(self, folder)?),
        ];
        for (name, text) in texts {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|source| output(&path, source))?;
            files.push(path);
        }
        Ok(files)
    }
}

pub(super) fn output(path: &Path, source: std::io::Error) -> RunError {
    RunError::Output {
        path: path.to_owned(),
        source,
    }
}
