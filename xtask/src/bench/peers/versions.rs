//! `cargo xtask bench versions`: compares two builds of Foxy under S1 to S4. These are the first four
//! scenarios of `bench peers`: memory hits, disk hits, stored misses, and a mix.
//!
//! The speed of a shared machine changes from minute to minute. So the builds run alternately, and the
//! medians are compared. In each round, the older build runs twice. The median of its second runs divided by
//! the median of its first runs shows the noise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::results::Results;
use super::scenario::{self, Scenario};
use super::servers::Kind;
use crate::report::Outcome;
use crate::workspace::target_folder;

/// The values that are compared. A value is compared if its name ends with one of these texts.
const COMPARED: [&str; 3] = [" cpu", " rate", " hits p99"];
/// The runs of a round. The older build has two runs.
const RUNS: [&str; 3] = ["old", "new", "old again"];

/// Options: the builds to compare.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct VersionsArgs {
    /// Older Foxy program, with a `foxy-lab` in the same folder if there is one
    #[arg(long, value_name = "FILE")]
    old: PathBuf,
    /// Newer Foxy program; default: a release build of this tree
    #[arg(long, value_name = "FILE")]
    new: Option<PathBuf>,
    /// Number of rounds; each runs the older build twice and the newer build once
    #[arg(long, value_name = "N", default_value_t = 7)]
    rounds: usize,
    /// Run only these scenarios: s1 to s4
    #[arg(long, value_delimiter = ',', value_name = "SCENARIO")]
    only: Vec<Scenario>,
    /// Run short measurements
    #[arg(long)]
    quick: bool,
    /// Folder for stores
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The measured values of each scenario and name, for each of the three [`RUNS`] of a round.
type Values = BTreeMap<String, [Vec<f64>; RUNS.len()]>;

/// Runs the comparison and prints its results. Fails if a run has errors or wrong answers.
pub(crate) fn run(args: &VersionsArgs) -> Result<Outcome, String> {
    let (mut values, mut outcome) = (Values::new(), Outcome::default());
    for round in 0..args.rounds {
        // Every second round has the reverse order, so that a slow drift favours no build.
        let mut runs: Vec<_> = (0..RUNS.len()).collect();
        if round % 2 == 1 {
            runs.reverse();
        }
        for run in runs {
            println!("   round {}: {}", round + 1, RUNS[run]);
            let results = args.once(run == 1)?;
            for row in &results.rows {
                for (name, value) in &row.values {
                    if COMPARED.iter().any(|end| name.ends_with(end)) {
                        let name = format!("{} {name}", row.scenario);
                        values.entry(name).or_default()[run].push(*value);
                    }
                }
                outcome.note(match row.problems.as_slice() {
                    [] => Ok(()),
                    problems => Err(format!("{}: {}", row.scenario, problems.join("; "))),
                });
            }
        }
    }
    println!("{}", table(&values));
    Ok(outcome)
}

impl VersionsArgs {
    fn once(&self, new: bool) -> Result<Results, String> {
        let target = target_folder()?;
        let all = [Scenario::S1, Scenario::S2, Scenario::S3, Scenario::S4];
        let only = match self.only.as_slice() {
            [] => &all[..],
            some => some,
        };
        let args = super::PeersArgs {
            only: only.to_vec(),
            proxies: vec![Kind::Foxy],
            quick: self.quick,
            resume: false,
            dir: self.dir.clone(),
            out: None,
            foxy: match new {
                true => self.new.clone(),
                false => Some(self.old.clone()),
            },
            keep: false,
            write_docs: false,
            print: false,
        };
        let mut results = Results::open(&folder(&target), false)?;
        let jobs = scenario::jobs(only, &[Kind::Foxy]);
        super::measure(&args, &jobs, &mut results, &target)?;
        Ok(results)
    }
}

fn folder(target: &Path) -> PathBuf {
    target.join("bench/versions")
}

/// The middle value; 0 without values.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn table(values: &Values) -> String {
    let mut text = String::from(
        "| value | old | new | new / old | old / old (noise) |\n| --- | --- | --- | --- | --- |\n",
    );
    for (name, [old, new, again]) in values {
        let (first, second) = (median(old), median(again));
        let both = median(&[old.as_slice(), again.as_slice()].concat());
        text += &format!(
            "| {name} | {both:.2} | {:.2} | {:.3} | {:.3} |\n",
            median(new),
            median(new) / both,
            second / first
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_compared_and_the_noise_is_shown() {
        let runs = [
            vec![1.0, 2.0, 9.0],
            vec![3.0, 3.0, 1.0],
            vec![4.0, 2.0, 1.0],
        ];
        let values = BTreeMap::from([("s1 closed cpu".to_owned(), runs)]);
        let text = table(&values);
        assert!(
            text.contains("| s1 closed cpu | 2.00 | 3.00 | 1.500 | 1.000 |"),
            "{text}"
        );
    }
}
