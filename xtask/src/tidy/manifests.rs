//! The house rules about the manifests of the workspace's crates.

use crate::report::Outcome;
use crate::workspace::Source;

/// Manifests of the crates that may contain `unsafe`: disks and the allocator, and the interface to C.
const UNSAFE: &[&str] = &["crates/disk/Cargo.toml", "crates/hummingbird-c/Cargo.toml"];

/// Checks that settings and versions come from the workspace.
pub(super) fn shared_settings(file: &Source) -> Vec<String> {
    // A crate that is its own workspace cannot inherit settings from this workspace.
    let apart = file.text.lines().any(|line| line == "[workspace]");
    if !file.path.ends_with("/Cargo.toml") || apart {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for key in ["version", "edition", "rust-version", "license", "publish"] {
        if !file.text.contains(&format!("{key}.workspace = true")) {
            complaints.push(format!("write `{key}.workspace = true`"));
        }
    }
    // The workspace's lints forbid `unsafe`, and a crate cannot relax `forbid`. So crates with `unsafe` list
    // their lints themselves.
    let unsafe_too = UNSAFE.contains(&file.path.as_str());
    if !file.text.contains("[lints]\nworkspace = true") && !unsafe_too {
        complaints.push("write `[lints]` and `workspace = true` below it".to_owned());
    }
    for (section, line) in dependency_lines(&file.text) {
        if !line.contains("workspace = true") {
            complaints.push(format!(
                "`{line}` in [{section}]: name the version and the reason in the root manifest and write \
                 `workspace = true` here"
            ));
        }
    }
    complaints
}

/// The section and the line of each dependency in a manifest.
fn dependency_lines(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut section = "";
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if section.ends_with("dependencies") && line.contains('=') && !line.starts_with('#')
        {
            found.push((section.to_owned(), line.to_owned()));
        }
    }
    found
}

/// Checks that the code of a crate uses each dependency in the crate's manifest.
pub(super) fn unused_dependencies(files: &[Source]) -> Outcome {
    let mut outcome = Outcome::default();
    for manifest in files.iter().filter(|f| f.path.ends_with("/Cargo.toml")) {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        let code = |word: &str| {
            files
                .iter()
                .filter(|f| f.is("rs") && f.path.starts_with(folder))
                .any(|f| names(&f.text, word))
        };
        for (_, line) in dependency_lines(&manifest.text) {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            outcome.note(if code(&name.replace('-', "_")) {
                Ok(())
            } else {
                Err(format!(
                    "{}: `{name}` is listed but never named in the code; take it out",
                    manifest.path
                ))
            });
        }
    }
    outcome
}

/// True if `text` contains `word` as a separate word.
pub(super) fn names(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(inside);
        let after = text[at + word.len()..].chars().next().is_some_and(inside);
        !before && !after
    })
}
