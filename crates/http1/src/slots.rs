//! The fields of a parsed head, as offsets into the caller's buffer.

use foxy_base::Fields;

/// A part of a buffer. Offsets of 32 bits are enough, because heads are far below 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// Position of `part` in `whole`; `part` must be a slice of `whole`, or empty.
    pub(crate) fn of(whole: &[u8], part: &[u8]) -> Self {
        if part.is_empty() {
            return Self::default();
        }
        let start = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
        debug_assert!(start + part.len() <= whole.len());
        Self {
            start: start as u32,
            len: part.len() as u32,
        }
    }

    /// The bytes of the span, in the buffer for which the span was made.
    pub(crate) fn get(self, whole: &[u8]) -> &[u8] {
        let start = self.start as usize;
        &whole[start..start + self.len as usize]
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FieldSpan {
    pub(crate) name: Span,
    pub(crate) value: Span,
}

/// Reusable memory for the fields of one head at a time (16 bytes per field). It grows if the fields of a
/// head do not fit, up to [`MAX_FIELDS`](crate::MAX_FIELDS) fields. Otherwise parsing allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct FieldSlots {
    spans: Vec<FieldSpan>,
}

impl FieldSlots {
    /// Memory for a usual head (32 fields).
    #[must_use]
    pub fn new() -> Self {
        Self {
            spans: Vec::with_capacity(32),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.spans.clear();
    }

    pub(crate) fn push(&mut self, whole: &[u8], name: &[u8], value: &[u8]) {
        self.spans.push(FieldSpan {
            name: Span::of(whole, name),
            value: Span::of(whole, value),
        });
    }

    pub(crate) fn spans(&self) -> &[FieldSpan] {
        &self.spans
    }
}

/// The fields of a head or trailer section, as a view of the buffer and the slots.
#[derive(Clone, Copy, Debug)]
pub struct FieldView<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) spans: &'b [FieldSpan],
}

impl<'b> FieldView<'b> {
    /// A view without fields.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            bytes: &[],
            spans: &[],
        }
    }

    /// Names and values in order of appearance. They are valid as long as the buffer.
    pub fn iter(self) -> impl Iterator<Item = (&'b [u8], &'b [u8])> {
        self.spans
            .iter()
            .map(move |span| (span.name.get(self.bytes), span.value.get(self.bytes)))
    }
}

impl Fields for FieldView<'_> {
    fn count(&self) -> usize {
        self.spans.len()
    }

    fn field(&self, i: usize) -> (&[u8], &[u8]) {
        let span = self.spans[i];
        (span.name.get(self.bytes), span.value.get(self.bytes))
    }
}
