//! Limits on what one peer may send.

/// The most fields a head can have, whatever [`Limits::fields`] says.
pub const MAX_FIELDS: usize = 256;

/// Sizes at which a message is refused. All are inclusive: a head of exactly `head_bytes` passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole head, blank line included (431). Below 4 GiB.
    pub head_bytes: usize,
    /// Bytes of the request target (414).
    pub target_bytes: usize,
    /// Field lines in a head (431); at most [`MAX_FIELDS`].
    pub fields: usize,
    /// Members of all `Connection` fields of a head: bounds the work of comparing every field
    /// with every listed name.
    pub connection_options: usize,
    /// Bytes of one chunk-size line, extensions and CRLF included.
    pub chunk_line_bytes: usize,
    /// Bytes of chunk extensions over a whole body: they are read only to be thrown away.
    pub chunk_extension_bytes: usize,
    /// Bytes of a trailer section, blank line included; the reader's buffer must hold that much.
    pub trailer_bytes: usize,
    /// Field lines in a trailer section.
    pub trailer_fields: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 64 << 10,
            target_bytes: 16 << 10,
            fields: 100,
            connection_options: 32,
            chunk_line_bytes: 1 << 10,
            chunk_extension_bytes: 16 << 10,
            trailer_bytes: 8 << 10,
            trailer_fields: 32,
        }
    }
}

impl Limits {
    /// Field lines that are accepted: `fields`, but never over [`MAX_FIELDS`].
    pub(crate) fn fields_max(&self) -> usize {
        self.fields.min(MAX_FIELDS)
    }
}
