//! Documents that are written from code: compared in `check`, rewritten by `generate`.

use std::path::PathBuf;

use crate::report::Outcome;
use crate::workspace::{cargo, root};

/// `(document, package, example program that prints it)`.
const DOCUMENTS: &[(&str, &str, &str)] = &[("docs/config.md", "foxy", "config-reference")];

/// Each document is what its program prints.
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

/// Writes each document.
pub(crate) fn write() -> Outcome {
    for_each(|path, wanted| {
        std::fs::write(path, wanted)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    })
}

fn for_each(mut act: impl FnMut(&PathBuf, &str) -> Result<(), String>) -> Outcome {
    let mut outcome = Outcome::default();
    for (path, package, example) in DOCUMENTS {
        let result = print(package, example).and_then(|text| act(&root().join(path), &text));
        outcome.note(result);
    }
    outcome
}

fn print(package: &str, example: &str) -> Result<String, String> {
    // The profile of the tests, so that nothing is compiled twice in a whole check.
    let output = cargo(&[
        "run",
        "--quiet",
        "--profile",
        "test",
        "--package",
        package,
        "--example",
        example,
    ])
    .output()
    .map_err(|error| format!("cargo did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "example {example} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("example {example} printed no UTF-8"))
}
