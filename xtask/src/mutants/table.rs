//! The tables in the documents: each row contains a rule, and the test that fails when the rule is broken or
//! the reason why no test fails.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::rules::Rule;
use super::{Killer, explained};
use crate::workspace::root;

const BEGIN: &str = "<!-- mutants: begin (written by `cargo xtask mutants --write`) -->\n";
const END: &str = "<!-- mutants: end -->\n";
const NOBODY: &str = "no test";

/// Documents, and the crates whose rules are in the table of each document.
const DOCUMENTS: &[(&str, &[&str])] = &[
    ("docs/recovery.md", &["format", "store"]),
    ("docs/safety-rules.md", &["http-rules", "proxy"]),
];

/// The document with the table of a crate, given by the name of its folder.
pub(crate) fn document(package: &str) -> &'static str {
    let own = DOCUMENTS.iter().find(|(_, of)| of.contains(&package));
    own.map_or("no document", |(name, _)| name)
}

/// Splits a document into the text before its table, the table, and the text after it.
fn text(name: &str) -> Result<(String, String, String), String> {
    let text = std::fs::read_to_string(root().join(name));
    let text = text.map_err(|error| format!("{name} cannot be read: {error}"))?;
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (table, after) = rest.split_once(END)?;
        Some((before.to_owned(), table.to_owned(), after.to_owned()))
    });
    parts.ok_or(format!(
        "{name} has no table of mutants between its two marks"
    ))
}

/// Reads rules and their tests from the documents.
///
/// # Errors
/// Returned if a document has no table of rules.
pub(crate) fn read() -> Result<HashMap<String, Killer>, String> {
    let mut told = HashMap::new();
    for (name, _) in DOCUMENTS {
        let (_, table, _) = text(name)?;
        told.extend(rows(&table));
    }
    Ok(told)
}

fn rows(table: &str) -> impl Iterator<Item = (String, Killer)> {
    let rows = table.lines().filter(|line| line.starts_with("| "));
    rows.skip(1).filter_map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, killer] = cells[..] else {
            return None;
        };
        let test = killer.trim_matches('`').split_once(": ");
        let killer = match test {
            _ if killer.starts_with(NOBODY) => Killer::Nobody,
            Some((package, test)) => Killer::Test(package.to_owned(), test.to_owned()),
            None => return None,
        };
        Some((name.to_owned(), killer))
    })
}

/// Writes the tables again.
///
/// # Errors
/// Returned if a document cannot be read or written.
pub(crate) fn write(rules: &[Rule], told: &HashMap<String, Killer>) -> Result<(), String> {
    for (name, of) in DOCUMENTS {
        let own = rules.iter().filter(|rule| of.contains(&&rule.package[..]));
        let (before, _, after) = text(name)?;
        let text = format!("{before}{BEGIN}{}{END}{after}", render(own, told));
        let written = std::fs::write(root().join(name), text);
        written.map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn render<'a>(rules: impl IntoIterator<Item = &'a Rule>, told: &HashMap<String, Killer>) -> String {
    let mut out = "| rule | the test that notices when it is broken |\n|---|---|\n".to_owned();
    for rule in rules {
        let killer = match told.get(&rule.name) {
            Some(Killer::Test(package, test)) => format!("`{package}: {test}`"),
            Some(Killer::Nobody) => {
                let why = explained::why(&rule.name).unwrap_or("not found yet");
                format!("{NOBODY}: {why}")
            }
            None => continue,
        };
        let _ = writeln!(out, "| {} | {killer} |", rule.name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let names = ["a: one", "b: two"];
        let rules: Vec<_> = (names.iter())
            .map(|name| Rule {
                name: (*name).to_owned(),
                package: "store".to_owned(),
                path: String::new(),
                line: 1,
            })
            .collect();
        let test = Killer::Test("store".to_owned(), "tests::x::y".to_owned());
        let told = HashMap::from([
            (names[0].to_owned(), test),
            (names[1].to_owned(), Killer::Nobody),
        ]);
        let read: HashMap<_, _> = rows(&render(&rules, &told)).collect();
        assert_eq!(read, told);
    }
}
