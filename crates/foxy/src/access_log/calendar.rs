//! Conversion of milliseconds since 1970 to a date in UTC.

use foxy_base::WallTime;

/// A moment as a calendar date and a time of day, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// Year.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, 1 to 31.
    pub day: u8,
    /// Hour.
    pub hour: u8,
    /// Minute.
    pub minute: u8,
    /// Second.
    pub second: u8,
    /// Millisecond.
    pub millis: u16,
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

impl Calendar {
    /// Returns the date of a moment. Moments before 1970 are supported (proleptic Gregorian calendar).
    #[must_use]
    pub fn of(at: WallTime) -> Self {
        let seconds = at.secs();
        let of_day = seconds.rem_euclid(86_400);
        let (year, month, day) = date(seconds.div_euclid(86_400));
        Self {
            year,
            month,
            day,
            hour: (of_day / 3600) as u8,
            minute: (of_day / 60 % 60) as u8,
            second: (of_day % 60) as u8,
            millis: at.millis().rem_euclid(1000) as u16,
        }
    }

    /// Returns `Jan` to `Dec`.
    #[must_use]
    pub fn month_name(&self) -> &'static str {
        MONTHS[usize::from(self.month.saturating_sub(1)).min(11)]
    }
}

/// Converts days since 1970-01-01 to a date. Years are counted from March, so that the leap day is the last
/// day of its year. 146,097 days make 400 years.
fn date(days: i64) -> (i64, u8, u8) {
    let days = days.saturating_add(719_468);
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u8, day as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        for (seconds, wanted) in [
            (0, (1970, 1, 1, 0, 0, 0)),
            (951_782_400, (2000, 2, 29, 0, 0, 0)),
            (1_700_000_000, (2023, 11, 14, 22, 13, 20)),
            (4_107_542_399, (2100, 2, 28, 23, 59, 59)),
            (4_107_542_400, (2100, 3, 1, 0, 0, 0)),
            (-1, (1969, 12, 31, 23, 59, 59)),
        ] {
            let c = Calendar::of(WallTime::from_secs(seconds));
            assert_eq!(
                (c.year, c.month, c.day, c.hour, c.minute, c.second),
                wanted,
                "{seconds}"
            );
        }
    }

    #[test]
    fn days_follow_each_other() {
        let mut before = date(-200_000);
        for day in -199_999..200_000 {
            let now = date(day);
            assert!(
                now > before && (now.2 == before.2 + 1 || now.2 == 1),
                "{before:?} {now:?}"
            );
            before = now;
        }
    }
}
