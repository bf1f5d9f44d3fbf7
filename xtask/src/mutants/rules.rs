//! The safety rules that the sources mark.

use crate::workspace::sources;

/// A rule in the sources.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) name: String,
    /// Folder name of the rule's crate.
    pub(crate) package: String,
    pub(crate) path: String,
    /// Number of the line in which the rule is marked, from 1.
    pub(crate) line: usize,
}

/// Each crate with rules (by the name of its folder), and the packages whose tests guard these rules. If a
/// rule is broken, one of these tests must fail.
const TESTED_BY: &[(&str, &[&str])] = &[
    ("format", &["foxy-format", "foxy-store"]),
    ("store", &["foxy-store"]),
    ("http-rules", &["foxy-http-rules", "foxy-proxy"]),
    ("proxy", &["foxy-proxy"]),
];

impl Rule {
    /// Packages whose tests guard this rule. If the rule is broken, one of these tests must fail.
    pub(crate) fn tested_by(&self) -> &'static [&'static str] {
        let known = TESTED_BY.iter().find(|(name, _)| *name == self.package);
        known.map_or(&[], |(_, packages)| packages)
    }
}

/// Returns all rules, ordered by crate and name.
///
/// # Errors
/// Returned if the name of a rule is not a plain text, or if two places use the same name.
pub(crate) fn find() -> Result<Vec<Rule>, String> {
    let mut rules: Vec<Rule> = Vec::new();
    for source in sources()? {
        let mut parts = source.path.split('/');
        let is_crate = parts.next() == Some("crates");
        let package = parts.next().unwrap_or_default().to_owned();
        let tested = TESTED_BY.iter().any(|(name, _)| *name == package);
        if !is_crate || !tested || !source.is("rs") {
            continue;
        }
        for (line, name) in names(&source.text) {
            let here = format!("{}:{line}", source.path);
            let name = name.ok_or(format!("{here}: the name of a rule is a plain text"))?;
            if let Some(other) = rules.iter().find(|rule| rule.name == name) {
                let there = format!("{}:{}", other.path, other.line);
                return Err(format!("{here}: the rule \"{name}\" is at {there} as well"));
            }
            rules.push(Rule {
                name,
                package: package.clone(),
                path: source.path.clone(),
                line,
            });
        }
    }
    let order = |rule: &Rule| TESTED_BY.iter().position(|(name, _)| *name == rule.package);
    rules.sort_by(|a, b| (order(a), &a.name).cmp(&(order(b), &b.name)));
    Ok(rules)
}

/// Lines and names of the rules in a text; `None` for a name that cannot be read.
fn names(text: &str) -> impl Iterator<Item = (usize, Option<String>)> {
    let mark = concat!("rule", "!(");
    text.match_indices(mark).map(move |(at, _)| {
        let line = 1 + text[..at].matches('\n').count();
        let rest = text[at + mark.len()..].trim_start();
        let name = rest
            .strip_prefix('"')
            .and_then(|rest| rest.split_once('"'))
            .map(|(name, _)| name.to_owned())
            .filter(|name| !name.contains(['|', '\\', '\n']));
        (line, name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_across_lines() {
        let text = concat!(
            "a\nlet b = rule",
            "!(\n    \"first: one\",\n x, y);\nrule",
            "!(z, x, y)"
        );
        let found: Vec<_> = names(text).collect();
        assert_eq!(found, [(2, Some("first: one".to_owned())), (5, None)]);
    }
}
