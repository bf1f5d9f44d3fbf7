//! The small grammar of Cache-Control and similar fields: comma-separated directives, with optional
//! arguments that are tokens or quoted. Any bytes are accepted; malformed arguments are marked.

/// The largest value of delta-seconds; larger values count as this value (RFC 9111 section 1.2.2).
pub(crate) const DELTA_MAX: u32 = 1 << 31;

/// The argument of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Argument<'a> {
    /// There is no `=`.
    None,
    /// An argument without quotes.
    Token(&'a [u8]),
    /// A quoted argument, without its quotes. Escapes are not decoded.
    Quoted(&'a [u8]),
    /// White space around `=`, an open quote, or text after a closing quote.
    Malformed,
}

impl<'a> Argument<'a> {
    /// The text of the argument, quoted or not.
    pub(crate) fn text(self) -> Option<&'a [u8]> {
        match self {
            Self::Token(text) | Self::Quoted(text) => Some(text),
            Self::None | Self::Malformed => None,
        }
    }

    /// The argument as delta-seconds; `None` if it is not a valid number.
    pub(crate) fn seconds(self) -> Option<u32> {
        delta_seconds(self.text()?)
    }
}

/// One directive of a field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Directive<'a> {
    /// Name of the directive as spelt. Compare it without regard to case.
    pub(crate) name: &'a [u8],
    /// Argument after the name.
    pub(crate) argument: Argument<'a>,
}

impl Directive<'_> {
    /// True if the directive's name is `name`, in any letter case.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// The media type in a Content-Type, without its parameters.
pub(crate) fn media_type(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|b| *b == b';').unwrap_or(line.len());
    line[..end].trim_ascii()
}

/// The directives of one field line.
pub(crate) fn directives(line: &[u8]) -> impl Iterator<Item = Directive<'_>> {
    members(line).map(directive)
}

/// The comma-separated members of one field line, trimmed, without empty members. Commas inside
/// quoted strings do not separate members. A quote that is never closed does not hide the members
/// behind it.
pub(crate) fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        loop {
            let text = rest?;
            let end = member_end(text);
            rest = text.get(end + 1..);
            let member = text[..end].trim_ascii();
            if !member.is_empty() {
                return Some(member);
            }
        }
    })
}

/// End of the first member of `text`: a comma outside quotes, or the end of the text.
fn member_end(text: &[u8]) -> usize {
    // If there is no comma, quotes do not matter. This search compares many bytes at a time.
    if !text.contains(&b',') {
        return text.len();
    }
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b',' => return at,
            b'"' => at = closing_quote(text, at).unwrap_or(at) + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// The position of the quote that closes the quoted string opened at `open`.
pub(crate) fn closing_quote(text: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return Some(at),
            _ => at += 1,
        }
    }
    None
}

fn directive(member: &[u8]) -> Directive<'_> {
    let Some(equals) = member.iter().position(|b| *b == b'=') else {
        return Directive {
            name: member,
            argument: Argument::None,
        };
    };
    let (name, value) = (&member[..equals], &member[equals + 1..]);
    let spaced = name.trim_ascii().len() != name.len() || value.trim_ascii().len() != value.len();
    let argument = if spaced {
        Argument::Malformed
    } else {
        argument(value)
    };
    Directive {
        name: name.trim_ascii(),
        argument,
    }
}

fn argument(value: &[u8]) -> Argument<'_> {
    match value.first() {
        Some(b'"') => match closing_quote(value, 0) {
            Some(close) if close + 1 == value.len() => Argument::Quoted(&value[1..close]),
            _ => Argument::Malformed,
        },
        _ if value.contains(&b'"') => Argument::Malformed,
        _ => Argument::Token(value),
    }
}

/// Parses digits, saturating at [`DELTA_MAX`]. `None` for signs, fractions, spaces and empty text.
pub(crate) fn delta_seconds(text: &[u8]) -> Option<u32> {
    let number = decimal(text)?;
    Some(u32::try_from(number).map_or(DELTA_MAX, |n| n.min(DELTA_MAX)))
}

/// Parses digits, saturating; `None` for any other text.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0u64, |n, digit| {
        n.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    }))
}

/// Appends a decimal number.
pub(crate) fn push_decimal(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(line: &str, expected: &[(&str, Argument<'_>)]) {
        let got: Vec<_> = directives(line.as_bytes())
            .map(|d| (d.name, d.argument))
            .collect();
        let expected: Vec<_> = expected.iter().map(|(n, a)| (n.as_bytes(), *a)).collect();
        assert_eq!(got, expected, "{line}");
    }

    #[test]
    fn directives_are_split_outside_quotes() {
        check("max-age=60", &[("max-age", Argument::Token(b"60"))]);
        check(
            " , no-store ,,a",
            &[("no-store", Argument::None), ("a", Argument::None)],
        );
        check(
            "x=\"a, b\", y",
            &[("x", Argument::Quoted(b"a, b")), ("y", Argument::None)],
        );
        check(
            "x=\"a\\\", b\", y",
            &[("x", Argument::Quoted(b"a\\\", b")), ("y", Argument::None)],
        );
        check(
            "x=\"a, no-store",
            &[("x", Argument::Malformed), ("no-store", Argument::None)],
        );
        check("x=\"a\"b", &[("x", Argument::Malformed)]);
        check(
            "x =1, y= 1",
            &[("x", Argument::Malformed), ("y", Argument::Malformed)],
        );
        check("x=", &[("x", Argument::Token(b""))]);
        check("x='1'", &[("x", Argument::Token(b"'1'"))]);
        check("", &[]);
    }

    #[test]
    fn delta_seconds_are_digits_and_saturate() {
        for (text, expected) in [
            ("0", Some(0)),
            ("003600", Some(3600)),
            ("2147483647", Some(2_147_483_647)),
            ("2147483649", Some(DELTA_MAX)),
            ("99999999999999999999999", Some(DELTA_MAX)),
            ("-1", None),
            ("+1", None),
            ("1.0", None),
            ("", None),
            ("1 ", None),
            ("'1'", None),
        ] {
            assert_eq!(delta_seconds(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_split(line in proptest::collection::vec(any::<u8>(), 0..60)) {
            let total: usize = directives(&line).map(|d| d.name.len()).sum();
            prop_assert!(total <= line.len());
        }

        #[test]
        fn numbers_round_trip(n: u64) {
            let mut out = Vec::new();
            push_decimal(&mut out, n);
            prop_assert_eq!(String::from_utf8_lossy(&out), n.to_string());
            prop_assert_eq!(decimal(&out), Some(n));
        }
    }
}
