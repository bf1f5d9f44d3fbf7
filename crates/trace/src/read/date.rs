//! Dates of log lines: `01/Jul/1995:00:00:01 -0400`, `30:23:53:25` in the EPA log, ISO 8601.

/// Converts a date without its brackets to milliseconds since the epoch.
pub(super) fn parse(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(ms) = day_of_month(text) {
        return Some(ms);
    }
    let (stamp, zone) = text.split_once(' ').unwrap_or((text, "+0000"));
    let mut parts = stamp.split(['/', ':']);
    let mut next = || parts.next();
    let day: i64 = next()?.parse().ok()?;
    let month = month(next()?)?;
    let year: i64 = next()?.parse().ok()?;
    let hour: i64 = next()?.parse().ok()?;
    let minute: i64 = next()?.parse().ok()?;
    let second: i64 = next()?.parse().ok()?;
    let ranges = (1..=31).contains(&day)
        && (1970..=9999).contains(&year)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !ranges {
        return None;
    }
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some((seconds - zone_seconds(zone)?) * 1000)
}

/// Parses `day:hour:minute:second` without a month (the EPA log). Returns milliseconds since the start of the
/// month.
fn day_of_month(text: &str) -> Option<i64> {
    let parts: Vec<&str> = text.split(':').collect();
    let [day, hour, minute, second] = parts.as_slice() else {
        return None;
    };
    let number = |text: &str, most: i64| {
        let digits = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        let value = digits.then(|| text.parse().ok())??;
        (0..=most).contains(&value).then_some(value)
    };
    let day = number(day, 31).filter(|day| *day > 0)?;
    let (hour, minute, second) = (number(hour, 23)?, number(minute, 59)?, number(second, 60)?);
    Some(((day - 1) * 86_400 + hour * 3_600 + minute * 60 + second) * 1_000)
}

/// Parses ISO 8601: `1995-07-01T00:00:01.5-04:00`. A date without a zone is UTC.
pub(super) fn iso(text: &str) -> Option<i64> {
    let (day, rest) = text.split_once(['T', ' '])?;
    let at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(at);
    let away = match zone {
        "" | "Z" | "z" => 0,
        zone => zone_seconds(&zone.replace(':', ""))?,
    };
    Some(day_and_time(Some(day.as_bytes()), time.as_bytes())? - away * 1_000)
}

/// Parses `1995-07-01` and `00:00:01.25` as UTC. Without a day, returns the milliseconds since midnight.
pub(super) fn day_and_time(day: Option<&[u8]>, time: &[u8]) -> Option<i64> {
    let time = std::str::from_utf8(time).ok()?;
    let mut parts = time.splitn(3, ':');
    let hour: i64 = parts.next()?.parse().ok()?;
    let minute: i64 = parts.next()?.parse().ok()?;
    let second = super::words::seconds(parts.next()?.as_bytes())?;
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..61_000).contains(&second) {
        return None;
    }
    let of_day = (hour * 3_600 + minute * 60) * 1_000 + second;
    let Some(day) = day else {
        return Some(of_day);
    };
    let mut parts = std::str::from_utf8(day).ok()?.splitn(3, '-');
    let mut next = || parts.next()?.parse::<i64>().ok();
    let (year, month, day) = (next()?, next()?, next()?);
    let good =
        (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    good.then(|| days_since_epoch(year, month, day) * 86_400_000 + of_day)
}

fn month(name: &str) -> Option<i64> {
    const NAMES: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let at = NAMES.iter().position(|n| name.eq_ignore_ascii_case(n))?;
    Some(at as i64 + 1)
}

/// Days since the epoch in the Gregorian calendar. Here a year begins in March, so a leap day is the last day
/// of its year.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = y / 4 - y / 100 + y / 400;
    y * 365 + leap_days + (m * 153 + 2) / 5 + day - 1 - 719_468
}

fn zone_seconds(zone: &str) -> Option<i64> {
    let (sign, digits) = match zone.as_bytes().first()? {
        b'+' => (1, &zone[1..]),
        b'-' => (-1, &zone[1..]),
        _ => return None,
    };
    if digits.len() != 4 {
        return None;
    }
    let value: i64 = digits.parse().ok()?;
    Some(sign * (value / 100 * 3600 + value % 100 * 60))
}

#[cfg(test)]
mod tests {
    use super::{day_and_time, iso, parse};

    #[test]
    fn other_forms() {
        // The EPA log: day 29, 23:53:25.
        let epa = ((28 * 24 + 23) * 3_600 + 53 * 60 + 25) * 1_000;
        assert_eq!(parse(b"29:23:53:25"), Some(epa));
        for bad in ["32:00:00:00", "00:00:00:00", "1:2:3:4", "29:24:00:00"] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
        for text in [
            "1995-07-01T00:00:01-04:00",
            "1995-07-01T04:00:01Z",
            "1995-07-01 04:00:01",
        ] {
            assert_eq!(iso(text), Some(804_571_201_000), "{text}");
        }
        assert_eq!(iso("1995-07-01T04:00:01.25"), Some(804_571_201_250));
        assert_eq!(day_and_time(None, b"00:01:00"), Some(60_000));
        for bad in [
            "1995-13-01T00:00:00Z",
            "1995-07-01",
            "x",
            "1995-07-01T24:00:00",
        ] {
            assert_eq!(iso(bad), None, "{bad}");
        }
    }

    #[test]
    fn known_dates() {
        for (text, seconds) in [
            ("01/Jul/1995:00:00:01 -0400", 804_571_201),
            ("01/Jan/1970:00:00:00 +0000", 0),
            ("29/Feb/2000:12:00:00 +0100", 951_822_000),
            ("31/Dec/2026:23:59:59", 1_798_761_599),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(seconds * 1000), "{text}");
        }
    }

    #[test]
    fn refuses_others() {
        for text in [
            "",
            "1/2/3",
            "32/Jul/1995:00:00:01 -0400",
            "01/Foo/1995:00:00:01 -0400",
            "01/Jul/1995:24:00:01 -0400",
            "01/Jul/1995:00:00:01 0400",
            "01/Jul/1995:00:00:01 é",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
