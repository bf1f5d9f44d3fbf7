//! The scenarios S1 to S7 of `bench peers`. Each scenario sends certain requests to a proxy, and records the
//! results.

mod device;
mod mix;
mod ram;
mod restart;
mod store;
mod sweep;

use std::str::FromStr;

use super::load::Run;
use super::results::Row;
use super::servers::Kind;

/// Memory limit in bytes. It includes the page cache, so that no peer keeps its whole store in memory.
const LIMIT: u64 = 1 << 30;

/// One scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scenario {
    /// Hits in memory.
    S1,
    /// Hits on disk.
    S2,
    /// Misses that are stored.
    S3,
    /// The mix of hits and misses of the Foxy paper.
    S4,
    /// Restarts of a proxy with the store that S3 filled.
    S5,
    /// The mix of S4, with rising load up to saturation.
    S6,
    /// The mix of S4, with rising load up to saturation, and with the store on a slow drive.
    S7,
}

pub(super) const SCENARIOS: [Scenario; 7] = [
    Scenario::S1,
    Scenario::S2,
    Scenario::S3,
    Scenario::S4,
    Scenario::S5,
    Scenario::S6,
    Scenario::S7,
];

impl Scenario {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::S1 => "s1",
            Self::S2 => "s2",
            Self::S3 => "s3",
            Self::S4 => "s4",
            Self::S5 => "s5",
            Self::S6 => "s6",
            Self::S7 => "s7",
        }
    }

    /// True if the scenario is useful for this kind of server.
    pub(super) const fn suits(self, kind: Kind) -> bool {
        match kind {
            Kind::Floor | Kind::FoxyReverse => matches!(self, Self::S1),
            Kind::Device => matches!(self, Self::S2 | Self::S3),
            Kind::FoxyPublished | Kind::FoxyFiles => matches!(self, Self::S6 | Self::S7),
            _ => true,
        }
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = SCENARIOS.into_iter().find(|s| s.name() == text);
        found.ok_or_else(|| format!("`{text}` is none of s1 to s7"))
    }
}

/// One or more scenarios that use the same server instance: S2 and S5 use the store that S3 fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) kind: Kind,
    pub(super) scenarios: Vec<Scenario>,
}

/// All jobs for the requested scenarios and kinds.
pub(super) fn jobs(scenarios: &[Scenario], kinds: &[Kind]) -> Vec<Job> {
    let groups: [&[Scenario]; 5] = [
        &[Scenario::S1],
        &[Scenario::S3, Scenario::S2, Scenario::S5],
        &[Scenario::S4],
        &[Scenario::S6],
        &[Scenario::S7],
    ];
    let mut jobs = Vec::new();
    for group in groups {
        for kind in kinds {
            let wanted = |s: &Scenario| scenarios.contains(s) && s.suits(*kind);
            let scenarios: Vec<_> = group.iter().copied().filter(wanted).collect();
            if !scenarios.is_empty() {
                jobs.push(Job {
                    kind: *kind,
                    scenarios,
                });
            }
        }
    }
    jobs
}

/// The function that saves each finished row.
pub(super) type Keep<'a> = &'a mut dyn FnMut(Row) -> Result<(), String>;

/// Runs a job.
pub(super) fn run(run: &Run, job: &Job, keep: Keep<'_>) -> Result<(), String> {
    match (job.kind, job.scenarios[0]) {
        (Kind::Device, _) => device::run(run, &job.scenarios, keep),
        (kind, Scenario::S1) => keep(ram::run(run, kind)?),
        (kind, Scenario::S4) => keep(mix::run(run, kind)?),
        (kind, Scenario::S6) => keep(sweep::to_saturation(run, kind)?),
        (kind, Scenario::S7) => keep(sweep::on_a_slow_drive(run, kind)?),
        (kind, _) => store::run(run, kind, &job.scenarios, keep),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_instance_serves_the_scenarios_of_its_store() {
        let scenarios = [Scenario::S1, Scenario::S2, Scenario::S5];
        let jobs = jobs(&scenarios, &[Kind::Floor, Kind::Foxy, Kind::Device]);
        let told: Vec<_> = jobs.iter().map(|j| (j.kind, j.scenarios.len())).collect();
        let want = [
            (Kind::Floor, 1),
            (Kind::Foxy, 1),
            (Kind::Foxy, 2),
            (Kind::Device, 1),
        ];
        assert_eq!(told, want);
        assert_eq!("s3".parse(), Ok(Scenario::S3));
        assert!("s8".parse::<Scenario>().is_err());
    }
}
