//! `docs/http-caching.md` names a function and a test for each rule. This test reads the table and fails if
//! one of these functions or tests no longer exists, so that the document stays correct.

use std::fs;
use std::path::{Path, PathBuf};

const LEVELS: [&str; 5] = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY"];

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The rows of a section's table: source, level, rule, function, test.
fn rows(title: &str) -> Vec<Vec<String>> {
    let document = fs::read_to_string(crate_dir().join("../../docs/http-caching.md"));
    let document = document.unwrap_or_else(|error| panic!("docs/http-caching.md: {error}"));
    let section = document.split(title).nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with("| "));
    let cells = |line: &str| {
        line.trim_matches('|')
            .split(" | ")
            .map(|c| c.trim().to_owned())
            .collect()
    };
    lines.skip(1).map(cells).collect()
}

/// The crate to which a table belongs.
#[derive(Clone, Copy)]
enum About {
    Rules,
    Proxy,
}

/// The source text of the module with this path. The module is a file, or a file in a folder.
fn source(about: About, module: &[&str]) -> Option<String> {
    let mut path: PathBuf = match about {
        About::Rules => crate_dir().join("src"),
        About::Proxy => crate_dir().join("../proxy"),
    };
    match (about, module) {
        (About::Rules, _) => path.extend(module),
        (About::Proxy, ["tests", rest @ ..]) => {
            path.push("tests/it");
            path.extend(rest);
        }
        (About::Proxy, _) => {
            path.push("src");
            path.extend(module);
        }
    }
    let file = fs::read_to_string(path.with_extension("rs")).ok();
    file.or_else(|| fs::read_to_string(path.join("mod.rs")).ok())
}

/// The error in a `module::function` path; `None` if it names a function.
fn missing(about: About, path: &str, test: bool) -> Option<String> {
    let mut module: Vec<&str> = path.trim_matches('`').split("::").collect();
    let name = module.pop()?;
    let in_file = source(about, &module);
    // A short test module is inside the file of the module that it tests.
    let text = in_file.or_else(|| source(about, module.strip_suffix(&["tests"])?));
    let Some(text) = text else {
        return Some(format!("{path}: no such module"));
    };
    let at = text
        .match_indices(&format!("fn {name}"))
        .map(|(at, _)| at)
        .find(|at| text[at + 3 + name.len()..].starts_with(['(', '<']));
    match at {
        None => Some(format!("{path}: no such function")),
        Some(at) if test && !text[..at].trim_end().ends_with("#[test]") => {
            Some(format!("{path}: not a test"))
        }
        Some(_) => None,
    }
}

fn check(about: About, title: &str, least: usize) {
    let rows = rows(title);
    assert!(
        rows.len() > least,
        "the table has {} rows only: has its shape changed?",
        rows.len()
    );
    let mut wrong = Vec::new();
    for row in &rows {
        let [source, level, rule, function, test] = &row[..] else {
            wrong.push(format!("{row:?}: not five cells"));
            continue;
        };
        if source.is_empty() || rule.is_empty() || !LEVELS.contains(&level.as_str()) {
            wrong.push(format!("{row:?}: unknown level or empty cell"));
        }
        wrong.extend(missing(about, function, false));
        wrong.extend(missing(about, test, true));
    }
    assert!(
        wrong.is_empty(),
        "docs/http-caching.md is out of date:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_rule_names_a_function_and_a_test_that_exist() {
    check(About::Rules, "## Decided in http-rules", 100);
    check(About::Proxy, "## Carried out by the proxy", 30);
}

/// The sections with a MUST or SHOULD for caches in RFC 9111, 9110, 5861, 8246, 9211 and 9213. Each of these
/// sections must have a row in a table.
const SECTIONS: [(&str, &[&str]); 6] = [
    (
        "9111",
        &[
            "1.2.2", "2", "3", "3.1", "3.2", "3.3", "3.4", "3.5", "4", "4.1", "4.2.1", "4.2.2",
            "4.2.3", "4.2.4", "4.3.1", "4.3.2", "4.3.3", "4.3.4", "4.3.5", "4.4", "5.1", "5.2",
            "5.2.1.1", "5.2.1.2", "5.2.1.3", "5.2.1.4", "5.2.1.5", "5.2.1.6", "5.2.1.7", "5.2.2.1",
            "5.2.2.2", "5.2.2.3", "5.2.2.4", "5.2.2.5", "5.2.2.6", "5.2.2.7", "5.2.2.8", "5.2.2.9",
            "5.2.2.10", "5.2.3", "5.3", "5.4",
        ],
    ),
    (
        "9110",
        &[
            "5.6.7", "6.6.1", "7.6.1", "7.6.3", "7.7", "8.8.2.2", "8.8.3", "8.8.3.2", "9.3.1",
            "9.3.2", "9.3.3", "12.5.5", "13.1", "13.1.1", "13.1.2", "13.1.3", "13.1.4", "13.1.5",
            "13.2.1", "13.2.2", "14.1.1", "14.1.2", "14.2", "14.4", "14.6", "15.1", "15.2",
            "15.3.7", "15.3.7.1", "15.3.7.2", "15.3.7.3", "15.4.5", "15.5.17",
        ],
    ),
    ("5861", &["3", "4"]),
    ("8246", &["2"]),
    (
        "9211",
        &["2", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8"],
    ),
    ("9213", &["2.1", "2.2", "3.1"]),
];

#[test]
fn every_section_that_binds_caches_has_a_row() {
    let tables = ["## Decided in http-rules", "## Carried out by the proxy"];
    let named: Vec<String> = tables
        .iter()
        .flat_map(|title| rows(title))
        .filter_map(|row| row.first().cloned())
        .collect();
    let mut absent = Vec::new();
    for (rfc, sections) in SECTIONS {
        for section in sections {
            let source = format!("{rfc} {section}");
            if !named.contains(&source) {
                absent.push(source);
            }
        }
    }
    assert!(absent.is_empty(), "no row for {absent:?}");
}

#[test]
fn the_check_notices_what_is_gone() {
    assert_eq!(missing(About::Rules, "`date::parse`", false), None);
    assert!(
        missing(About::Rules, "`date::pars`", false).is_some(),
        "a prefix is not the function"
    );
    assert!(missing(About::Rules, "`nowhere::parse`", false).is_some());
    assert!(
        missing(About::Rules, "`date::parse`", true).is_some(),
        "not a test"
    );
    assert_eq!(
        missing(
            About::Rules,
            "`text::tests::directives_are_split_outside_quotes`",
            true
        ),
        None
    );
}
