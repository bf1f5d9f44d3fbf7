//! Idle time of a disk, minute by minute, as the authors of Hummingbird count it (table 1 of the 1999 draft).
//! An operation is a block of 64 KB and takes a fixed time. Work that does not fit into a second carries over
//! to the next second. The idle time of a minute is the unused part of its 60 seconds.

use crate::Request;

/// Bytes of an operation.
const BLOCK: u64 = 64 << 10;
/// Maximum length of a log in seconds: a year. Without this limit, one wrong date in a log could use all
/// memory.
const SECONDS_MAX: usize = 366 * 86_400;

/// Number of operations in each second.
#[derive(Clone, Debug, Default)]
pub struct IdleTime {
    ops: Vec<u64>,
    first_ms: Option<i64>,
    /// Number of requests more than a year after the first request. They are left out.
    late: u64,
}

impl IdleTime {
    /// Counts one request. The request must have a time. A request that is dated before the first request
    /// counts as if it had the time of the first request.
    pub fn add(&mut self, request: &Request) {
        let first = *self.first_ms.get_or_insert(request.time_ms);
        let passed = request.time_ms.saturating_sub(first).max(0) / 1_000;
        let second = usize::try_from(passed).unwrap_or(SECONDS_MAX);
        if second >= SECONDS_MAX {
            self.late += 1;
            return;
        }
        if self.ops.len() <= second {
            self.ops.resize(second + 1, 0);
        }
        self.ops[second] += request.size.div_ceil(BLOCK);
    }

    /// Idle seconds of each complete minute, in ascending order, if an operation takes `millis` ms.
    #[must_use]
    pub fn minutes(&self, millis: f64) -> Vec<f64> {
        let (mut left, mut minutes) = (0.0f64, Vec::new());
        for minute in self.ops.chunks_exact(60) {
            let mut idle = 0.0;
            for ops in minute {
                left += *ops as f64 * millis / 1e3;
                idle += (1.0 - left).max(0.0);
                left = (left - 1.0).max(0.0);
            }
            minutes.push(idle);
        }
        minutes.sort_by(f64::total_cmp);
        minutes
    }

    /// Minimum, median and maximum idle seconds of the complete minutes, if an operation takes `millis` ms.
    /// All three are 0 if there is no complete minute.
    #[must_use]
    pub fn idle(&self, millis: f64) -> [f64; 3] {
        let minutes = self.minutes(millis);
        [0.0, 0.5, 1.0].map(|share| quantile(&minutes, share))
    }

    /// For each time of an operation in `speeds` (ms), returns a table line and a bar chart. The chart shows
    /// the share of minutes by idle time.
    #[must_use]
    pub fn report(&self, speeds: &[f64]) -> String {
        let mut text = String::from("\nidle time of a disk per minute, by time for 64 KB\n");
        if self.late > 0 {
            text += &format!(
                "{} requests are a year later than the first: left out\n",
                self.late
            );
        }
        for millis in speeds {
            let minutes = self.minutes(*millis);
            let [least, median, most] = [0.0, 0.5, 1.0].map(|share| quantile(&minutes, share));
            text += &format!(
                "\n{millis} ms: least {least:.1} s, median {median:.1} s, most {most:.1} s, in {} \
                 whole minutes\n",
                minutes.len()
            );
            text += &bars(&minutes);
        }
        text
    }
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((last * share) as usize).copied().unwrap_or(0.0)
}

/// A histogram of idle time in classes of five seconds. The length of a bar is the share of minutes
/// in the class.
fn bars(minutes: &[f64]) -> String {
    const CLASSES: usize = 12;
    const LONGEST: usize = 50;
    let mut counts = [0usize; CLASSES];
    for idle in minutes {
        counts[((idle / 5.0) as usize).min(CLASSES - 1)] += 1;
    }
    let most = counts.iter().max().copied().unwrap_or(0).max(1);
    let bar = |(class, count): (usize, &usize)| {
        let length = (count * LONGEST).div_ceil(most);
        let percent = 100.0 * *count as f64 / minutes.len().max(1) as f64;
        let (from, to) = (5 * class, 5 * class + 5);
        format!(
            "  {from:>2} to {to:>2} s {percent:>5.1} % {}\n",
            "#".repeat(length)
        )
    };
    counts.iter().enumerate().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(ops: &[u64]) -> IdleTime {
        IdleTime {
            ops: ops.to_vec(),
            ..IdleTime::default()
        }
    }

    #[test]
    fn what_a_second_cannot_serve_carries_over() {
        let mut ops = [0; 60];
        ops[0] = 150;
        let time = seconds(&ops);
        assert!((time.idle(10.0)[1] - 58.5).abs() < 1e-9);
        assert!((time.idle(500.0)[1]).abs() < 1e-9);
    }

    #[test]
    fn requests_fall_into_their_seconds_and_times_may_be_absurd() {
        let mut time = IdleTime::default();
        for (time_ms, size) in [
            (5_000, 1),
            (5_999, 65_537),
            (6_000, 0),
            (4_000, 1),
            (i64::MAX, 1),
        ] {
            time.add(&Request {
                time_ms,
                size,
                ..Request::default()
            });
        }
        assert_eq!(time.ops, [4, 0]);
        assert!(time.late == 1 && time.report(&[12.0]).contains("1 requests are a year later"));
    }

    #[test]
    fn the_figure_has_all_minutes() {
        let mut ops = vec![0; 120];
        ops[..60].fill(50);
        let text = seconds(&ops).report(&[12.0]);
        assert!(
            text.contains("12 ms: least 24.0 s, median 24.0 s, most 60.0 s, in 2"),
            "{text}"
        );
        assert!(
            text.contains("20 to 25 s  50.0 % ####") && text.contains("55 to 60 s  50.0 % ####")
        );
        assert!(
            seconds(&[1; 59])
                .report(&[12.0])
                .contains("in 0 whole minutes")
        );
    }
}
