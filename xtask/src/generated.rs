//! Documents that are generated from code. `check` compares the documents with the code, and `generate`
//! writes the documents again.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::report::Outcome;
use crate::workspace::{programs, root};

/// Each document, and the example program that prints it. [`programs`] builds these programs.
const DOCUMENTS: &[(&str, &str)] = &[
    ("docs/config.md", "config-reference"),
    ("docs/metrics.md", "metrics-reference"),
];

/// Checks that each document is equal to the output of its program.
pub(crate) fn check() -> Outcome {
    for_each(|path, wanted| {
        let found = std::fs::read_to_string(path).unwrap_or_default();
        if found == wanted {
            return Ok(());
        }
        let line = 1 + found
            .lines()
            .zip(wanted.lines())
            .take_while(|(a, b)| a == b)
            .count();
        Err(format!(
            "{} is not what the code says (first difference in line {line}); `cargo xtask generate` \
             writes it anew",
            path.strip_prefix(root()).unwrap_or(path).display()
        ))
    })
}

/// Writes all documents again.
pub(crate) fn write() -> Outcome {
    for_each(|path, wanted| {
        std::fs::write(path, wanted)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    })
}

fn for_each(mut act: impl FnMut(&PathBuf, &str) -> Result<(), String>) -> Outcome {
    let mut outcome = Outcome::default();
    let folder = match programs() {
        Ok(folder) => folder,
        Err(complaint) => return Outcome::single(Err(complaint)),
    };
    for (path, example) in DOCUMENTS {
        let result = print(&folder, example).and_then(|text| act(&root().join(path), &text));
        outcome.note(result);
    }
    outcome
}

fn print(folder: &Path, example: &str) -> Result<String, String> {
    let program = folder.join("examples").join(example);
    let output = Command::new(&program)
        .current_dir(root())
        .output()
        .map_err(|error| format!("{} did not start: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!(
            "example {example} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("example {example} printed no UTF-8"))
}
