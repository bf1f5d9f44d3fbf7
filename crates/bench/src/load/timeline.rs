//! The answers over time, in steps of 10 ms. They show how fast the share of hits rises after a restart.

use super::answer::Served;

/// Length of a step, ms.
pub const STEP_MS: u64 = 10;

/// Number of answers and hits per step since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Number of answers and hits in each step.
    pub steps: Vec<(u32, u32)>,
    /// Time of the first correct answer, in ns since the start.
    pub first_answer: Option<u64>,
    /// Time of the first hit, in ns since the start.
    pub first_hit: Option<u64>,
}

/// Greatest number of steps that are kept: one hour.
const MOST: usize = 360_000;

impl Timeline {
    pub(crate) fn add(&mut self, nanos: u64, served: Served) {
        let at = ((nanos / (STEP_MS * 1_000_000)) as usize).min(MOST);
        if at >= self.steps.len() {
            self.steps.resize(at + 1, (0, 0));
        }
        self.steps[at].0 += 1;
        let earlier = |known: Option<u64>| Some(known.map_or(nanos, |k| k.min(nanos)));
        self.first_answer = earlier(self.first_answer);
        if served == Served::Hit {
            self.steps[at].1 += 1;
            self.first_hit = earlier(self.first_hit);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if self.steps.len() < other.steps.len() {
            self.steps.resize(other.steps.len(), (0, 0));
        }
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            mine.0 += theirs.0;
            mine.1 += theirs.1;
        }
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        self.first_answer = least(self.first_answer, other.first_answer);
        self.first_hit = least(self.first_hit, other.first_hit);
    }

    /// The share of hits in the second half of the run. A restarted cache should return to this level.
    #[must_use]
    pub fn later_level(&self) -> f64 {
        share(self.steps.get(self.steps.len() / 2..).unwrap_or_default())
    }

    /// Milliseconds until the share of hits in some window of 100 ms reaches the fraction `part` (0 to 1) of
    /// `level` for the first time.
    #[must_use]
    pub fn reaches(&self, part: f64, level: f64) -> Option<u64> {
        let window = 10.min(self.steps.len().max(1));
        let at = self
            .steps
            .windows(window)
            .position(|steps| steps.iter().any(|s| s.0 > 0) && share(steps) >= part * level)?;
        // The time counts to the first step of the window that has answers.
        let lead = self.steps[at..].iter().position(|s| s.0 > 0).unwrap_or(0);
        Some((at + lead) as u64 * STEP_MS)
    }
}

fn share(steps: &[(u32, u32)]) -> f64 {
    let answers: u64 = steps.iter().map(|s| u64::from(s.0)).sum();
    let hits: u64 = steps.iter().map(|s| u64::from(s.1)).sum();
    hits as f64 / answers.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_is_found() {
        let mut line = Timeline::default();
        let mut other = Timeline::default();
        for n in 0..1000u64 {
            let served = if n < 300 || n % 10 == 0 {
                Served::Miss
            } else {
                Served::Hit
            };
            let into = if n % 2 == 0 { &mut line } else { &mut other };
            into.add((200 + n) * 1_000_000, served);
        }
        line.merge(&other);
        assert_eq!(line.first_answer, Some(200_000_000));
        assert_eq!(line.first_hit, Some(501_000_000));
        assert!((line.later_level() - 0.9).abs() < 0.01);
        let reached = line.reaches(0.9, line.later_level()).unwrap();
        assert!((470..=510).contains(&reached), "{reached}");
        assert_eq!(Timeline::default().reaches(0.9, 1.0), None);
    }
}
