//! A line of the report of the memory measurement, and its judgement.

use std::time::Duration;

use super::memory::Peaks;
use super::tally::Tally;
use super::watch::Summary;

/// The admin address must answer within this time.
const HEALTH: Duration = Duration::from_millis(100);
/// Permitted excess over the budget, in percent.
const EXCESS: u64 = 10;

/// Results of a load.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) name: String,
    /// Memory budget, or limit of the control group, in bytes.
    pub(super) budget: u64,
    /// True if `budget` is the limit of a control group.
    pub(super) grouped: bool,
    /// Resident memory before the load.
    pub(super) before: u64,
    /// Peak of resident memory from the start of the process until the load begins.
    pub(super) peak_before: u64,
    pub(super) peaks: Peaks,
    /// Resident memory some seconds after the load.
    pub(super) after: u64,
    /// The requests of the watching clients while the load runs.
    pub(super) watched: Summary,
    /// The health checks while the load runs.
    pub(super) health: Summary,
    /// Results of the load's well-behaved clients.
    pub(super) own: Option<Tally>,
    /// Results of the load's other clients.
    pub(super) others: Tally,
    /// Peak memory of the control group, in bytes.
    pub(super) group_peak: Option<u64>,
    /// Exit status of Foxy, if it ended.
    pub(super) end: Option<String>,
    pub(super) took: Duration,
    pub(super) notes: Vec<String>,
    /// Failures other than failed requests.
    pub(super) problems: Vec<String>,
}

impl Row {
    /// Returns descriptions of the limits that were not kept; empty if all limits were kept.
    pub(super) fn broken(&self) -> Vec<String> {
        let name = &self.name;
        let problem = |problem: &String| format!("{name}: {problem}");
        let mut broken: Vec<_> = self.problems.iter().map(problem).collect();
        if let Some(end) = &self.end {
            broken.push(format!("{name}: foxy {end}"));
        }
        let most = self.peaks.sum.max(self.peak_before);
        let allowed = self.budget + self.budget * EXCESS / 100;
        // In a control group the kernel enforces the limit.
        if !self.grouped && most > allowed {
            broken.push(format!(
                "{name}: {} of memory, {} are allowed",
                mebibytes(most),
                mebibytes(allowed)
            ));
        }
        let failed = [
            ("requests beside the load", Some(&self.watched.tally)),
            ("requests of the load", self.own.as_ref()),
            ("health checks", Some(&self.health.tally)),
        ];
        for (which, tally) in failed {
            let Some(tally) = tally else { continue };
            if tally.failed() > 0 {
                broken.push(format!("{name}: failed {which}: {}", tally.text()));
            }
            if tally.right == 0 && self.end.is_none() {
                broken.push(format!("{name}: no {which} succeeded"));
            }
        }
        broken
    }

    /// Deviations that do not count as failures, because they also depend on the machine.
    pub(super) fn slow(&self) -> Option<String> {
        (self.health.max > HEALTH).then(|| {
            format!(
                "{}: a health check took {}, over {}",
                self.name,
                milliseconds(self.health.max),
                milliseconds(HEALTH)
            )
        })
    }
}

/// Formats a number of bytes in MiB.
pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Formats a time in ms.
pub(super) fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::super::conn::Fault;
    use super::*;

    fn good() -> Row {
        let mut row = Row {
            name: "x".to_owned(),
            budget: 100 << 20,
            ..Row::default()
        };
        row.peaks.sum = 109 << 20;
        row.watched.tally.right = 9;
        row.health.tally.right = 9;
        row
    }

    #[test]
    fn a_row_within_the_limits_is_not_broken() {
        assert_eq!(good().broken(), Vec::<String>::new());
    }

    #[test]
    fn each_limit_breaks_a_row() {
        let mut row = good();
        row.peaks.sum = 111 << 20;
        assert_eq!(row.broken().len(), 1);
        let mut row = good();
        row.peak_before = 111 << 20;
        assert_eq!(row.broken().len(), 1);
        let mut row = good();
        row.watched.tally.add(Err(Fault::Cut));
        assert_eq!(row.broken().len(), 1);
        let mut row = good();
        row.own = Some(Tally::default());
        assert_eq!(row.broken().len(), 1);
        let mut row = good();
        row.end = Some("ended".to_owned());
        assert_eq!(row.broken().len(), 1);
        let mut row = good();
        row.health.max = HEALTH * 2;
        assert!(row.broken().is_empty() && row.slow().is_some());
    }
}
