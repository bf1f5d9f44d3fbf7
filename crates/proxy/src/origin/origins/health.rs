//! The health of one origin, derived from answers to requests and to checks. This module does no I/O, and
//! callers pass the time to it.

use std::time::Duration;

use foxy_base::MonoTime;

/// Longest time between two errors that count as errors in a row (a series).
const SERIES: Duration = Duration::from_secs(10);
/// Longest time for which an origin is left out, unless the configured time ([`HealthRules::out`]) is longer.
const OUT_MAX: Duration = Duration::from_secs(300);
/// Time for which an answer with status 5xx counts as a request under way, in nanoseconds. Without this rule,
/// an origin that fails fast would have the fewest requests under way, and so it would get the most requests.
const ERROR_COUNTS: u64 = 1_000_000_000;
/// Number of parts into which the time [`ERROR_COUNTS`] is divided.
const PARTS: usize = 10;
/// Fraction of its weight that an origin has at the beginning of its slow start. The slow start is the time
/// after the return of an origin, in which its share of requests grows.
const FIRST_SHARE: f64 = 0.1;

/// Rules for leaving out an origin (sending it no requests), and for its return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthRules {
    /// Errors in a row after which the origin is left out. If it is 0, an origin is never left out because of
    /// failed requests.
    pub errors: u32,
    /// Time for which the origin is left out the first time. If the origin fails again soon after its return,
    /// it is left out for twice as long as the last time, but at most for five minutes. If `out` is longer
    /// than five minutes, it is always left out for `out`.
    pub out: Duration,
    /// Time from the return of the origin until it has its full share of requests.
    pub slow_start: Duration,
    /// Number of failed checks in a row after which the origin is down.
    pub fall: u32,
    /// Number of successful checks in a row after which the origin is up again.
    pub rise: u32,
}

impl Default for HealthRules {
    fn default() -> Self {
        Self {
            errors: 5,
            out: Duration::from_secs(10),
            slow_start: Duration::from_secs(30),
            fall: 3,
            rise: 2,
        }
    }
}

/// The health of an origin, in words that people and programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthState {
    /// The origin gets its share of requests.
    Up,
    /// The origin gets a growing part of its share.
    SlowStart,
    /// The origin gets no requests, because requests failed.
    Ejected,
    /// The origin gets no requests, because checks fail.
    Down,
}

impl HealthState {
    /// Returns the stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::SlowStart => "slow-start",
            Self::Ejected => "ejected",
            Self::Down => "down",
        }
    }

    /// Returns true if the origin gets requests.
    #[must_use]
    pub const fn is_in(self) -> bool {
        matches!(self, Self::Up | Self::SlowStart)
    }
}

/// The state of one origin.
#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    /// Number of errors in a row.
    series: u32,
    /// Times of the first and the last error of the series.
    series_at: (MonoTime, MonoTime),
    last_good: Option<MonoTime>,
    /// End of the last ejection.
    out_until: Option<MonoTime>,
    /// Length of the last ejection, and the number of ejections in a row.
    out: (Duration, u32),
    /// True if the origin has not yet answered well since it was last left out. The next error then suffices
    /// to leave it out again.
    on_trial: bool,
    /// Time at which checks showed that the origin is up again.
    up_since: Option<MonoTime>,
    /// True if checks have shown that the origin is down.
    down: bool,
    /// Number of checks in a row, up to the last check, whose results contradict `down`.
    checks: u32,
    errors: RecentErrors,
}

impl Health {
    pub(super) fn health_state(&self, now: MonoTime, rules: &HealthRules) -> HealthState {
        if self.down {
            return HealthState::Down;
        }
        match self.out_until {
            Some(until) if now < until => HealthState::Ejected,
            _ if self.share(now, rules) < 1.0 => HealthState::SlowStart,
            _ => HealthState::Up,
        }
    }

    /// Returns the fraction of the origin's weight that counts at `now`. It is below 1 until the slow start
    /// has ended.
    pub(super) fn share(&self, now: MonoTime, rules: &HealthRules) -> f64 {
        let Some(back) = self.out_until.max(self.up_since) else {
            return 1.0;
        };
        let whole = rules.slow_start.as_secs_f64();
        let passed = now.since(back).as_secs_f64();
        if passed >= whole {
            return 1.0;
        }
        (passed / whole).max(FIRST_SHARE)
    }

    /// Returns true if the origin's last answer was an error.
    pub(super) const fn fails(&self) -> bool {
        self.series > 0
    }

    /// Returns the number of errors in the last second.
    pub(super) fn errors(&self, now: MonoTime) -> u32 {
        self.errors.count(now)
    }

    /// Notes a good answer.
    pub(super) fn good(&mut self, now: MonoTime) {
        self.last_good = Some(now);
        self.series = 0;
        self.on_trial = false;
        let well = self.out_until.map(|until| now.since(until));
        if well.is_some_and(|well| well > self.out.0) {
            self.out.1 = 0;
        }
    }

    /// Notes an error. `answered` is true for an answer with status 5xx, and false if there was no answer.
    /// Returns `None` if there were too few errors to leave the origin out. Otherwise returns a time: the
    /// origin is left out if another origin has answered well since that time.
    pub(super) fn bad(
        &mut self,
        now: MonoTime,
        answered: bool,
        rules: &HealthRules,
    ) -> Option<MonoTime> {
        if answered {
            self.errors.note(now);
        }
        if self.series == 0 || now.since(self.series_at.1) > SERIES {
            self.series = 0;
            self.series_at.0 = now;
        }
        self.series += 1;
        self.series_at.1 = now;
        if rules.errors == 0 {
            return None;
        }
        match self.out_until.filter(|_| self.on_trial) {
            Some(back) if back <= now => Some(back),
            _ => (self.series >= rules.errors).then_some(self.series_at.0),
        }
    }

    /// Returns true if the origin answered well at `time` or later.
    pub(super) fn was_good_since(&self, time: MonoTime) -> bool {
        self.last_good.is_some_and(|good| good >= time)
    }

    /// Leaves the origin out for a time.
    pub(super) fn eject(&mut self, now: MonoTime, rules: &HealthRules) {
        let (_, times) = self.out;
        let out = rules.out.saturating_mul(1 << times.min(10));
        let out = out.min(OUT_MAX.max(rules.out));
        self.out = (out, times + 1);
        self.out_until = Some(now + out);
        self.on_trial = true;
        self.series = 0;
    }

    /// Notes the result of a check.
    pub(super) fn checked(&mut self, now: MonoTime, good: bool, rules: &HealthRules) {
        if good != self.down {
            self.checks = 0;
            return;
        }
        self.checks += 1;
        let enough = if self.down { rules.rise } else { rules.fall };
        if self.checks >= enough {
            self.checks = 0;
            self.down = !self.down;
            self.up_since = (!self.down).then_some(now).or(self.up_since);
        }
    }
}

/// The numbers of errors in the last second, one number for each part of the second. The array is a ring.
#[derive(Clone, Debug, Default)]
struct RecentErrors {
    counts: [u32; PARTS],
    /// Number of the part in which the last error was counted.
    part: u64,
}

impl RecentErrors {
    fn part(now: MonoTime) -> u64 {
        now.nanos() / (ERROR_COUNTS / PARTS as u64)
    }

    fn note(&mut self, now: MonoTime) {
        let part = Self::part(now);
        let passed = part.saturating_sub(self.part).min(PARTS as u64);
        for old in 0..passed {
            self.counts[((part - old) % PARTS as u64) as usize] = 0;
        }
        self.part = self.part.max(part);
        let count = &mut self.counts[(part % PARTS as u64) as usize];
        *count = count.saturating_add(1);
    }

    fn count(&self, now: MonoTime) -> u32 {
        let passed = Self::part(now).saturating_sub(self.part);
        let live = (PARTS as u64).saturating_sub(passed);
        let counts = (0..live).map(|old| {
            let part = self.part.checked_sub(old);
            part.map_or(0, |part| self.counts[(part % PARTS as u64) as usize])
        });
        counts.fold(0, u32::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime(ms * 1_000_000)
    }

    const RULES: HealthRules = HealthRules {
        errors: 3,
        out: Duration::from_secs(10),
        slow_start: Duration::from_secs(20),
        fall: 3,
        rise: 2,
    };

    #[test]
    fn a_series_of_errors_is_broken_by_time_and_by_a_good_answer() {
        let mut health = Health::default();
        assert_eq!(health.bad(at(0), true, &RULES), None);
        assert_eq!(health.bad(at(1), true, &RULES), None);
        assert_eq!(health.bad(at(2), true, &RULES), Some(at(0)));
        health.good(at(3));
        assert_eq!(health.bad(at(4), false, &RULES), None);
        assert_eq!(health.bad(at(10_005), false, &RULES), None);
        assert_eq!(health.bad(at(10_006), false, &RULES), None, "a new series");
        assert_eq!(health.bad(at(10_007), false, &RULES), Some(at(10_005)));
        let off = HealthRules { errors: 0, ..RULES };
        assert_eq!(health.bad(at(10_008), false, &off), None);
    }

    #[test]
    fn times_out_grow_and_shrink_again() {
        let mut health = Health::default();
        let mut now = at(0);
        for out in [10, 20, 40, 80, 160, 300, 300] {
            health.eject(now, &RULES);
            let (before, back) = (
                now + Duration::from_secs(out - 1),
                now + Duration::from_secs(out),
            );
            assert_eq!(health.health_state(before, &RULES), HealthState::Ejected);
            assert_eq!(health.health_state(back, &RULES), HealthState::SlowStart);
            // An origin on trial is left out again after its first error.
            assert_eq!(health.bad(back, false, &RULES), Some(back));
            now = back;
        }
        health.good(now);
        assert_eq!(health.bad(now, false, &RULES), None, "no longer on trial");
        health.good(now + Duration::from_secs(301));
        health.eject(now, &RULES);
        assert_eq!(health.out.0, Duration::from_secs(10));
    }

    #[test]
    fn the_share_grows_after_the_return() {
        let mut health = Health::default();
        assert!(health.share(at(0), &RULES) >= 1.0);
        health.eject(at(0), &RULES);
        for (ms, share) in [(10_000, 0.1), (11_000, 0.1), (20_000, 0.5), (30_000, 1.0)] {
            assert!((health.share(at(ms), &RULES) - share).abs() < 1e-9, "{ms}");
        }
        assert_eq!(health.health_state(at(30_000), &RULES), HealthState::Up);
        let at_once = HealthRules {
            slow_start: Duration::ZERO,
            ..RULES
        };
        assert!(health.share(at(10_000), &at_once) >= 1.0);
    }

    #[test]
    fn checks_need_several_in_a_row() {
        let mut health = Health::default();
        for (n, (good, down)) in [
            (false, false),
            (false, false),
            (true, false),
            (false, false),
            (false, false),
            (false, true),
            (true, true),
            (false, true),
            (true, true),
            (true, false),
        ]
        .into_iter()
        .enumerate()
        {
            health.checked(at(n as u64), good, &RULES);
            let health_state = health.health_state(at(n as u64), &RULES);
            assert_eq!(health_state == HealthState::Down, down, "{n}");
        }
        assert_eq!(health.health_state(at(9), &RULES), HealthState::SlowStart);
    }

    #[test]
    fn errors_count_for_a_second() {
        let mut errors = RecentErrors::default();
        assert_eq!(errors.count(at(0)), 0);
        for ms in [5000, 5050, 5500, 5999] {
            errors.note(at(ms));
        }
        for (ms, count) in [
            (5999, 4),
            (6001, 2),
            (6450, 2),
            (6600, 1),
            (7000, 0),
            (90_000, 0),
        ] {
            assert_eq!(errors.count(at(ms)), count, "{ms}");
        }
        errors.note(at(90_000));
        assert_eq!(errors.count(at(90_000)), 1);
    }
}
