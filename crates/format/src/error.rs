//! Why bytes were refused.

use thiserror::Error;

/// A refusal to take bytes for what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// Nothing but zeros: never written.
    #[error("is empty")]
    Empty,
    /// Another program's bytes.
    #[error("does not begin with Foxy's mark")]
    Foreign,
    /// Written by a later Foxy.
    #[error("has format version {0}, which is newer than this program")]
    Newer(u16),
    /// Written by a Foxy from before the first release.
    #[error("has format version {0}, which this program does not read any more")]
    Older(u16),
    /// Uses extensions of the format that this program does not know; names their bits.
    #[error("uses extensions of the format ({0:#x}) that this program does not know")]
    Extended(u16),
    /// The checksum does not match.
    #[error("has a wrong checksum")]
    Checksum,
    /// Shorter than it says, or than it must be.
    #[error("is truncated")]
    Truncated,
    /// A field has a value that no encoder writes; names the field.
    #[error("has an impossible {0}")]
    Invalid(&'static str),
    /// Whole and well-formed, but written for another place, life or store; names the difference.
    #[error("belongs elsewhere ({0})")]
    Misplaced(&'static str),
}
