//! Canonical forms of selecting values (the values of the request fields in a Vary list). Only changes that
//! keep the meaning are made.
//!
//! The lines of list fields (`is_list`) are joined by commas. Empty members are removed, and so is white
//! space around commas, but not inside quoted strings. Accept-Encoding and Accept-Language are changed
//! further: letters become lower case, `q=1` is dropped, other weights get their shortest form, members are
//! sorted, and duplicates are removed. All other fields are compared byte for byte, because a comma in a
//! cookie or in a comment of User-Agent separates nothing. White space around a line is removed, and several
//! lines are joined as in HTTP. If a line consists only of words and commas, white space around the commas is
//! also removed, but empty members are kept.

use foxy_base::{Fields, FieldsIter, eq_name};

use crate::text::members;

/// Destination of canonical bytes.
pub(super) trait Sink {
    /// Takes the next bytes of the canonical form.
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Compares the written bytes with the expected bytes.
pub(super) struct Compare<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Compare<'a> {
    pub(super) const fn new(expected: &'a [u8]) -> Self {
        Self {
            rest: Some(expected),
        }
    }

    /// True if exactly the expected bytes were written.
    pub(super) fn equal(&self) -> bool {
        self.rest.is_some_and(<[u8]>::is_empty)
    }
}

impl Sink for Compare<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.rest = self.rest.and_then(|rest| rest.strip_prefix(bytes));
    }
}

/// True if a request field is known to be a list, so that white space around its commas has no meaning. The
/// names in stored lists are in lower case, so `name` is compared byte for byte.
pub(super) const fn is_list(name: &[u8]) -> bool {
    matches!(
        name,
        b"accept"
            | b"accept-charset"
            | b"accept-encoding"
            | b"accept-language"
            | b"access-control-request-headers"
            | b"cache-control"
            | b"forwarded"
            | b"if-match"
            | b"if-none-match"
            | b"prefer"
            | b"te"
            | b"x-forwarded-for"
    )
}

/// Writes the value of a field that is not known to be a list. The field has one or several lines.
pub(super) fn write_exact<'a, S: Sink, L: Iterator<Item = &'a [u8]>>(
    name: &[u8],
    lines: impl Fn() -> L,
    out: &mut S,
) {
    let cookie = eq_name(name, b"cookie");
    let words = !cookie && lines().all(is_words);
    // HTTP/2 may split a cookie at the cookie's own separator (RFC 9113 section 8.2.3).
    let separator: &[u8] = match (cookie, words) {
        (true, _) => b"; ",
        (_, true) => b",",
        _ => b", ",
    };
    for (i, line) in lines().enumerate() {
        if i > 0 {
            out.put(separator);
        }
        if !words {
            out.put(line.trim_ascii());
            continue;
        }
        for (i, word) in line.split(|b| *b == b',').enumerate() {
            if i > 0 {
                out.put(b",");
            }
            out.put(word.trim_ascii());
        }
    }
}

/// True if a line consists only of words and commas. Then white space around the commas has no meaning in any
/// field.
fn is_words(line: &[u8]) -> bool {
    let word =
        |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b',' | b' ' | b'\t' | b'-' | b'_' | b'.');
    line.iter().all(word)
}

/// Writes the canonical value of the list field `name`, which has these members.
pub(super) fn write<'a, S: Sink, M: Iterator<Item = &'a [u8]>>(
    name: &[u8],
    members: impl Fn() -> M,
    out: &mut S,
) {
    let negotiated = eq_name(name, b"accept-encoding") || eq_name(name, b"accept-language");
    if negotiated && write_weighted(members(), out) {
        return;
    }
    let mut first = true;
    for member in members() {
        if !first {
            out.put(b",");
        }
        first = false;
        out.put(member);
    }
}

/// The members of all lines of a field.
pub(super) fn all_members<'a, F: Fields + ?Sized>(
    name: &'a [u8],
    request: &'a F,
) -> impl Iterator<Item = &'a [u8]> {
    FieldsIter::new(request)
        .filter(move |(other, _)| eq_name(other, name))
        .flat_map(|(_, line)| members(line))
}

/// Largest number of members that are sorted. If there are more members, all are written in the order of the
/// request, because sorting them would take too long.
const MEMBERS_MAX: usize = 16;

/// A member of a weighted list. The weight is in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weighted<'a> {
    pub(super) text: &'a [u8],
    pub(super) weight: u16,
}

impl<'a> Weighted<'a> {
    /// Parses `text[;q=weight]`; `None` for other text.
    pub(super) fn parse(member: &'a [u8]) -> Option<Self> {
        let mut parameters = member.split(|b| *b == b';').map(<[u8]>::trim_ascii);
        let text = parameters.next().filter(|text| !text.is_empty())?;
        let weight = match (parameters.next(), parameters.next()) {
            (None, _) => 1000,
            (Some([b'q' | b'Q', b'=', weight @ ..]), None) => parse_weight(weight)?,
            _ => return None,
        };
        Some(Self { text, weight })
    }

    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let lower = |text: &'a [u8]| text.iter().map(u8::to_ascii_lowercase);
        lower(self.text)
            .cmp(lower(other.text))
            .then(self.weight.cmp(&other.weight))
    }
}

/// Parses weights such as `0`, `0.5`, `1.000` (RFC 9110 section 12.4.2). The result is in thousandths.
fn parse_weight(text: &[u8]) -> Option<u16> {
    let (whole, fraction) = match text {
        [whole] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let thousandths = [100, 10, 1]
        .iter()
        .zip(fraction)
        .try_fold(0u16, |sum, (unit, digit)| {
            digit
                .is_ascii_digit()
                .then(|| sum + unit * u16::from(digit - b'0'))
        })?;
    match whole {
        b'0' => Some(thousandths),
        b'1' if thousandths == 0 => Some(1000),
        _ => None,
    }
}

/// Writes a weighted list in canonical order. If the members are not such a list, it writes nothing and
/// returns false.
fn write_weighted<'a, S: Sink>(members: impl Iterator<Item = &'a [u8]>, out: &mut S) -> bool {
    let mut table = [Weighted {
        text: &[],
        weight: 0,
    }; MEMBERS_MAX];
    let mut count = 0;
    for member in members {
        let (Some(slot), Some(weighted)) = (table.get_mut(count), Weighted::parse(member)) else {
            return false;
        };
        *slot = weighted;
        count += 1;
    }
    let members = &mut table[..count];
    members.sort_unstable_by(Weighted::order);
    let mut last = None;
    for member in members.iter() {
        let same = |last: &Weighted<'_>| member.order(last).is_eq();
        if last.as_ref().is_some_and(same) {
            continue;
        }
        if last.is_some() {
            out.put(b",");
        }
        write_member(member, out);
        last = Some(*member);
    }
    true
}

fn write_member<S: Sink>(member: &Weighted<'_>, out: &mut S) {
    // Most members are in lower case already and are written in one piece.
    if member.text.iter().any(u8::is_ascii_uppercase) {
        for byte in member.text {
            out.put(&[byte.to_ascii_lowercase()]);
        }
    } else {
        out.put(member.text);
    }
    if member.weight < 1000 {
        let digit = |unit: u16| b'0' + (member.weight / unit % 10) as u8;
        let text = [
            b';',
            b'q',
            b'=',
            b'0',
            b'.',
            digit(100),
            digit(10),
            digit(1),
        ];
        let zeros = text[4..]
            .iter()
            .rev()
            .take_while(|b| matches!(b, b'0' | b'.'))
            .count();
        out.put(&text[..text.len() - zeros]);
    }
}
