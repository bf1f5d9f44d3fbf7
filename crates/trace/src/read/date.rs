//! The date of common log lines: `01/Jul/1995:00:00:01 -0400`.

/// Milliseconds since the epoch of a date without its brackets.
pub(super) fn parse(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
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

fn month(name: &str) -> Option<i64> {
    const NAMES: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let at = NAMES.iter().position(|n| name.eq_ignore_ascii_case(n))?;
    Some(at as i64 + 1)
}

/// Days of the Gregorian calendar; years are counted from March so that leap days come last.
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
    use super::parse;

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
