//! `cargo xtask mutants`: every safety rule is broken once, and a test must fail.
//!
//! The sources mark a rule with `foxy_base::rule!`. A mutant is the code with one rule broken. The test
//! programs are built once and contain all mutants. Then the tests run once for each mutant, with this mutant
//! selected. The tables in docs/recovery.md and docs/safety-rules.md contain, for each rule, the test that
//! failed when the rule was broken, or the reason why no test fails. For each rule, the next run of the
//! command starts with this test.

mod explained;
mod program;
mod rules;
mod table;

use std::collections::HashMap;
use std::sync::Mutex;

use self::explained::{EXPLAINED, OPEN};
use self::program::{End, Program};
use self::rules::Rule;
use crate::report::Outcome;

/// Options.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct MutantsArgs {
    /// Break only rules whose name contains this text
    #[arg(value_name = "TEXT")]
    only: Option<String>,
    /// Break only rules of this crate, given by the name of its folder
    #[arg(long, value_name = "CRATE")]
    of: Option<String>,
    /// Write the tables in the documents again (all rules, or only the chosen rules)
    #[arg(long)]
    write: bool,
    /// Run only quick tests; slower tests may notice the remaining rules
    #[arg(long)]
    quick: bool,
    /// Number of mutants that run at the same time; each uses one processor
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

/// The test that fails when a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Killer {
    /// Crate, and name of the test.
    Test(String, String),
    /// No test fails.
    Nobody,
}

/// Checks that the tables contain exactly the rules of the sources, and that each rule has a test or is in
/// [`EXPLAINED`] or [`OPEN`]. This is fast, because no test is run.
pub(crate) fn check() -> Outcome {
    let (rules, told) = match rules::find().and_then(|rules| Ok((rules, table::read()?))) {
        Ok(both) => both,
        Err(complaint) => return Outcome::single(Err(complaint)),
    };
    let mut outcome = Outcome::default();
    for rule in &rules {
        outcome.note(match told.get(&rule.name) {
            None => Err(format!(
                "{}:{}: {} does not name the rule \"{}\"; `cargo xtask mutants --write \"{}\"` adds it",
                rule.path,
                rule.line,
                table::document(&rule.package),
                rule.name,
                rule.name
            )),
            Some(Killer::Nobody) if !explained::is_known(&rule.name) => Err(format!(
                "no test notices that the rule \"{}\" is broken; write one, or explain it in \
                 xtask/src/mutants/explained.rs",
                rule.name
            )),
            Some(_) => Ok(()),
        });
    }
    let known = |name: &str| rules.iter().any(|rule| rule.name == name);
    let explained = EXPLAINED.iter().map(|(name, _)| name);
    let explained = explained.chain(OPEN).map(|name| (*name).to_owned());
    for name in told.into_keys().chain(explained) {
        if !known(&name) {
            outcome.note(Err(format!("there is no rule \"{name}\" in the sources")));
        }
    }
    outcome
}

/// Breaks the rules one by one.
pub(crate) fn run(args: &MutantsArgs) -> Outcome {
    let rules = rules::find().and_then(|rules| Ok((rules, table::read()?)));
    let (mut rules, mut told) = match rules {
        Ok(both) => both,
        Err(complaint) => return Outcome::single(Err(complaint)),
    };
    let all = rules.clone();
    if let Some(text) = &args.only {
        rules.retain(|rule| rule.name.contains(text.as_str()));
    }
    if let Some(name) = &args.of {
        rules.retain(|rule| rule.package == *name);
    }
    let crates = rules.iter().flat_map(Rule::tested_by);
    let programs = match program::build(crates.copied()) {
        Ok(programs) => programs,
        Err(complaint) => return Outcome::single(Err(complaint)),
    };
    if let Err(complaint) = killers_pass(&programs, &told) {
        return Outcome::single(Err(complaint));
    }
    let found = break_all(&rules, &programs, &told, args);
    let mut outcome = Outcome::default();
    for (rule, killer) in rules.iter().zip(found) {
        let alone = killer == Killer::Nobody && explained::why(&rule.name).is_none();
        outcome.note(match alone {
            true => Err(format!(
                "{}:{}: no test notices that the rule \"{}\" is broken",
                rule.path, rule.line, rule.name
            )),
            false => Ok(()),
        });
        told.insert(rule.name.clone(), killer);
    }
    if args.write {
        outcome.note(table::write(&all, &told));
    }
    outcome
}

/// Checks that the tests in the tables pass while no rule is broken. A test that always fails would seem to
/// guard every rule.
fn killers_pass(programs: &[Program], told: &HashMap<String, Killer>) -> Result<(), String> {
    for program in programs {
        let own = told.values().filter_map(|killer| match killer {
            Killer::Test(package, test) if package == program.short() => Some(test.clone()),
            _ => None,
        });
        let mut own: Vec<_> = own.collect();
        own.sort_unstable();
        own.dedup();
        if let End::Failed(test) = program.run("", &own) {
            return Err(format!("{test} of {} fails as it is", program.package));
        }
    }
    Ok(())
}

fn break_all(
    rules: &[Rule],
    programs: &[Program],
    told: &HashMap<String, Killer>,
    args: &MutantsArgs,
) -> Vec<Killer> {
    let next = Mutex::new(0..rules.len());
    let found = Mutex::new(vec![Killer::Nobody; rules.len()]);
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                while let Some(at) = next.lock().ok().and_then(|mut next| next.next()) {
                    let rule = &rules[at];
                    let killer = break_one(rule, programs, told.get(&rule.name), args.quick);
                    match &killer {
                        Killer::Test(_, test) => println!("   {}: {test}", rule.name),
                        Killer::Nobody => println!("   {}: NOBODY NOTICES", rule.name),
                    }
                    if let Ok(mut found) = found.lock() {
                        found[at] = killer;
                    }
                }
            });
        }
    });
    found.into_inner().unwrap_or_default()
}

/// Breaks one rule. First runs the test `known`, if there is one, because it failed for this rule in an
/// earlier run. Then runs the quick tests, and then the other tests.
fn break_one(
    rule: &Rule,
    programs: &[Program],
    known: Option<&Killer>,
    quick_alone: bool,
) -> Killer {
    let own = || {
        let names = rule.tested_by().iter();
        names.flat_map(|name| programs.iter().filter(move |p| p.package == *name))
    };
    if let Some(Killer::Test(package, test)) = known {
        let mut of = own().filter(|p| p.short() == package);
        let noticed = |p: &Program| p.run(&rule.name, std::slice::from_ref(test)) != End::Passed;
        if of.any(noticed) {
            return Killer::Test(package.clone(), test.clone());
        }
    }
    let order = if quick_alone {
        &[true][..]
    } else {
        &[true, false]
    };
    for quick in order.iter().copied() {
        for program in own() {
            if let End::Failed(test) = program.run(&rule.name, &program.tests(quick)) {
                return Killer::Test(program.short().to_owned(), test);
            }
        }
    }
    Killer::Nobody
}
