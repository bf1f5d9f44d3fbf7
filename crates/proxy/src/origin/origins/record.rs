//! The last results of one origin. They show people whether and how the origin is failing. The choice of an
//! origin does not depend on these results. This module does no I/O and reads no clock.

use std::time::Duration;

use foxy_base::MonoTime;

/// Number of results that are remembered.
const RESULTS: u32 = 32;
/// Number of failures in a row at which an origin counts as failing.
const FAILS: u32 = 3;
/// Number of failures among the remembered results at which an origin counts as flapping.
const FLAPS: u32 = 5;
/// Time since the last failure after which an origin does not count as flapping any more.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// An origin is slow if its answers begin, on average, after more than this time. It is also slow if requests
/// wait and no answer has come for this time.
const SLOW: Duration = Duration::from_secs(2);

/// A way in which an origin is failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ailment {
    /// The last requests to the origin all failed.
    Fails,
    /// Some of the last requests to the origin failed, and some did not.
    Flaps,
    /// The answers of the origin begin late, or no answer comes.
    Slow,
}

impl Ailment {
    /// Returns the stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fails => "fails",
            Self::Flaps => "flaps",
            Self::Slow => "slow",
        }
    }
}

/// Figures about the last requests to an origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recently {
    /// The way in which the origin is failing.
    pub ailment: Option<Ailment>,
    /// Number of remembered requests, at most 32.
    pub requests: u32,
    /// Number of remembered requests that failed.
    pub failures: u32,
    /// The reason of the last failure, or an empty text.
    pub reason: &'static str,
    /// Moving average of the time to the beginning of an answer, over about the last four answers.
    pub first_byte: Duration,
    /// Time for which requests have waited without any answer.
    pub waiting: Duration,
}

/// The last results, and the requests that wait for an answer.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// The results as bits. The newest result is the lowest bit. A 1 is a failure.
    results: u32,
    count: u32,
    last_failure: Option<(MonoTime, &'static str)>,
    first_byte: Duration,
    /// Number of requests that wait for an answer, and the time since which no answer has come.
    waiting: (u32, MonoTime),
}

impl Record {
    /// Counts a request that begins to wait.
    pub(super) fn wait(&mut self, now: MonoTime) {
        if self.waiting.0 == 0 {
            self.waiting.1 = now;
        }
        self.waiting.0 += 1;
    }

    /// Ends the wait of a request.
    pub(super) fn waited(&mut self, now: MonoTime) {
        self.waiting = (self.waiting.0.saturating_sub(1), now);
    }

    /// Ends the wait of a request that is given up before an answer.
    pub(super) fn given_up(&mut self) {
        self.waiting.0 = self.waiting.0.saturating_sub(1);
    }

    /// Notes the time to the beginning of an answer.
    pub(super) fn answered(&mut self, after: Duration) {
        self.first_byte = match self.first_byte {
            Duration::ZERO => after,
            before => (before * 3 + after) / 4,
        };
    }

    /// Notes a result. `failed` is the reason of a failure.
    pub(super) fn note(&mut self, failed: Option<&'static str>, now: MonoTime) {
        self.results = self.results << 1 | u32::from(failed.is_some());
        self.count = (self.count + 1).min(RESULTS);
        if let Some(reason) = failed {
            self.last_failure = Some((now, reason));
        }
    }

    pub(super) fn recently(&self, now: MonoTime) -> Recently {
        let waiting = match self.waiting {
            (0, _) => Duration::ZERO,
            (_, since) => now.since(since),
        };
        Recently {
            ailment: self.ailment(waiting, now),
            requests: self.count,
            failures: self.results.count_ones(),
            reason: self.last_failure.map_or("", |(_, reason)| reason),
            first_byte: self.first_byte,
            waiting,
        }
    }

    fn ailment(&self, waiting: Duration, now: MonoTime) -> Option<Ailment> {
        let recent = |(at, _): &(MonoTime, _)| now.since(*at) < FORGOTTEN;
        if self.results.trailing_ones() >= FAILS {
            Some(Ailment::Fails)
        } else if self.results.count_ones() >= FLAPS
            && self.last_failure.as_ref().is_some_and(recent)
        {
            Some(Ailment::Flaps)
        } else {
            (waiting.max(self.first_byte) > SLOW).then_some(Ailment::Slow)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonoTime {
        MonoTime(seconds * 1_000_000_000)
    }

    fn of(results: &str) -> Record {
        let mut record = Record::default();
        for result in results.chars() {
            record.note((result == 'x').then_some("closed"), at(100));
        }
        record
    }

    #[test]
    fn failures_in_a_row_and_among_others_are_told_apart() {
        for (results, wanted) in [
            ("", None),
            ("xx", None),
            ("xxx", Some(Ailment::Fails)),
            ("..xxx", Some(Ailment::Fails)),
            ("xxx.", None),
            ("xx.xx.", None),
            ("xx.xx.x", Some(Ailment::Flaps)),
            ("xxxxx.", Some(Ailment::Flaps)),
            ("xxxxx................................", None),
        ] {
            let recently = of(results).recently(at(110));
            assert_eq!(recently.ailment, wanted, "{results}");
        }
        let recently = of("xx.").recently(at(110));
        let (requests, failures) = (recently.requests, recently.failures);
        assert_eq!((requests, failures, recently.reason), (3, 2, "closed"));
        assert_eq!(of(&".".repeat(50)).recently(at(110)).requests, 32);
    }

    #[test]
    fn only_failures_in_a_row_are_told_for_long() {
        assert_eq!(of("x.x.x.x.x.").recently(at(200)).ailment, None);
        let fails = of("xxx").recently(at(9000)).ailment;
        assert_eq!(fails, Some(Ailment::Fails));
    }

    #[test]
    fn a_wait_without_an_answer_is_slow_before_it_ends() {
        let mut record = Record::default();
        record.wait(at(10));
        record.wait(at(11));
        assert_eq!(record.recently(at(12)).ailment, None);
        let recently = record.recently(at(13));
        assert_eq!(recently.ailment, Some(Ailment::Slow));
        assert_eq!(recently.waiting, Duration::from_secs(3));
        record.waited(at(13));
        assert_eq!(record.recently(at(14)).ailment, None, "one is answered");
        record.waited(at(14));
        assert_eq!(record.recently(at(99)).waiting, Duration::ZERO);
    }

    #[test]
    fn answers_that_begin_late_are_slow() {
        let mut record = Record::default();
        let seconds = Duration::from_secs;
        record.answered(seconds(1));
        assert_eq!(record.recently(at(1)).ailment, None);
        record.answered(seconds(9));
        assert_eq!(record.recently(at(1)).ailment, Some(Ailment::Slow));
        (0..9).for_each(|_| record.answered(seconds(1)));
        assert_eq!(record.recently(at(1)).ailment, None);
    }
}
