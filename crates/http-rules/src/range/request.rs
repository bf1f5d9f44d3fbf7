//! The Range field of a request, and the parts that it selects in a body of known length.

use foxy_base::{Fields, values};

use super::Span;
use crate::text::decimal;

/// Largest number of ranges that are accepted in one request. A request with more ranges gets the complete
/// body.
pub const RANGES_LIMIT: usize = 32;

/// Two parts are sent as one part if the gap between them has at most this number of bytes. The framing
/// between two separate parts would need about as many bytes.
const COALESCE_GAP: u64 = 80;

/// One range of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSpec {
    /// `first-` or `first-last` (the last byte is included).
    From {
        /// Position of the first byte.
        first: u64,
        /// Position of the last byte, included.
        last: Option<u64>,
    },
    /// `-n`: the last `n` bytes.
    Suffix(u64),
}

/// The ranges of a request, in the order of the request. This type uses no heap memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranges {
    specs: [RangeSpec; RANGES_LIMIT],
    count: usize,
}

/// The ranges of a request for a body of known length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// One part: 206 with Content-Range.
    One(Span),
    /// Several parts: 206 as multipart/byteranges, in this order.
    Many(Vec<Span>),
    /// No part exists: 416 with `Content-Range: bytes */length`.
    Unsatisfiable,
    /// Send the whole body with 200.
    Whole,
}

impl Ranges {
    /// Reads the Range field of a request. Returns `None` if the field is absent, repeated or malformed, if
    /// its unit is not bytes, or if it has more than [`RANGES_LIMIT`] ranges. Such a field is ignored, which
    /// RFC 9110 section 14.2 permits.
    pub fn of<F: Fields + ?Sized>(fields: &F) -> Option<Self> {
        let mut lines = values(fields, "Range");
        let line = lines.next()?;
        if lines.next().is_some() {
            return None;
        }
        Self::parse(line)
    }

    /// Parses a Range field value.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        let (unit, set) = line.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes=") {
            return None;
        }
        let mut ranges = Self {
            specs: [RangeSpec::Suffix(0); RANGES_LIMIT],
            count: 0,
        };
        for member in set
            .split(|b| *b == b',')
            .map(<[u8]>::trim_ascii)
            .filter(|m| !m.is_empty())
        {
            *ranges.specs.get_mut(ranges.count)? = RangeSpec::parse(member)?;
            ranges.count += 1;
        }
        (ranges.count > 0).then_some(ranges)
    }

    /// The ranges as they were requested.
    #[must_use]
    pub fn specs(&self) -> &[RangeSpec] {
        &self.specs[..self.count]
    }

    /// The ranges in a body of `length` bytes. Unsatisfiable ranges are left out; overlapping and near ranges
    /// are joined. The result is the complete body if there are more than `parts_max` parts, or if the parts
    /// are together at least as long as the body. (RFC 9110 section 14.2 describes denial of service by many
    /// ranges.)
    #[must_use]
    pub fn resolve(&self, length: u64, parts_max: usize) -> Resolved {
        if let [one] = self.specs() {
            // A single range is the usual case, and it needs no list.
            let span = one.resolve(length);
            return span.map_or(Resolved::Unsatisfiable, Resolved::One);
        }
        let spans: Vec<Span> = self
            .specs()
            .iter()
            .filter_map(|s| s.resolve(length))
            .collect();
        match spans[..] {
            [] => Resolved::Unsatisfiable,
            [one] => Resolved::One(one),
            _ => joined(spans, length, parts_max),
        }
    }
}

fn joined(spans: Vec<Span>, length: u64, parts_max: usize) -> Resolved {
    let parts = coalesce(spans);
    let total: u64 = parts.iter().map(|span| span.len()).sum();
    match parts[..] {
        _ if total >= length || parts.len() > parts_max => Resolved::Whole,
        [one] => Resolved::One(one),
        _ => Resolved::Many(parts),
    }
}

/// Joins each span with all earlier spans that overlap it, or that are at most [`COALESCE_GAP`] bytes away.
/// The parts keep the order in which the request first names them.
fn coalesce(spans: Vec<Span>) -> Vec<Span> {
    let mut parts: Vec<Span> = Vec::with_capacity(spans.len());
    for mut span in spans {
        let mut place = parts.len();
        // A joined span may touch further parts, so the search is repeated until no part is near.
        while let Some(at) = parts.iter().position(|part| near(*part, span)) {
            let other = parts.remove(at);
            span = Span {
                start: span.start.min(other.start),
                end: span.end.max(other.end),
            };
            place = place.min(at);
        }
        parts.insert(place.min(parts.len()), span);
    }
    parts
}

fn near(a: Span, b: Span) -> bool {
    a.start <= b.end.saturating_add(COALESCE_GAP) && b.start <= a.end.saturating_add(COALESCE_GAP)
}

impl std::fmt::Display for RangeSpec {
    /// Writes the range as the value of a Range field.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::From {
                first,
                last: Some(last),
            } => write!(f, "bytes={first}-{last}"),
            Self::From { first, last: None } => write!(f, "bytes={first}-"),
            Self::Suffix(count) => write!(f, "bytes=-{count}"),
        }
    }
}

impl RangeSpec {
    fn parse(text: &[u8]) -> Option<Self> {
        let dash = text.iter().position(|b| *b == b'-')?;
        let (first, last) = (&text[..dash], &text[dash + 1..]);
        if first.is_empty() {
            return Some(Self::Suffix(decimal(last)?));
        }
        let first = decimal(first)?;
        let last = if last.is_empty() {
            None
        } else {
            Some(decimal(last)?)
        };
        (last.is_none_or(|last| first <= last)).then_some(Self::From { first, last })
    }

    /// This range, widened to whole units of `unit` bytes. A suffix stays as it is, because its
    /// position is not known. `None` if the range requests no byte.
    #[must_use]
    pub const fn aligned(self, unit: u64) -> Option<Self> {
        match self {
            Self::Suffix(0) => None,
            Self::Suffix(_) => Some(self),
            Self::From { first, last } => {
                let last = match last {
                    Some(last) => match (last / unit + 1).checked_mul(unit) {
                        Some(end) => Some(end - 1),
                        None => None,
                    },
                    None => None,
                };
                let first = first - first % unit;
                Some(Self::From { first, last })
            }
        }
    }

    /// The bytes that this range means in a body of `length` bytes; `None` if there are none.
    #[must_use]
    pub fn resolve(self, length: u64) -> Option<Span> {
        match self {
            Self::From { first, last } => {
                let end = last.map_or(length, |last| length.min(last.saturating_add(1)));
                Span::new(first, end)
            }
            Self::Suffix(count) => Span::new(length.saturating_sub(count), length),
        }
    }
}
