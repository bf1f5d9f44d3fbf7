//! Limits on the messages of one peer.

/// Largest number of fields in a head, even if [`Limits::fields`] is higher.
pub const MAX_FIELDS: usize = 256;

/// Sizes above which a message is refused. All limits are inclusive: a head of exactly `head_bytes`
/// passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a complete head, including the blank line. A larger head is refused with 431. The limit must
    /// be below 4 GiB.
    pub head_bytes: usize,
    /// Bytes of the request target. A longer target is refused with 414.
    pub target_bytes: usize,
    /// Field lines in a head, at most [`MAX_FIELDS`]. A head with more field lines is refused with 431.
    pub fields: usize,
    /// Members of all `Connection` fields of a head. Every field is compared with every listed name, and this
    /// limit bounds the work.
    pub connection_options: usize,
    /// Bytes of one chunk-size line, including extensions and CRLF.
    pub chunk_line_bytes: usize,
    /// Bytes of all chunk extensions in a body. Extensions are read and discarded.
    pub chunk_extension_bytes: usize,
    /// Bytes of a trailer section, including the blank line. The reader's buffer must be at least that large.
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
    /// Number of field lines that are accepted: `fields`, but at most [`MAX_FIELDS`].
    pub(crate) fn fields_max(&self) -> usize {
        self.fields.min(MAX_FIELDS)
    }
}
