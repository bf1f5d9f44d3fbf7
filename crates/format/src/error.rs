//! The reasons why bytes are refused.

use thiserror::Error;

/// The reason why a decoder refuses bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// The bytes are all zeros: nothing was ever written there.
    #[error("is empty")]
    Empty,
    /// The bytes were written by another program.
    #[error("does not begin with Foxy's mark")]
    Foreign,
    /// The bytes were written by a later version of Foxy.
    #[error("has format version {0}, which is newer than this program")]
    Newer(u16),
    /// The bytes were written by a version of Foxy from before the first release.
    #[error("has format version {0}, which this program does not read any more")]
    Older(u16),
    /// The bytes use extensions of the format that this program does not know. The number contains
    /// the bits of these extensions.
    #[error("uses extensions of the format ({0:#x}) that this program does not know")]
    Extended(u16),
    /// The checksum does not match.
    #[error("has a wrong checksum")]
    Checksum,
    /// The bytes are shorter than their length field states, or shorter than the minimum.
    #[error("is truncated")]
    Truncated,
    /// A field has a value that no encoder writes. The text names the field.
    #[error("has an impossible {0}")]
    Invalid(&'static str),
    /// The bytes are complete and well-formed, but were written for another address, for another use of the
    /// segment, or for another store. The text names the difference.
    #[error("belongs elsewhere ({0})")]
    Misplaced(&'static str),
}
