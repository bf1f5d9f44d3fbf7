//! The stored bytes of a representation, as an ordered set of spans.

use super::Span;

/// Disjoint spans in ascending order. Two spans never touch each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    spans: Vec<Span>,
}

impl Parts {
    /// A set without bytes.
    #[must_use]
    pub const fn new() -> Self {
        Self { spans: Vec::new() }
    }

    /// The spans in ascending order.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Total number of bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.spans.iter().map(|span| span.len()).sum()
    }

    /// Adds bytes, and joins spans that touch.
    pub fn insert(&mut self, span: Span) {
        let from = self.spans.partition_point(|s| s.end < span.start);
        let to = self.spans.partition_point(|s| s.start <= span.end);
        let mut joined = span;
        if from < to {
            joined.start = joined.start.min(self.spans[from].start);
            joined.end = joined.end.max(self.spans[to - 1].end);
        }
        self.spans.splice(from..to, [joined]);
    }

    /// Removes bytes, for instance those of a lost fragment.
    pub fn remove(&mut self, span: Span) {
        let mut kept = Vec::with_capacity(self.spans.len() + 1);
        for old in &self.spans {
            kept.extend(Span::new(old.start, old.end.min(span.start)));
            kept.extend(Span::new(old.start.max(span.end), old.end));
        }
        self.spans = kept;
    }

    /// True if all bytes of `span` are in the set.
    #[must_use]
    pub fn contains(&self, span: Span) -> bool {
        let at = self.spans.partition_point(|s| s.end < span.end);
        self.spans.get(at).is_some_and(|s| s.contains(span))
    }

    /// The parts of `span` that are missing, in ascending order.
    #[must_use]
    pub fn missing(&self, span: Span) -> Vec<Span> {
        let mut gaps = Vec::new();
        let mut at = span.start;
        for have in self.spans.iter().filter_map(|s| s.intersect(span)) {
            gaps.extend(Span::new(at, have.start));
            at = have.end;
        }
        gaps.extend(Span::new(at, span.end));
        gaps
    }

    /// The stored bytes from the start of `span` to the first missing byte or to the end of `span`. `None` if
    /// the first byte of `span` is missing. A 206 may contain fewer bytes than were requested (RFC 9110
    /// section 15.3.7).
    #[must_use]
    pub fn prefix(&self, span: Span) -> Option<Span> {
        let have = self.spans.iter().filter_map(|s| s.intersect(span)).next()?;
        (have.start == span.start).then_some(have)
    }

    /// True if a representation of `length` bytes is complete.
    #[must_use]
    pub fn is_complete(&self, length: u64) -> bool {
        Span::new(0, length).is_none_or(|whole| self.contains(whole))
    }
}
