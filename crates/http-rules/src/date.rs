//! HTTP dates (RFC 9110 section 5.6.7). The three formats are parsed strictly, except that letter case is
//! ignored. For other text the result is `None`, which for Expires means "already expired".

use foxy_base::WallTime;

/// Length of an IMF-fixdate in bytes.
pub const DATE_BYTES: usize = 29;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];
const DAYS: [&[u8]; 7] = [
    b"Monday",
    b"Tuesday",
    b"Wednesday",
    b"Thursday",
    b"Friday",
    b"Saturday",
    b"Sunday",
];

/// Parses an HTTP date in any of the three formats. `now` resolves two-digit years: a date more than 50 years
/// in the future counts as a date in the past (RFC 9110 section 5.6.7). The name of the day must be valid,
/// but need not be correct for the date.
#[must_use]
pub fn parse(text: &[u8], now: WallTime) -> Option<WallTime> {
    let comma = text.iter().position(|b| *b == b',');
    match comma {
        Some(3) => imf_fixdate(text),
        Some(at) => rfc850(text, at, now),
        None => asctime(text),
    }
}

/// Parses dates such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn imf_fixdate(text: &[u8]) -> Option<WallTime> {
    let shape = text.len() == DATE_BYTES
        && short_day(&text[..3])
        && &text[3..5] == b", "
        && text[7] == b' '
        && text[11] == b' '
        && text[16] == b' '
        && text[25..].eq_ignore_ascii_case(b" GMT");
    if !shape {
        return None;
    }
    let date = (
        number(&text[12..16])?,
        month(&text[8..11])?,
        number(&text[5..7])?,
    );
    assemble(date, clock(&text[17..25])?)
}

/// Parses dates such as `Sunday, 06-Nov-94 08:49:37 GMT`.
fn rfc850(text: &[u8], comma: usize, now: WallTime) -> Option<WallTime> {
    let (day, rest) = text.split_at(comma);
    let shape = rest.len() == 24
        && DAYS.iter().any(|name| day.eq_ignore_ascii_case(name))
        && rest[1] == b' '
        && rest[4] == b'-'
        && rest[8] == b'-'
        && rest[11] == b' '
        && rest[20..].eq_ignore_ascii_case(b" GMT");
    if !shape {
        return None;
    }
    let (this_year, ..) = civil(now.secs().div_euclid(86_400));
    let mut year = this_year.div_euclid(100) * 100 + number(&rest[9..11])?;
    if year > this_year + 50 {
        year -= 100;
    }
    assemble(
        (year, month(&rest[5..8])?, number(&rest[2..4])?),
        clock(&rest[12..20])?,
    )
}

/// Parses dates such as `Sun Nov  6 08:49:37 1994`.
fn asctime(text: &[u8]) -> Option<WallTime> {
    let shape = text.len() == 24
        && short_day(&text[..3])
        && text[3] == b' '
        && text[7] == b' '
        && text[10] == b' '
        && text[19] == b' ';
    if !shape {
        return None;
    }
    let day = if text[8] == b' ' {
        &text[9..10]
    } else {
        &text[8..10]
    };
    let date = (number(&text[20..24])?, month(&text[4..7])?, number(day)?);
    assemble(date, clock(&text[11..19])?)
}

fn short_day(text: &[u8]) -> bool {
    DAYS.iter().any(|name| name[..3].eq_ignore_ascii_case(text))
}

/// Parses digits. Callers pass at most four bytes.
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |n, b| {
        b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0'))
    })
}

/// The number of a month: 1 to 12.
fn month(text: &[u8]) -> Option<i64> {
    let at = MONTHS
        .iter()
        .position(|name| text.eq_ignore_ascii_case(*name))?;
    Some(at as i64 + 1)
}

/// Seconds since midnight. A leap second counts as the second before it.
fn clock(text: &[u8]) -> Option<i64> {
    let (hour, minute) = (number(&text[..2])?, number(&text[3..5])?);
    let second = number(&text[6..8])?;
    let valid = text[2] == b':' && text[5] == b':' && hour < 24 && minute < 60 && second <= 60;
    valid.then(|| hour * 3600 + minute * 60 + second.min(59))
}

fn assemble((year, month, day): (i64, i64, i64), clock: i64) -> Option<WallTime> {
    let days = days_from_civil(year, month, day);
    // If the month does not have this day, `days` is a day of the next month, and the date is refused.
    (civil(days) == (year, month, day)).then(|| WallTime::from_secs(days * 86_400 + clock))
}

/// Days from 1970-01-01 to a date in the Gregorian calendar. Years are counted from March, so that the leap
/// day is the last day of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Converts a number of days since 1970-01-01 to year, month and day.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// The IMF-fixdate of a time. Times outside of the years 0 to 9999 are clamped.
#[must_use]
pub fn format(time: WallTime) -> [u8; DATE_BYTES] {
    const FIRST: i64 = -62_167_219_200;
    const LAST: i64 = 253_402_300_799;
    let secs = time.secs().clamp(FIRST, LAST);
    let (days, clock) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let mut out = *b"Mon, 00 Jan 0000 00:00:00 GMT";
    out[..3].copy_from_slice(&DAYS[(days + 3).rem_euclid(7) as usize][..3]);
    put_digits(&mut out[5..7], day);
    out[8..11].copy_from_slice(MONTHS[(month - 1) as usize]);
    put_digits(&mut out[12..16], year);
    put_digits(&mut out[17..19], clock / 3600);
    put_digits(&mut out[20..22], clock / 60 % 60);
    put_digits(&mut out[23..25], clock % 60);
    out
}

fn put_digits(out: &mut [u8], mut number: i64) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests;
