//! Little-endian cursors: one appends fields to a buffer, and one reads fields from untrusted
//! bytes.

use std::cmp::Ordering;

use foxy_base::rule;

use crate::FormatError;

/// Appends fields to a buffer.
#[derive(Debug)]
pub(crate) struct Put<'a>(pub &'a mut Vec<u8>);

impl Put<'_> {
    pub(crate) fn bytes(&mut self, v: &[u8]) {
        self.0.extend_from_slice(v);
    }
    pub(crate) fn u8(&mut self, v: u8) {
        self.0.push(v);
    }
    pub(crate) fn u16(&mut self, v: u16) {
        self.bytes(&v.to_le_bytes());
    }
    pub(crate) fn u32(&mut self, v: u32) {
        self.bytes(&v.to_le_bytes());
    }
    /// Appends the lower 48 bits.
    pub(crate) fn u48(&mut self, v: u64) {
        self.bytes(&v.to_le_bytes()[..6]);
    }
    pub(crate) fn u64(&mut self, v: u64) {
        self.bytes(&v.to_le_bytes());
    }
    pub(crate) fn i64(&mut self, v: i64) {
        self.bytes(&v.to_le_bytes());
    }
    /// Appends zeros up to a total of `len` bytes.
    pub(crate) fn pad_to(&mut self, len: usize) {
        if self.0.len() < len {
            self.0.resize(len, 0);
        }
    }
}

/// Takes fields from the front of `rest`. Each method checks that enough bytes are left.
#[derive(Clone, Debug)]
pub(crate) struct Take<'a> {
    rest: &'a [u8],
}

impl<'a> Take<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
    /// Number of bytes left.
    pub(crate) const fn len(&self) -> usize {
        self.rest.len()
    }
    pub(crate) fn bytes(&mut self, n: usize) -> Result<&'a [u8], FormatError> {
        let (head, rest) = self
            .rest
            .split_at_checked(n)
            .ok_or(FormatError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(FormatError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }
    pub(crate) fn u8(&mut self) -> Result<u8, FormatError> {
        Ok(self.array::<1>()?[0])
    }
    pub(crate) fn u16(&mut self) -> Result<u16, FormatError> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    pub(crate) fn u32(&mut self) -> Result<u32, FormatError> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    pub(crate) fn u48(&mut self) -> Result<u64, FormatError> {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.array::<6>()?);
        Ok(u64::from_le_bytes(bytes))
    }
    pub(crate) fn u64(&mut self) -> Result<u64, FormatError> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    pub(crate) fn i64(&mut self) -> Result<i64, FormatError> {
        Ok(i64::from_le_bytes(self.array()?))
    }
    /// Takes `n` reserved bytes. They must be zero, so that a later extension of the format can give them a
    /// meaning.
    pub(crate) fn zeros(&mut self, n: usize) -> Result<(), FormatError> {
        let zeros = self.bytes(n)?.iter().all(|b| *b == 0);
        if rule!("tables: reserved bytes must be zero", zeros, true) {
            Ok(())
        } else {
            Err(FormatError::Invalid("reserved field"))
        }
    }
}

/// Checks magic number and version. Bytes that are all zeros are refused as [`FormatError::Empty`].
pub(crate) fn check_mark(
    take: &mut Take<'_>,
    magic: [u8; 4],
    whole: &[u8],
) -> Result<(), FormatError> {
    if take.array::<4>()? != magic {
        let empty = whole.iter().all(|b| *b == 0);
        return Err(if empty {
            FormatError::Empty
        } else {
            FormatError::Foreign
        });
    }
    let version = take.u16()?;
    match version.cmp(&crate::FORMAT_VERSION) {
        Ordering::Less => Err(FormatError::Older(version)),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(FormatError::Newer(version)),
    }
}

/// Checks that the CRC at `at` (little-endian) is the CRC of the bytes before it.
pub(crate) fn check_crc(bytes: &[u8], at: usize) -> Result<(), FormatError> {
    let stored = bytes.get(at..at + 4).ok_or(FormatError::Truncated)?;
    if rule!(
        "tables: checksums of superblocks, slots and journal blocks are compared",
        foxy_base::crc32c(&bytes[..at]).to_le_bytes() == stored,
        true
    ) {
        Ok(())
    } else {
        Err(FormatError::Checksum)
    }
}
