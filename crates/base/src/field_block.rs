//! The canonical field block: the form in which the header fields of a stored response are kept.
//!
//! A field block is an offset table and, after it, contiguous HTTP/1 text (`Name: value\r\n` per field, no
//! status line, no blank line, no hop-by-hop fields). HTTP/1 sends the text unchanged. HTTP/2 and the caching
//! rules use the table. The same bytes are in RAM and in the record on disk.
//!
//! ```text
//! 0      2      4                 4 + 8 * count
//! +------+------+-----------------+---------------------------------+
//! | count| zero | count entries   | text: "Name: value\r\n" ...     |
//! +------+------+-----------------+---------------------------------+
//! entry: name start in text u32 | name length u16 | value length u16      (little-endian)
//! ```
//!
//! A *wide* block has 32-bit lengths, and the value 1 in the field after the count. It is only for answers
//! that are being sent to clients: it is never stored, and `parse` refuses it.

use bytes::Bytes;

use crate::Fields;

const HEADER: usize = 4;
const ENTRY: usize = 8;
const WIDE_ENTRY: usize = 12;

/// A checked field block. Cloning shares the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldBlock {
    bytes: Bytes,
    count: usize,
    wide: bool,
}

/// The reason why bytes are not a field block, or why fields do not fit into a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldBlockError {
    /// The bytes end before the end of the table or the text, or the table points outside of the text.
    Truncated,
    /// The table and the text disagree.
    Inconsistent,
    /// A name or value is over 65,535 bytes, or there are over 65,535 fields.
    TooLarge,
}

impl std::fmt::Display for FieldBlockError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Truncated => "field block is truncated",
            Self::Inconsistent => "field block table and text disagree",
            Self::TooLarge => "header field over 65535 bytes, or too many fields",
        })
    }
}

impl std::error::Error for FieldBlockError {}

impl FieldBlock {
    /// A block without fields.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            bytes: Bytes::from_static(&[0; HEADER]),
            count: 0,
            wide: false,
        }
    }

    /// Checks untrusted bytes (a record from disk) completely. Afterwards every access is safe.
    ///
    /// # Errors
    /// The reason why the bytes are refused. The caller treats the record as damaged.
    pub fn parse(bytes: Bytes) -> Result<Self, FieldBlockError> {
        if bytes.len() < HEADER {
            return Err(FieldBlockError::Truncated);
        }
        let count = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        if bytes[2..HEADER] != [0, 0] {
            return Err(FieldBlockError::Inconsistent);
        }
        if bytes.len() < HEADER + ENTRY * count {
            return Err(FieldBlockError::Truncated);
        }
        let wide = false;
        let block = Self { bytes, count, wide };
        block.check_entries()?;
        Ok(block)
    }

    /// Checks that the fields cover the text exactly, in order, with correct separators.
    fn check_entries(&self) -> Result<(), FieldBlockError> {
        let text = self.text();
        let mut at = 0usize;
        for i in 0..self.count {
            let (start, name_len, value_len) = self.entry(i);
            let end = start + name_len + 2 + value_len + 2;
            if end > text.len() {
                return Err(FieldBlockError::Truncated);
            }
            let separated = &text[start + name_len..start + name_len + 2] == b": "
                && &text[end - 2..end] == b"\r\n";
            if start != at || !separated {
                return Err(FieldBlockError::Inconsistent);
            }
            at = end;
        }
        if at == text.len() {
            Ok(())
        } else {
            Err(FieldBlockError::Inconsistent)
        }
    }

    /// Start of the name, length of the name, and length of the value of field `i`.
    fn entry(&self, i: usize) -> (usize, usize, usize) {
        if self.wide {
            return self.wide_entry(i);
        }
        let at = HEADER + ENTRY * i;
        let e = &self.bytes[at..at + ENTRY];
        (
            u32::from_le_bytes([e[0], e[1], e[2], e[3]]) as usize,
            usize::from(u16::from_le_bytes([e[4], e[5]])),
            usize::from(u16::from_le_bytes([e[6], e[7]])),
        )
    }

    #[cold]
    fn wide_entry(&self, i: usize) -> (usize, usize, usize) {
        let at = HEADER + WIDE_ENTRY * i;
        let e = &self.bytes[at..at + WIDE_ENTRY];
        let number = |n: usize| u32::from_le_bytes([e[n], e[n + 1], e[n + 2], e[n + 3]]) as usize;
        (number(0), number(4), number(8))
    }

    /// The fields as HTTP/1 text, each line ended by CRLF, without the blank line.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        let entry = if self.wide { WIDE_ENTRY } else { ENTRY };
        &self.bytes[HEADER + entry * self.count..]
    }

    /// The bytes of the complete block, as stored. A wide block is never stored, and [`parse`](Self::parse)
    /// refuses its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// A block with those fields for which `keep` returns true.
    #[must_use]
    pub fn filtered(&self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Self {
        let mut builder = FieldBlockBuilder {
            wide: self.wide,
            ..FieldBlockBuilder::default()
        };
        for i in 0..self.count {
            let (name, value) = self.field(i);
            if keep(name, value) {
                builder.push_unchecked(name, value);
            }
        }
        builder.finish()
    }
}

impl Fields for FieldBlock {
    fn count(&self) -> usize {
        self.count
    }

    fn field(&self, i: usize) -> (&[u8], &[u8]) {
        let (start, name_len, value_len) = self.entry(i);
        let text = self.text();
        let value_start = start + name_len + 2;
        (
            &text[start..start + name_len],
            &text[value_start..value_start + value_len],
        )
    }
}

/// Builds a [`FieldBlock`] field by field.
#[derive(Clone, Debug, Default)]
pub struct FieldBlockBuilder {
    table: Vec<u8>,
    text: Vec<u8>,
    count: u16,
    wide: bool,
}

impl FieldBlockBuilder {
    /// Adds a field. Name and value must come from a parsed head (no CR, LF or NUL).
    ///
    /// # Errors
    /// [`FieldBlockError::TooLarge`] if the field does not fit; nothing is added then.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), FieldBlockError> {
        let fits = |n: usize| u16::try_from(n).is_ok();
        let room = u32::try_from(self.text.len() + name.len() + value.len() + 4).is_ok();
        if !fits(name.len()) || !fits(value.len()) || !room || self.count == u16::MAX {
            return Err(FieldBlockError::TooLarge);
        }
        self.checked(name, value);
        Ok(())
    }

    /// Adds a field of any length to a block that will not be stored. The block becomes wide if the field
    /// needs 32-bit lengths. The field is left out if the text would be over 4 GiB or if there are 65,535
    /// fields; no parsed head reaches these limits.
    pub fn push_any(&mut self, name: &[u8], value: &[u8]) {
        let room = u32::try_from(self.text.len() + name.len() + value.len() + 4).is_ok();
        if !room || self.count == u16::MAX {
            return;
        }
        let fits = |n: usize| u16::try_from(n).is_ok();
        let fits = fits(name.len()) && fits(value.len());
        if !(fits || self.wide) {
            self.widen();
        }
        self.checked(name, value);
    }

    fn widen(&mut self) {
        let mut wide = Vec::with_capacity(self.table.len() * 2 + WIDE_ENTRY);
        for e in self.table.chunks_exact(ENTRY) {
            wide.extend_from_slice(&e[..4]);
            wide.extend_from_slice(&[e[4], e[5], 0, 0, e[6], e[7], 0, 0]);
        }
        (self.table, self.wide) = (wide, true);
    }

    fn checked(&mut self, name: &[u8], value: &[u8]) {
        debug_assert!(
            !name
                .iter()
                .chain(value)
                .any(|b| matches!(b, b'\r' | b'\n' | 0))
        );
        self.push_unchecked(name, value);
    }

    /// Adds a field. The caller has checked that the field fits.
    fn push_unchecked(&mut self, name: &[u8], value: &[u8]) {
        if self.count == 0 {
            // Reserves the memory for a usual head in one step, because growth in many steps would cost more
            // than the copying of the fields.
            self.table.reserve(16 * ENTRY);
            self.text.reserve(768);
        }
        self.table
            .extend_from_slice(&(self.text.len() as u32).to_le_bytes());
        for length in [name.len(), value.len()] {
            let bytes = (length as u32).to_le_bytes();
            let used = if self.wide { 4 } else { 2 };
            self.table.extend_from_slice(&bytes[..used]);
        }
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(b": ");
        self.text.extend_from_slice(value);
        self.text.extend_from_slice(b"\r\n");
        self.count += 1;
    }

    /// The finished block.
    #[must_use]
    pub fn finish(self) -> FieldBlock {
        let mut bytes = Vec::with_capacity(HEADER + self.table.len() + self.text.len());
        bytes.extend_from_slice(&self.count.to_le_bytes());
        bytes.extend_from_slice(&[u8::from(self.wide), 0]);
        bytes.extend_from_slice(&self.table);
        bytes.extend_from_slice(&self.text);
        FieldBlock {
            bytes: Bytes::from(bytes),
            count: usize::from(self.count),
            wide: self.wide,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> FieldBlock {
        let mut builder = FieldBlockBuilder::default();
        for (name, value) in [
            ("Content-Type", "text/html"),
            ("ETag", "\"v1\""),
            ("X-Empty", ""),
        ] {
            builder.push(name.as_bytes(), value.as_bytes()).unwrap();
        }
        builder.finish()
    }

    #[test]
    fn keeps_fields_and_text() {
        let block = sample();
        assert_eq!(block.count(), 3);
        assert_eq!(block.field(1), (&b"ETag"[..], &b"\"v1\""[..]));
        assert_eq!(
            block.text(),
            b"Content-Type: text/html\r\nETag: \"v1\"\r\nX-Empty: \r\n"
        );
        assert_eq!(FieldBlock::parse(block.as_bytes().clone()), Ok(block));
        assert_eq!(
            FieldBlock::parse(FieldBlock::empty().bytes),
            Ok(FieldBlock::empty())
        );
    }

    #[test]
    fn filters() {
        let block = sample().filtered(|name, _| name != b"ETag");
        assert_eq!(block.text(), b"Content-Type: text/html\r\nX-Empty: \r\n");
        assert_eq!(FieldBlock::parse(block.as_bytes().clone()), Ok(block));
    }

    #[test]
    fn every_truncation_and_every_table_byte_changed_is_refused() {
        let whole = sample().as_bytes().clone();
        for len in 0..whole.len() {
            assert!(FieldBlock::parse(whole.slice(..len)).is_err(), "{len}");
        }
        for at in 0..HEADER + 3 * ENTRY {
            for bit in 0..8 {
                let mut damaged = whole.to_vec();
                damaged[at] ^= 1 << bit;
                assert!(
                    FieldBlock::parse(damaged.into()).is_err(),
                    "byte {at} bit {bit}"
                );
            }
        }
    }

    #[test]
    fn a_wide_block_holds_any_field_and_is_never_read_from_bytes() {
        let long = vec![b'x'; 70_000];
        let mut builder = FieldBlockBuilder::default();
        for value in [&b"1"[..], &long, b"2"] {
            builder.push_any(b"A", value);
        }
        assert_eq!(builder.push(b"B", b"3"), Ok(()));
        let block = builder.finish();
        let values: Vec<_> = (0..block.count()).map(|i| block.field(i)).collect();
        let wanted: [(&[u8], &[u8]); 4] = [(b"A", b"1"), (b"A", &long), (b"A", b"2"), (b"B", b"3")];
        assert_eq!(values, wanted);
        assert!(block.text().starts_with(b"A: 1\r\nA: xx"));
        assert!(block.text().ends_with(b"xx\r\nA: 2\r\nB: 3\r\n"));
        let read = FieldBlock::parse(block.as_bytes().clone());
        assert_eq!(read, Err(FieldBlockError::Inconsistent));
        assert_eq!(block.filtered(|_, value| value.len() < 9).count(), 3);
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let mut builder = FieldBlockBuilder::default();
        assert_eq!(
            builder.push(b"a", &vec![b'x'; 65536]),
            Err(FieldBlockError::TooLarge)
        );
        assert_eq!(builder.finish(), FieldBlock::empty());
    }
}
