//! Byte ranges (RFC 9110 section 14): the ranges that a request asks for, the ranges that a response
//! contains, and operations on stored parts.

mod answer;
mod combine;
mod content_range;
mod held;
mod parts;
mod request;

pub use answer::{answer, is_of_content};
pub(crate) use combine::strong_last_modified;
pub use combine::{completion, may_combine};
pub use content_range::ContentRange;
pub use held::{from_part, joined};
pub use parts::Parts;
pub use request::{RANGES_LIMIT, RangeSpec, Ranges, Resolved};

/// A non-empty range of bytes. `start` is included, `end` is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Position of the first byte.
    pub start: u64,
    /// Position after the last byte; greater than `start`.
    pub end: u64,
}

impl Span {
    /// The span `start..end`; `None` if it is empty.
    #[must_use]
    pub const fn new(start: u64, end: u64) -> Option<Self> {
        if start < end {
            Some(Self { start, end })
        } else {
            None
        }
    }

    /// Number of bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a span is never empty")]
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// True if all of `other` lies inside this span.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The bytes that are in both spans; `None` if there are none.
    #[must_use]
    pub fn intersect(self, other: Self) -> Option<Self> {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }
}

#[cfg(test)]
mod tests;
