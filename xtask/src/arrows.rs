//! The crate graph: which crate may depend on which, held against `cargo metadata`.
//!
//! The table is the architecture. A new arrow is a decision: change the table, say why in the
//! commit, and update docs/architecture.md.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::report::Outcome;
use crate::workspace::root;

/// `crate -> what its code may use`, in the order of the layers, top first.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "foxy",
        &[
            "proxy", "store", "sim", "trace", "bench", "http1", "disk", "base",
        ],
    ),
    ("proxy", &["http1", "http-rules", "store", "disk", "base"]),
    (
        "bench",
        &["http1", "sim", "store", "index", "disk", "trace", "base"],
    ),
    ("sim", &["policy", "store", "disk", "trace", "base"]),
    ("store", &["format", "index", "policy", "disk", "base"]),
    ("disk", &["base"]),
    ("policy", &["base"]),
    ("format", &["base"]),
    ("index", &["base"]),
    ("http-rules", &["base"]),
    ("http1", &["base"]),
    ("trace", &["base"]),
    ("base", &[]),
    // Not part of the product: may look at what they check.
    (
        "scenarios",
        &["foxy", "proxy", "store", "disk", "http1", "base"],
    ),
    ("micro", &["format", "index", "http-rules", "http1", "base"]),
    ("fork-proxy", &["base"]),
    ("lab", &["bench", "base"]),
    ("xtask", &["lab", "sim", "base"]),
];

/// Additional arrows of tests, benches and examples (`[dev-dependencies]`).
const TEST_ARROWS: &[(&str, &[&str])] = &[
    ("foxy", &["proxy", "store", "lab"]),
    ("sim", &["format", "index"]),
    // Replayed traces measure the store's hit ratio and hold the policies against their twins.
    ("store", &["trace"]),
    ("policy", &["trace"]),
];

/// Fails on any arrow between our crates that the tables do not have.
pub(crate) fn run() -> Outcome {
    match graph() {
        Ok(graph) => judge(&graph),
        Err(error) => Outcome::single(Err(error)),
    }
}

/// Arrows as `(from, to, is a dev-dependency)`, for every member of the workspace.
struct Graph {
    members: BTreeSet<String>,
    arrows: Vec<(String, String, bool)>,
}

fn graph() -> Result<Graph, String> {
    let metadata = MetadataCommand::new()
        .current_dir(root())
        .no_deps()
        .exec()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let short = |name: &str| name.strip_prefix("foxy-").unwrap_or(name).to_owned();
    let members: BTreeSet<_> = metadata.packages.iter().map(|p| short(&p.name)).collect();
    let mut arrows = Vec::new();
    for package in &metadata.packages {
        for dependency in package.dependencies.iter().filter(|d| d.path.is_some()) {
            let dev = dependency.kind == DependencyKind::Development;
            arrows.push((short(&package.name), short(&dependency.name), dev));
        }
    }
    Ok(Graph { members, arrows })
}

fn judge(graph: &Graph) -> Outcome {
    let allowed: BTreeMap<_, _> = ARROWS.iter().copied().collect();
    let in_tests: BTreeMap<_, _> = TEST_ARROWS.iter().copied().collect();
    let mut outcome = Outcome::default();
    for member in &graph.members {
        outcome.note(if allowed.contains_key(member.as_str()) {
            Ok(())
        } else {
            Err(format!(
                "crate {member} is not in the table of xtask/src/arrows.rs; give it a place"
            ))
        });
    }
    for (from, to, dev) in &graph.arrows {
        let has = |table: &BTreeMap<&str, &[&str]>| {
            table
                .get(from.as_str())
                .is_some_and(|list| list.contains(&to.as_str()))
        };
        outcome.note(if has(&allowed) || (*dev && has(&in_tests)) {
            Ok(())
        } else {
            Err(complaint(from, to, *dev))
        });
    }
    outcome
}

fn complaint(from: &str, to: &str, dev: bool) -> String {
    let section = if dev {
        "dev-dependencies"
    } else {
        "dependencies"
    };
    format!(
        "{from} -> {to} in [{section}] is not an arrow of the architecture; move the code to where it \
         belongs, or argue for the arrow in xtask/src/arrows.rs and docs/architecture.md"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge_arrow(from: &str, to: &str, dev: bool) -> usize {
        let graph = Graph {
            members: BTreeSet::new(),
            arrows: vec![(from.to_owned(), to.to_owned(), dev)],
        };
        judge(&graph).complaints.len()
    }

    #[test]
    fn only_arrows_of_the_table_pass() {
        assert_eq!(judge_arrow("store", "format", false), 0);
        assert_eq!(judge_arrow("format", "store", false), 1);
        assert_eq!(judge_arrow("sim", "format", false), 1);
        assert_eq!(judge_arrow("sim", "format", true), 0);
    }

    #[test]
    fn the_table_itself_has_no_cycle() {
        // Listed top first: every arrow points to a later line.
        let order: Vec<_> = ARROWS.iter().map(|(name, _)| *name).collect();
        let product = order.iter().position(|name| *name == "scenarios").unwrap();
        for (from, targets) in &ARROWS[..product] {
            let from_at = order.iter().position(|name| name == from).unwrap();
            for to in *targets {
                let to_at = order.iter().position(|name| name == to).unwrap();
                assert!(from_at < to_at, "{from} -> {to}");
            }
        }
    }
}
