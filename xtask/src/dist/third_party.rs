//! The notices that must accompany the program, because the licences of the libraries in it require them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

use super::archive::sha256;
use crate::workspace::root;

/// Name, version and licence of every library in the program, and the licence texts in the sources. A text
/// that several libraries share is included once.
///
/// # Errors
/// Returned if `cargo metadata` fails, or if a source cannot be read.
pub(super) fn notices() -> Result<String, String> {
    let metadata = MetadataCommand::new()
        .current_dir(root())
        .other_options(vec!["--locked".to_owned()])
        .exec()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let mut out = "The program foxy contains these libraries.\n\n".to_owned();
    let mut texts: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for id in used(&metadata) {
        let package = &metadata[&id];
        if package.source.is_none() {
            continue;
        }
        let name = format!("{} {}", package.name, package.version);
        let licence = package.license.as_deref().unwrap_or("see its text");
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name}: {licence}");
        let folder = package.manifest_path.as_std_path().parent();
        for text in licence_texts(folder.unwrap_or(root()))? {
            let users = texts.entry(sha256(text.as_bytes()));
            users
                .or_insert_with(|| (text, Vec::new()))
                .1
                .push(name.clone());
        }
    }
    let mut sorted: Vec<_> = texts.into_values().collect();
    sorted.sort_by(|a, b| a.1.cmp(&b.1));
    for (text, users) in sorted {
        let _ = write!(out, "\n---- {}\n\n{}\n", users.join(", "), text.trim());
    }
    Ok(out)
}

/// Packages with which `foxy` is linked, by name. The list may contain a package of another platform.
fn used(metadata: &Metadata) -> Vec<PackageId> {
    let nodes = metadata.resolve.iter().flat_map(|graph| &graph.nodes);
    let nodes: BTreeMap<_, _> = nodes.map(|node| (&node.id, node)).collect();
    let foxy = metadata.packages.iter().find(|p| p.name.as_str() == "foxy");
    let mut found: Vec<PackageId> = Vec::new();
    let mut open: Vec<_> = foxy.map(|p| &p.id).into_iter().collect();
    while let Some(id) = open.pop() {
        if found.contains(id) {
            continue;
        }
        found.push(id.clone());
        let below = nodes.get(id).map_or(&[][..], |node| &node.deps);
        let linked = |dep: &&cargo_metadata::NodeDep| {
            let kinds = &mut dep.dep_kinds.iter();
            kinds.any(|kind| kind.kind == DependencyKind::Normal)
        };
        open.extend(below.iter().filter(linked).map(|dep| &dep.pkg));
    }
    found.sort_by_key(|id| metadata[id].name.to_string());
    found
}

/// The licence and notice files in a package's folder.
fn licence_texts(folder: &Path) -> Result<Vec<String>, String> {
    let fail = |error| format!("{}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_uppercase();
        let starts = [
            "LICENSE",
            "LICENCE",
            "COPYING",
            "COPYRIGHT",
            "NOTICE",
            "UNLICENSE",
        ];
        if path.is_file() && starts.iter().any(|start| name.starts_with(start)) {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path| std::fs::read(path).map(|text| String::from_utf8_lossy(&text).into_owned());
    let texts: std::io::Result<_> = paths.iter().map(read).collect();
    texts.map_err(fail)
}
