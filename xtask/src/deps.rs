//! Checks the licences, duplicates and reasons of dependencies. The dependencies are read from `cargo tree`.
//! Security advisories are not checked; see docs/decisions/0002-own-dependency-check.md.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::Outcome;
use crate::workspace::{cargo, root};

/// Licences that permit the distribution of Foxy under MIT or Apache-2.0.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "BSL-1.0",
    "MPL-2.0",
    "CC0-1.0",
    "Unlicense",
    "0BSD",
    "MIT-0",
    "bzip2-1.0.6",
];

/// Crates that may have several versions in the workspace, with the reason for each crate.
const DUPLICATES: &[(&str, &str)] = &[
    (
        "base64",
        "sfv is one version behind the certificates of test servers",
    ),
    (
        "bitflags",
        "the PNG encoder of the figures wants the old one",
    ),
    (
        "cpufeatures",
        "the websocket of test servers wants the old one",
    ),
    (
        "getrandom",
        "ring and the websocket of test servers want older ones",
    ),
    (
        "miniz_oxide",
        "the PNG encoder of the figures wants the old one",
    ),
    ("rand", "the websocket of test servers wants the old one"),
    (
        "rand_core",
        "the websocket of test servers wants the old one",
    ),
];

/// A crate from outside the workspace.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Foreign {
    name: String,
    version: String,
    licence: String,
}

/// Checks all crates that become part of a program or a test on this platform. Build scripts and procedural
/// macros run only during a build and are not distributed, so they are left out.
pub(crate) fn run() -> Outcome {
    match foreign() {
        Ok(crates) => {
            let mut outcome = licences(&crates);
            outcome.join(duplicates(&crates));
            outcome.join(reasons());
            outcome
        }
        Err(error) => Outcome::single(Err(error)),
    }
}

/// The dependencies from outside the workspace. `cargo tree` lists only dependencies that the enabled
/// features need; `cargo metadata` would also list the other dependencies.
fn foreign() -> Result<BTreeSet<Foreign>, String> {
    let edges = "normal,dev,no-proc-macro";
    let output = cargo(&[
        "tree",
        "--workspace",
        "--edges",
        edges,
        "--prefix",
        "none",
        "--format",
        "{p}|{l}",
    ])
    .output()
    .map_err(|error| format!("cargo did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "cargo tree: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(read_line)
        .collect())
}

/// Parses a line such as `name v1.2.3|MIT OR Apache-2.0`. Returns `None` for a crate of this workspace, which
/// has its folder after the version.
fn read_line(line: &str) -> Option<Foreign> {
    let (package, licence) = line.split_once('|')?;
    let (name, rest) = package.split_once(" v")?;
    if rest.contains(['/', '\\']) {
        return None;
    }
    Some(Foreign {
        name: name.to_owned(),
        version: rest.trim_end_matches(" (*)").to_owned(),
        licence: licence.trim_end_matches(" (*)").to_owned(),
    })
}

fn licences(crates: &BTreeSet<Foreign>) -> Outcome {
    let mut outcome = Outcome::default();
    for Foreign {
        name,
        version,
        licence,
    } in crates
    {
        outcome.note(if acceptable(licence) {
            Ok(())
        } else {
            Err(format!(
                "{name} {version} has licence `{licence}`, which is not on the list in xtask/src/deps.rs; \
                 choose another crate"
            ))
        });
    }
    outcome
}

/// True if the permitted licences satisfy an SPDX expression such as `A OR B`, `A AND B` or `(A OR B) AND
/// C`.
fn acceptable(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let all_of = |text: &str| {
        text.split(" AND ")
            .all(|one| LICENCES.contains(&one.trim().trim_matches(['(', ')'])))
    };
    let groups: Vec<&str> = expression.split(") AND ").collect();
    groups
        .iter()
        .all(|group| group.trim_matches(['(', ')']).split(" OR ").any(all_of))
}

fn duplicates(crates: &BTreeSet<Foreign>) -> Outcome {
    let mut versions: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for found in crates {
        versions
            .entry(&found.name)
            .or_default()
            .insert(found.version.clone());
    }
    let mut outcome = Outcome::default();
    for (name, found) in &versions {
        let excused = DUPLICATES.iter().any(|(known, _)| known == name);
        outcome.note(match (found.len() > 1, excused) {
            (true, false) => Err(format!(
                "{name} is built in {} versions ({}); align them (`cargo tree -d -i {name}` shows who \
                 wants which), or add an exception with its reason to xtask/src/deps.rs",
                found.len(),
                found.iter().cloned().collect::<Vec<_>>().join(", ")
            )),
            (false, true) => Err(format!(
                "{name} is no longer duplicated; take its exception out of xtask/src/deps.rs"
            )),
            _ => Ok(()),
        });
    }
    outcome
}

/// Checks that every dependency in the workspace manifest has a comment with its reason.
fn reasons() -> Outcome {
    let mut outcome = Outcome::default();
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap_or_default();
    let section = manifest
        .split("[workspace.dependencies]")
        .nth(1)
        .unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let lines = section
        .lines()
        .filter(|line| line.contains(" = ") && !line.contains("path = "));
    for line in lines {
        outcome.note(if line.contains('#') {
            Ok(())
        } else {
            Err(format!(
                "Cargo.toml: `{line}` has no reason; add `# what it does for Foxy`"
            ))
        });
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_crates_are_told_from_foreign_ones() {
        assert_eq!(read_line("foxy-base v0.1.0 (/some/where/base)|MIT"), None);
        let found = read_line("bytes v1.12.1|MIT (*)").unwrap();
        assert_eq!(
            (found.version.as_str(), found.licence.as_str()),
            ("1.12.1", "MIT")
        );
    }

    #[test]
    fn two_versions_are_one_complaint() {
        let crates = ["a v1.0.0|MIT", "a v2.0.0|MIT", "b v1.0.0|MIT"];
        let crates = crates.iter().filter_map(|line| read_line(line)).collect();
        assert_eq!(duplicates(&crates).complaints.len(), 1);
    }

    #[test]
    fn licence_expressions() {
        for good in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "GPL-2.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "MIT AND BSD-3-Clause",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
        ] {
            assert!(acceptable(good), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR Apache-2.0) AND GPL-3.0",
            "AGPL-3.0 OR SSPL-1.0",
        ] {
            assert!(!acceptable(bad), "{bad}");
        }
    }
}
