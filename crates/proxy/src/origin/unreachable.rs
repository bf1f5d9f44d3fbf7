//! Destinations that could not be reached recently.
//!
//! A request that may get a stale answer does not wait for another attempt to reach such a destination.
//! Otherwise each request would wait, for example, ten seconds for its attempt. While a registry cannot be
//! reached, the installation of a project would then take hours.

use std::time::Duration;

use foxy_base::MonoTime;
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::UpstreamError;
use crate::http::destination::Destination;

/// Time for which a failure is remembered, in multiples of the duration of the attempt. So attempts to reach
/// an unreachable destination delay clients only during a small part of the time. A refused connection fails
/// almost immediately. So its failure is forgotten almost immediately, and each request tries to connect.
const TIMES: u32 = 3;
/// Longest time for which a failure is remembered. After this time, Foxy tries the destination again and can
/// notice that it is reachable.
const LONGEST: Duration = Duration::from_secs(30);
/// Largest number of destinations that are remembered.
const MOST: usize = 1024;

/// The destinations. Each has its failure and the time until which the failure is remembered.
#[derive(Debug, Default)]
pub(crate) struct Unreachable(Mutex<HashMap<Destination, (UpstreamError, MonoTime)>>);

impl Unreachable {
    /// Remembers the failure of an attempt, if it shows that the destination cannot be reached. The attempt
    /// ended at `now` and took the time `took`.
    pub(crate) fn failed(
        &self,
        to: &Destination,
        error: UpstreamError,
        took: Duration,
        now: MonoTime,
    ) {
        if !error.is_no_connection() {
            return;
        }
        let mut known = self.0.lock();
        if known.len() >= MOST {
            known.retain(|_, (_, until)| now < *until);
        }
        if known.len() < MOST || known.contains_key(to) {
            known.insert(to.clone(), (error, now + (took * TIMES).min(LONGEST)));
        }
    }

    /// Forgets the failures of a destination that was reached.
    pub(crate) fn reached(&self, to: &Destination) {
        self.0.lock().remove(to);
    }

    /// Returns the failure of a recent attempt.
    pub(crate) fn recent(&self, to: &Destination, now: MonoTime) -> Option<UpstreamError> {
        let known = self.0.lock();
        let (error, until) = known.get(to)?;
        (now < *until).then_some(*error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::destination::to;

    fn at(secs: u64) -> MonoTime {
        MonoTime(secs * 1_000_000_000)
    }

    #[test]
    fn a_failure_is_remembered_by_the_time_that_it_took() {
        let unreachable = Unreachable::default();
        let (a, b, error) = (to("a"), to("b"), UpstreamError::ConnectTimeout);
        unreachable.failed(&a, error, Duration::from_secs(2), at(10));
        assert_eq!(unreachable.recent(&a, at(15)), Some(error));
        assert_eq!(unreachable.recent(&a, at(16)), None);
        assert_eq!(unreachable.recent(&b, at(10)), None);
        unreachable.failed(&a, error, Duration::from_secs(60), at(20));
        assert_eq!(unreachable.recent(&a, at(49)), Some(error));
        assert_eq!(unreachable.recent(&a, at(50)), None);
        unreachable.failed(&b, error, Duration::ZERO, at(20));
        assert_eq!(unreachable.recent(&b, at(20)), None);
        let refused = UpstreamError::Busy;
        unreachable.failed(&b, refused, Duration::from_secs(1), at(20));
        assert_eq!(unreachable.recent(&b, at(20)), None);
    }

    #[test]
    fn a_destination_that_was_reached_is_forgotten_and_their_number_is_bounded() {
        let unreachable = Unreachable::default();
        let second = Duration::from_secs(1);
        for n in 0..MOST + 10 {
            let host = to(&n.to_string());
            unreachable.failed(&host, UpstreamError::Connect, second, at(0));
        }
        assert_eq!(unreachable.0.lock().len(), MOST);
        unreachable.reached(&to("0"));
        assert_eq!(unreachable.recent(&to("0"), at(1)), None);
        assert!(unreachable.recent(&to("1"), at(1)).is_some());
        unreachable.failed(&to("last"), UpstreamError::Connect, second, at(4));
        unreachable.failed(&to("newest"), UpstreamError::Connect, second, at(4));
        assert_eq!(unreachable.0.lock().len(), 2);
    }
}
