//! House rules that rustfmt and clippy do not check. The message of each rule describes what to do.
//!
//! A rule is a function from a file to complaints; the list of rules is in [`run`].

mod links;
mod manifests;
mod names;
mod rules;
mod types;

use crate::report::Outcome;
use crate::workspace::{Source, sources};

/// Complaints about one file, without its path.
type Rule = fn(&Source) -> Vec<String>;

const RULES: &[Rule] = &[
    rules::length,
    rules::headline,
    rules::leftovers,
    rules::machine_paths,
    rules::clocks,
    rules::reasons_for_exceptions,
    rules::white_space,
    rules::scenario_length,
    links::relative_links,
    names::glossary,
    manifests::shared_settings,
];

/// Applies every rule to every file.
pub(crate) fn run() -> Outcome {
    let files = match sources() {
        Ok(files) => files,
        Err(error) => return Outcome::single(Err(error)),
    };
    let mut outcome = Outcome::default();
    for file in &files {
        let complaints: Vec<_> = RULES.iter().flat_map(|rule| rule(file)).collect();
        if complaints.is_empty() {
            outcome.passed += 1;
        }
        for complaint in complaints {
            outcome
                .complaints
                .push(format!("{}: {complaint}", file.path));
        }
    }
    outcome.join(manifests::unused_dependencies(&files));
    outcome.join(names::guides(&files));
    outcome.join(types::sizes(&files));
    outcome
}

#[cfg(test)]
mod tests;
