//! Dependencies: licences from an allow-list, one version of each, every one with its reason.
//!
//! About a hundred lines of our own over `cargo metadata` instead of a tool that takes minutes
//! to install on a fresh machine; see docs/decisions/0002-own-dependency-check.md.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

use crate::report::Outcome;
use crate::workspace::root;

/// Licences that allow shipping Foxy under MIT or Apache-2.0.
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

/// Crates that may appear in several versions, each with the reason.
const DUPLICATES: &[(&str, &str)] = &[];

/// Judges everything that ends up in a binary or a test on this platform.
pub(crate) fn run() -> Outcome {
    let metadata = MetadataCommand::new()
        .current_dir(root())
        .other_options(["--filter-platform".to_owned(), host()])
        .exec();
    match metadata {
        Ok(metadata) => {
            let mut outcome = licences(&metadata);
            outcome.join(duplicates(&metadata));
            outcome.join(reasons());
            outcome
        }
        Err(error) => Outcome::single(Err(format!("cargo metadata: {error}"))),
    }
}

/// The platform whose dependencies count: other systems' crates are never built here.
fn host() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

fn licences(metadata: &Metadata) -> Outcome {
    let mut outcome = Outcome::default();
    for package in foreign(metadata) {
        let licence = package.license.as_deref().unwrap_or("");
        outcome.note(if acceptable(licence) {
            Ok(())
        } else {
            Err(format!(
                "{} {} has licence `{licence}`, which is not on the list in xtask/src/deps.rs; \
                 choose another crate",
                package.name, package.version
            ))
        });
    }
    outcome
}

fn foreign(metadata: &Metadata) -> impl Iterator<Item = &Package> {
    let used = used_packages(metadata);
    metadata
        .packages
        .iter()
        .filter(move |p| p.source.is_some() && used.contains(&p.id))
}

/// What the members reach through normal and test dependencies (build tools run, but do not ship).
fn used_packages(metadata: &Metadata) -> BTreeSet<PackageId> {
    let mut used: BTreeSet<PackageId> = BTreeSet::new();
    let mut open: Vec<&PackageId> = metadata.workspace_members.iter().collect();
    let nodes: BTreeMap<_, _> = metadata
        .resolve
        .iter()
        .flat_map(|resolve| &resolve.nodes)
        .map(|node| (&node.id, node))
        .collect();
    while let Some(id) = open.pop() {
        if !used.insert(id.clone()) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        for dependency in &node.deps {
            let ships = |kind: &cargo_metadata::DepKindInfo| kind.kind != DependencyKind::Build;
            if dependency.dep_kinds.iter().any(ships) {
                open.push(&dependency.pkg);
            }
        }
    }
    used
}

/// Whether an SPDX expression can be satisfied from the list: `A OR B`, `A AND B`, `(A OR B) AND C`.
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

fn duplicates(metadata: &Metadata) -> Outcome {
    let mut versions: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for package in foreign(metadata) {
        let name = package.name.as_str();
        versions
            .entry(name)
            .or_default()
            .insert(package.version.to_string());
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

/// Every dependency in the workspace manifest says why it is there.
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
