//! The crate graph: its arrows lead from each crate to the crates that it may depend on. The graph is
//! compared with `cargo metadata`.
//!
//! The tables define the architecture. A new arrow changes the architecture: add it to the table, give the
//! reason in the commit message, and update docs/architecture.md.

use std::collections::BTreeSet;

use cargo_metadata::DependencyKind;

use crate::report::Outcome;
use crate::rooms;
use crate::workspace::metadata;

/// Pairs of a crate and the crates that its code may use, in the order of the layers, top first.
type Arrows = &'static [(&'static str, &'static [&'static str])];

/// The permitted dependencies between the crates of the product.
const PRODUCT: Arrows = &[
    ("foxy", &["proxy", "store", "http1", "disk", "tls", "base"]),
    (
        "proxy",
        &[
            "http1",
            "http-rules",
            "access",
            "mirror",
            "store",
            "disk",
            "tls",
            "base",
        ],
    ),
    ("hummingbird-c", &["hummingbird"]),
    ("hummingbird", &["store", "disk", "base"]),
    ("store", &["format", "index", "policy", "disk", "base"]),
    ("disk", &["base"]),
    ("policy", &["base"]),
    ("access", &["base"]),
    ("mirror", &["base"]),
    ("format", &["base"]),
    ("index", &["base"]),
    ("http-rules", &["base"]),
    ("http1", &["base"]),
    ("tls", &[]),
    ("base", &[]),
];

/// True for the crates of the product, by the name of their folder.
pub(crate) fn is_product(name: &str) -> bool {
    PRODUCT.iter().any(|(known, _)| *known == name)
}

/// The permitted dependencies (arrows) of the laboratory, and of all other crates that check or measure the
/// product. These crates may use the product, but the product may not use them.
const LABORATORY: Arrows = &[
    (
        "scenarios",
        &["foxy", "proxy", "store", "disk", "http1", "base"],
    ),
    (
        "micro",
        &["format", "index", "http-rules", "access", "http1", "base"],
    ),
    ("fork-proxy", &["base"]),
    ("xtask", &["foxy", "lab", "sim", "base"]),
    ("lab", &["foxy", "proxy", "bench", "sim", "trace", "base"]),
    ("bench", &["sim", "store", "index", "disk", "trace", "base"]),
    ("sim", &["policy", "store", "disk", "trace", "base"]),
    ("trace", &["base"]),
];

/// Additional permitted dependencies of tests, benches and examples (`[dev-dependencies]`). These parts of
/// the product's crates may use the laboratory.
const TEST_ARROWS: Arrows = &[
    // The tests of `foxy` run the built program with measurements of `lab` and with a name server of `bench`.
    ("foxy", &["lab", "bench"]),
    // Tests of `store` and `policy` replay traces. They measure the store's hit ratio, and compare the
    // policies with their reference versions.
    ("store", &["trace"]),
    ("policy", &["trace"]),
];

/// Compares the arrows between the workspace's crates with the tables. Complains about each arrow that is not
/// in the tables, and about each arrow that is only in the tables. Also checks the arrows between the rooms
/// (top-level modules) of a crate.
pub(crate) fn run() -> Outcome {
    match graph() {
        Ok(graph) => {
            let mut outcome = judge(&graph);
            outcome.complaints.extend(unused(&graph));
            outcome.join(rooms::run());
            outcome
        }
        Err(error) => Outcome::single(Err(error)),
    }
}

/// An arrow that a manifest declares.
struct Arrow {
    from: String,
    to: String,
    /// True if the arrow is a dev-dependency.
    dev: bool,
    /// Features that the arrow enables.
    features: Vec<String>,
}

/// Every member of the workspace, and the arrows between them.
struct Graph {
    members: BTreeSet<String>,
    arrows: Vec<Arrow>,
}

fn graph() -> Result<Graph, String> {
    let metadata = metadata()?;
    let short = |name: &str| name.strip_prefix("foxy-").unwrap_or(name).to_owned();
    let members: BTreeSet<_> = metadata.packages.iter().map(|p| short(&p.name)).collect();
    let mut arrows = Vec::new();
    for package in &metadata.packages {
        for dependency in package.dependencies.iter().filter(|d| d.path.is_some()) {
            arrows.push(Arrow {
                from: short(&package.name),
                to: short(&dependency.name),
                dev: dependency.kind == DependencyKind::Development,
                features: dependency.features.clone(),
            });
        }
    }
    Ok(Graph { members, arrows })
}

fn has(table: Arrows, from: &str, to: &str) -> bool {
    table
        .iter()
        .any(|(name, targets)| *name == from && targets.contains(&to))
}

fn names(table: Arrows, name: &str) -> bool {
    table.iter().any(|(crate_name, _)| *crate_name == name)
}

fn judge(graph: &Graph) -> Outcome {
    let mut outcome = Outcome::default();
    for member in &graph.members {
        outcome.note(if names(PRODUCT, member) || names(LABORATORY, member) {
            Ok(())
        } else {
            Err(format!(
                "crate {member} is not in the table of xtask/src/arrows.rs; give it a place"
            ))
        });
    }
    for arrow in &graph.arrows {
        outcome.note(judge_arrow(arrow));
    }
    outcome
}

fn judge_arrow(arrow: &Arrow) -> Result<(), String> {
    let (from, to) = (arrow.from.as_str(), arrow.to.as_str());
    let in_code = has(PRODUCT, from, to) || has(LABORATORY, from, to);
    let allowed = in_code || (arrow.dev && has(TEST_ARROWS, from, to));
    if !allowed {
        return Err(complaint(from, to, arrow.dev));
    }
    if !arrow.dev && names(PRODUCT, from) && !arrow.features.is_empty() {
        return Err(format!(
            "{from} turns {} of {to} on: features of these crates are hooks for laboratory and fuzzing, \
             the product has none",
            arrow.features.join(", ")
        ));
    }
    Ok(())
}

/// Complaints about arrows that are in the tables, but in no manifest.
fn unused(graph: &Graph) -> Vec<String> {
    let used = |from: &str, to: &str, dev: bool| {
        graph
            .arrows
            .iter()
            .any(|arrow| arrow.from == from && arrow.to == to && arrow.dev == dev)
    };
    let mut unused = Vec::new();
    for (table, dev) in [(PRODUCT, false), (LABORATORY, false), (TEST_ARROWS, true)] {
        for (from, targets) in table {
            for to in targets.iter().filter(|to| !used(from, to, dev)) {
                unused.push(format!(
                    "{from} -> {to} is allowed by xtask/src/arrows.rs and nobody uses it; remove it there \
                     and in docs/architecture.md"
                ));
            }
        }
    }
    unused
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

    fn arrow(from: &str, to: &str, dev: bool) -> Arrow {
        Arrow {
            from: from.to_owned(),
            to: to.to_owned(),
            dev,
            features: Vec::new(),
        }
    }

    #[test]
    fn only_arrows_of_the_table_pass() {
        assert!(judge_arrow(&arrow("store", "format", false)).is_ok());
        assert!(judge_arrow(&arrow("format", "store", false)).is_err());
        assert!(judge_arrow(&arrow("store", "trace", false)).is_err());
        assert!(judge_arrow(&arrow("store", "trace", true)).is_ok());
    }

    #[test]
    fn the_product_does_not_use_the_laboratory_nor_its_hooks() {
        for (from, targets) in PRODUCT {
            for to in *targets {
                assert!(names(PRODUCT, to), "{from} -> {to}");
            }
        }
        for to in ["sim", "trace", "bench", "lab"] {
            assert!(judge_arrow(&arrow("foxy", to, false)).is_err(), "{to}");
        }
        let mut hooked = arrow("foxy", "proxy", false);
        hooked.features.push("stand-in".to_owned());
        assert!(judge_arrow(&hooked).unwrap_err().contains("stand-in"));
    }

    #[test]
    fn arrows_that_nobody_uses_are_named() {
        let mut graph = Graph {
            members: BTreeSet::new(),
            arrows: Vec::new(),
        };
        for (table, dev) in [(PRODUCT, false), (LABORATORY, false), (TEST_ARROWS, true)] {
            for (from, targets) in table {
                let all = targets.iter().map(|to| arrow(from, to, dev));
                graph.arrows.extend(all);
            }
        }
        assert_eq!(unused(&graph), Vec::<String>::new());
        graph.arrows.retain(|arrow| arrow.to != "format");
        let unused = unused(&graph);
        assert_eq!(unused.len(), 2, "store and micro: {unused:?}");
        assert!(unused[0].starts_with("store -> format "), "{unused:?}");
    }

    #[test]
    fn the_tables_have_no_cycle() {
        // The crates are listed top first. Every arrow leads to a later line of its table, or from the
        // laboratory to the product.
        for table in [PRODUCT, LABORATORY] {
            let place = |crate_name: &str| table.iter().position(|(name, _)| *name == crate_name);
            for (at, (from, targets)) in table.iter().enumerate() {
                for to in *targets {
                    let later = place(to).is_none_or(|to| at < to);
                    assert!(later, "{from} -> {to}");
                }
            }
        }
    }
}
