//! Words and numbers in a line of bytes.

use super::Bad;

/// Splits a line at runs of blanks.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| matches!(b, b' ' | b'\t'))
        .filter(|word| !word.is_empty())
}

/// A decimal number without sign and blanks.
pub(super) fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() || word.len() > 20 {
        return None;
    }
    word.iter().try_fold(0u64, |sum, b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// A number, or `-`, which means 0.
pub(super) fn number_or_dash(word: &[u8]) -> Option<u64> {
    if word == b"-" { Some(0) } else { number(word) }
}

/// Returns the next word; the error `bad` if there is none.
pub(super) fn need<'l>(
    words: &mut impl Iterator<Item = &'l [u8]>,
    bad: Bad,
) -> Result<&'l [u8], Bad> {
    words.next().ok_or(bad)
}

/// A status code: 0 (none) or 100 to 599.
pub(super) fn status(word: &[u8]) -> Option<u16> {
    let code = number_or_dash(word)?;
    matches!(code, 0 | 100..=599).then_some(code as u16)
}

/// Seconds with an optional fraction, in milliseconds.
pub(super) fn seconds(word: &[u8]) -> Option<i64> {
    let dot = word.iter().position(|b| *b == b'.').unwrap_or(word.len());
    let whole = i64::try_from(number(&word[..dot])?)
        .ok()?
        .checked_mul(1000)?;
    let digits = word.get(dot + 1..).unwrap_or_default();
    let mut millis = 0;
    for at in 0..3 {
        let digit = digits.get(at).copied().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        millis = millis * 10 + i64::from(digit - b'0');
    }
    whole.checked_add(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_seconds() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for bad in [&b"18446744073709551616"[..], b"", b"-1", b"1x", b"+1"] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
        assert_eq!(seconds(b"12.3456"), Some(12_345));
        assert_eq!(seconds(b"12"), Some(12_000));
        assert_eq!(seconds(b"12.x"), None);
        assert_eq!(status(b"99"), None);
    }
}
