//! Numbers in as few bytes as possible. Each number has a code of half a byte. The code states the length of
//! the number, and whether the number is relative to the first number. Most facts of a record are zero,
//! small, or close to the time at which the record was received.
//!
//! Code 0 means zero. Codes 1 to 8 mean a number of that many bytes, lowest first. Code 9 means the least
//! signed number, which often stands for "none". Code 10 means the number whose bits are all ones. Codes 11
//! to 15 mean 1 to 5 bytes of the zigzag distance from the first number. Each number is written with its
//! shortest code.

use crate::FormatError;
use crate::bytes_io::Take;

/// The least signed number.
const LEAST: u64 = i64::MIN as u64;
/// Code of [`LEAST`].
const CODE_LEAST: u8 = 9;
/// Code of the number whose bits are all ones.
const CODE_ONES: u8 = 10;
/// Number of bytes of the longest encoded distance.
const DISTANCE_MAX: usize = 5;

const fn bytes_of(value: u64) -> usize {
    (64 - value.leading_zeros() as usize).div_ceil(8)
}

/// Zigzag code of the signed distance. Small distances of either sign become small numbers.
const fn zigzag(value: u64, base: u64) -> u64 {
    let distance = value.wrapping_sub(base) as i64;
    ((distance << 1) ^ (distance >> 63)) as u64
}

const fn from_zigzag(distance: u64, base: u64) -> u64 {
    let signed = (distance >> 1) ^ (distance & 1).wrapping_neg();
    base.wrapping_add(signed)
}

/// Returns the code, the bytes of the number, and how many of these bytes are written.
const fn encode(value: u64, base: u64) -> (u8, u64, usize) {
    if value == LEAST {
        return (CODE_LEAST, 0, 0);
    }
    if value == u64::MAX {
        return (CODE_ONES, 0, 0);
    }
    let len = bytes_of(value);
    let distance = zigzag(value, base);
    let far = bytes_of(distance);
    let far = if far == 0 { 1 } else { far };
    if far < len && far <= DISTANCE_MAX {
        return (CODE_ONES + far as u8, distance, far);
    }
    (len as u8, value, len)
}

/// Number of bytes that `values` need, including codes.
pub(crate) fn words_len(values: &[u64]) -> usize {
    let codes = values.len().div_ceil(2);
    codes + encoded(values).map(|(_, _, len)| len).sum::<usize>()
}

/// Encodes every number: the first relative to zero, the other numbers relative to the first.
fn encoded(values: &[u64]) -> impl Iterator<Item = (u8, u64, usize)> + '_ {
    let first = values.first().copied().unwrap_or(0);
    let bases = std::iter::once(0).chain(std::iter::repeat(first));
    values.iter().zip(bases).map(|(v, base)| encode(*v, base))
}

/// Greatest number of bytes that `count` numbers need, including codes.
pub(crate) const fn words_max(count: usize) -> usize {
    count.div_ceil(2) + count * 8
}

/// Writes codes, then numbers, to the beginning of `out`, which must have at least [`words_max`] bytes.
/// Returns the length of codes and numbers together, in bytes.
pub(crate) fn put_words(values: &[u64], out: &mut [u8]) -> usize {
    let mut at = values.len().div_ceil(2);
    out[..at].fill(0);
    for (n, (code, bytes, len)) in encoded(values).enumerate() {
        out[n / 2] |= code << (n % 2 * 4);
        // Copies eight bytes even if fewer belong to the number: a copy of fixed length is a single move, and
        // the next number overwrites the excess bytes.
        out[at..at + 8].copy_from_slice(&bytes.to_le_bytes());
        at += len;
    }
    at
}

/// A decoder of numbers: their codes, the position of the next code, and the first number.
#[derive(Debug)]
pub(crate) struct Words<'a> {
    codes: &'a [u8],
    next: usize,
    base: u64,
}

impl<'a> Words<'a> {
    /// Takes the codes of `count` numbers.
    pub(crate) fn new(take: &mut Take<'a>, count: usize) -> Result<Self, FormatError> {
        Ok(Self {
            codes: take.bytes(count.div_ceil(2))?,
            next: 0,
            base: 0,
        })
    }

    /// The next number.
    pub(crate) fn next(&mut self, take: &mut Take<'_>) -> Result<u64, FormatError> {
        let byte = self.codes.get(self.next / 2);
        let code = byte.ok_or(FormatError::Truncated)? >> (self.next % 2 * 4) & 15;
        let mut number = |len: u8| -> Result<u64, FormatError> {
            let mut bytes = [0; 8];
            let len = usize::from(len);
            bytes[..len].copy_from_slice(take.bytes(len)?);
            Ok(u64::from_le_bytes(bytes))
        };
        let value = match code {
            0..=8 => number(code)?,
            CODE_LEAST => LEAST,
            CODE_ONES => u64::MAX,
            far => from_zigzag(number(far - CODE_ONES)?, self.base),
        };
        if self.next == 0 {
            self.base = value;
        }
        self.next += 1;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(values: &[u64]) -> usize {
        let len = words_len(values);
        let mut out = vec![0xff; words_max(values.len())];
        assert_eq!(put_words(values, &mut out), len);
        let mut take = Take::new(&out[..len]);
        let mut words = Words::new(&mut take, values.len()).unwrap();
        for value in values {
            assert_eq!(words.next(&mut take).unwrap(), *value);
        }
        assert!(take.bytes(1).is_err(), "nothing is left over");
        len
    }

    #[test]
    fn every_number_comes_back() {
        let edges = (0..64).flat_map(|bit| {
            let power = 1u64 << bit;
            [power - 1, power, power + 1, power.wrapping_neg()]
        });
        let mut values: Vec<u64> = edges.collect();
        values.extend([u64::MAX, LEAST, LEAST + 1, LEAST - 1]);
        for base in [0, 1, 1_700_000_000_000, u64::MAX, LEAST] {
            values.insert(0, base);
            round_trip(&values);
            round_trip(&values[..values.len() - 1]);
        }
    }

    #[test]
    fn usual_facts_are_short() {
        let now = 1_700_000_000_000;
        let alone = round_trip(&[now]);
        assert_eq!(alone, 1 + 6);
        assert_eq!(round_trip(&[now, 0, LEAST, u64::MAX, 0]), alone + 2);
        assert_eq!(round_trip(&[now, now, now - 40]), alone + 1 + 1 + 1);
        assert_eq!(round_trip(&[now, now + 60_000, 200]), alone + 1 + 3 + 1);
    }
}
