//! Times of the week.

use std::fmt;

/// Number of minutes in a week.
pub const MINUTES: u16 = 7 * DAY;
const DAY: u16 = 24 * 60;
/// The days of the week, from Monday.
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A period of the day, on some days of the week. If its end is not after its beginning, the period ends on
/// the next day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Days on which the period begins. Bit 0 is Monday.
    days: u8,
    /// Minutes of the day. The end is not included.
    from: u16,
    to: u16,
}

impl Span {
    /// Reads `mon-fri 08:00-17:30`, `sat,sun`, or `22:00-06:00`.
    ///
    /// # Errors
    /// Returns a short description of the mistake.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let (first, second) = (words.next().unwrap_or_default(), words.next());
        if words.next().is_some() {
            return Err("it has more than days and a time".to_owned());
        }
        let timed = first.starts_with(|c: char| c.is_ascii_digit());
        let (days, time) = match (timed, second) {
            (true, None) => (None, Some(first)),
            (true, Some(_)) => return Err("days stand before the time".to_owned()),
            (false, time) => (Some(first), time),
        };
        let days = days.map_or(Ok(0x7f), days_of)?;
        let (from, to) = time.map_or(Ok((0, DAY)), times_of)?;
        Ok(Self { days, from, to })
    }

    /// Returns true if the span contains this minute of the week.
    #[must_use]
    pub fn contains(&self, minute: u16) -> bool {
        self.ranges()
            .any(|(from, to)| (from..=to).contains(&minute))
    }

    /// Returns the first and the last minute of each part of the week that the span contains.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u16, u16)> {
        let Self { days, from, to } = *self;
        let length = match to > from {
            true => to - from,
            false => to + DAY - from,
        };
        let begins = (0..7u16).filter(move |day| days >> day & 1 == 1);
        begins.flat_map(move |day| {
            let first = day * DAY + from;
            let last = first + length - 1;
            // The night from Sunday to Monday consists of two parts: the end and the beginning of the week.
            let over = (last >= MINUTES).then(|| (0, last - MINUTES));
            [Some((first, last.min(MINUTES - 1))), over]
                .into_iter()
                .flatten()
        })
    }
}

fn days_of(text: &str) -> Result<u8, String> {
    let number = |name: &str| {
        let name = name.to_ascii_lowercase();
        let found = DAYS.iter().position(|day| *day == name);
        found.ok_or_else(|| format!("`{name}` is not a day (write mon, tue, and so on)"))
    };
    let mut days = 0;
    for part in text.split(',') {
        let (from, to) = match part.split_once('-') {
            Some((from, to)) => (number(from)?, number(to)?),
            None => (number(part)?, number(part)?),
        };
        let mut day = from;
        loop {
            days |= 1 << day;
            if day == to {
                break;
            }
            day = (day + 1) % 7;
        }
    }
    Ok(days)
}

fn times_of(text: &str) -> Result<(u16, u16), String> {
    let wrong = || "the time is not HH:MM-HH:MM".to_owned();
    let (from, to) = text.split_once('-').ok_or_else(wrong)?;
    let minute = |text: &str| {
        let (hour, minute) = text.split_once(':')?;
        let two = |text: &str| (text.len() == 2).then(|| text.parse::<u16>().ok())?;
        let (hour, minute) = (two(hour)?, two(minute)?);
        let right = minute < 60 && (hour < 24 || hour == 24 && minute == 0);
        right.then_some(hour * 60 + minute)
    };
    let (from, to) = (
        minute(from).ok_or_else(wrong)?,
        minute(to).ok_or_else(wrong)?,
    );
    match from == to || from == DAY {
        true => Err("it is empty".to_owned()),
        false => Ok((from, to)),
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = DAYS.iter().enumerate();
        let named = named.filter(|(day, _)| self.days >> day & 1 == 1);
        let days: Vec<&str> = named.map(|(_, name)| *name).collect();
        let (from, to) = (self.from, self.to);
        write!(
            f,
            "{} {:02}:{:02}-{:02}:{:02}",
            days.join(","),
            from / 60,
            from % 60,
            to / 60,
            to % 60
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: u16, hour: u16, minute: u16) -> u16 {
        day * DAY + hour * 60 + minute
    }

    #[test]
    fn spans_of_the_week() {
        for (text, minute, inside) in [
            ("mon-fri 08:00-17:30", at(0, 8, 0), true),
            ("mon-fri 08:00-17:30", at(4, 17, 29), true),
            ("mon-fri 08:00-17:30", at(4, 17, 30), false),
            ("mon-fri 08:00-17:30", at(5, 9, 0), false),
            ("sat,sun", at(6, 23, 59), true),
            ("sat,sun", at(0, 0, 0), false),
            ("fri-mon", at(6, 1, 0), true),
            ("fri-mon", at(1, 1, 0), false),
            ("22:00-06:00", at(2, 5, 59), true),
            ("22:00-06:00", at(2, 6, 0), false),
            // The night from Sunday to Monday.
            ("Sun 22:00-06:00", at(0, 5, 0), true),
            ("sun 22:00-06:00", at(6, 5, 0), false),
            ("00:00-24:00", at(6, 23, 59), true),
        ] {
            let span = Span::parse(text).unwrap();
            assert_eq!(span.contains(minute), inside, "{text} {minute}");
            let again = Span::parse(&span.to_string()).unwrap();
            assert_eq!(again, span, "{text}");
        }
    }

    #[test]
    fn what_is_no_span() {
        for text in [
            "",
            "xyz",
            "8:00-9:00",
            "08:00",
            "08:00-25:00",
            "08:00-08:00",
            "24:00-08:00",
            "08:60-09:00",
            "mon 08:00-09:00 x",
            "08:00-09:00 mon",
            "mon,",
        ] {
            assert!(Span::parse(text).is_err(), "{text}");
        }
    }
}
