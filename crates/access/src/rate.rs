//! Rates: limits on the average number of units per second, with a burst (the algorithm GCRA). Each unit that
//! is taken occupies the rate for a fixed time. The state of a rate is one number: the time until which the
//! units taken so far occupy the rate.

use foxy_base::MonoTime;

/// A rate and its burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Nanoseconds for which one unit occupies the rate.
    unit: f64,
    /// Largest number of nanoseconds from now for which the rate may be occupied. Units that would occupy it
    /// for longer are not allowed now.
    burst: f64,
}

/// The units taken from a rate so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// The time until which the units taken so far occupy the rate, in nanoseconds of the clock.
    until: u64,
}

impl Rate {
    /// Returns a rate of `per_second` units on average. After a pause, it allows `burst` units at the same
    /// time.
    #[must_use]
    pub fn new(per_second: f64, burst: f64) -> Self {
        let unit = 1e9 / per_second.max(1e-9);
        Self {
            unit,
            burst: unit * burst.max(1.0),
        }
    }

    /// Takes units if the rate allows them now. Otherwise takes no units.
    ///
    /// # Errors
    /// Returns the nanoseconds until the rate allows this number of units.
    pub fn take(&self, charge: &mut Charge, units: u64, now: MonoTime) -> Result<(), u64> {
        let until = self.after(*charge, units, now);
        let ahead = until.saturating_sub(now.nanos());
        match ahead.checked_sub(self.burst as u64) {
            None | Some(0) => {
                charge.until = until;
                Ok(())
            }
            Some(wait) => Err(wait),
        }
    }

    /// Gives units back that were taken.
    pub fn give_back(&self, charge: &mut Charge, units: u64) {
        charge.until = charge.until.saturating_sub(self.cost(units));
    }

    /// Takes units even if the rate does not allow them. Returns the nanoseconds to wait before more units
    /// are taken.
    pub fn spend(&self, charge: &mut Charge, units: u64, now: MonoTime) -> u64 {
        charge.until = self.after(*charge, units, now);
        let ahead = charge.until.saturating_sub(now.nanos());
        ahead.saturating_sub(self.burst as u64)
    }

    /// Returns true if the units taken so far do not occupy the rate any more. The charge then behaves like a
    /// new charge.
    #[must_use]
    pub fn is_idle(charge: Charge, now: MonoTime) -> bool {
        charge.until <= now.nanos()
    }

    fn after(&self, charge: Charge, units: u64, now: MonoTime) -> u64 {
        charge
            .until
            .max(now.nanos())
            .saturating_add(self.cost(units))
    }

    fn cost(&self, units: u64) -> u64 {
        (self.unit * units as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> MonoTime {
        MonoTime(millis * 1_000_000)
    }

    #[test]
    fn a_burst_goes_through_and_then_the_rate_holds() {
        let (rate, mut charge) = (Rate::new(10.0, 5.0), Charge::default());
        let taken = (0..20).filter(|_| rate.take(&mut charge, 1, at(1000)).is_ok());
        assert_eq!(taken.count(), 5);
        let wait = rate.take(&mut charge, 1, at(1000)).unwrap_err();
        assert_eq!(wait, 100_000_000);
        assert!(rate.take(&mut charge, 1, at(1100)).is_ok());
        assert!(rate.take(&mut charge, 1, at(1101)).is_err());
    }

    #[test]
    fn a_minute_has_its_rate_within_five_percent() {
        for per_second in [1.0, 7.0, 250.0] {
            let (rate, mut charge) = (Rate::new(per_second, 1.0), Charge::default());
            let times = (0..60_000u64).flat_map(|ms| [ms, ms]);
            let taken = times.filter(|ms| rate.take(&mut charge, 1, at(*ms)).is_ok());
            let (taken, wanted) = (taken.count() as f64, per_second * 60.0);
            assert!((taken - wanted).abs() <= wanted * 0.05, "{taken} {wanted}");
        }
    }

    #[test]
    fn what_is_spent_is_waited_for() {
        let (rate, mut charge) = (Rate::new(1000.0, 100.0), Charge::default());
        assert_eq!(rate.spend(&mut charge, 100, at(0)), 0);
        assert_eq!(rate.spend(&mut charge, 500, at(0)), 500_000_000);
        assert_eq!(rate.spend(&mut charge, 1, at(500)), 1_000_000);
        assert!(!Rate::is_idle(charge, at(500)));
        assert!(Rate::is_idle(charge, at(601)));
    }
}
