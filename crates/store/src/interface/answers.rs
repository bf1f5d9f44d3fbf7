//! Disk reads and what they can end with, and the result of storing.

use foxy_base::KeyHash;
use thiserror::Error;

use super::spot::Spot;

/// Number of a store within an engine: in order of opening, never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreId(pub u16);

/// One aligned read that covers a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPlan {
    /// The store whose disk is read.
    pub store: StoreId,
    /// Byte offset on that disk, aligned to its logical block.
    pub at: u64,
    /// Bytes to read, a multiple of the logical block.
    pub len: u32,
    /// Offset of the record in what is read, in bytes.
    pub(crate) skip: u32,
    /// Hash of the key whose record is expected.
    pub(crate) hash: KeyHash,
    /// The index entry that this follows.
    pub(crate) spot: Spot,
    /// The read takes in what lies around the record as well.
    pub(crate) wide: bool,
}

impl ReadPlan {
    /// Hash of the key this read is for; equal plans may share one read.
    #[must_use]
    pub const fn hash(&self) -> KeyHash {
        self.hash
    }
}

/// Why a disk read did not give the object. Every one is a miss for the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ReadMiss {
    /// The record is of another key that shares the hash bits the index keeps.
    #[error("the record is another key's")]
    Twin,
    /// Superseded, purged or reused while the read was under way.
    #[error("the object was superseded during the read")]
    Superseded,
    /// Moved while the read was under way; another lookup may find it.
    #[error("the object was moved during the read")]
    Moved,
    /// The record is damaged or is not where it should be.
    #[error("the record is damaged")]
    Damaged,
    /// The device failed.
    #[error("the device failed")]
    Device,
}

/// The result of a `put`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admission {
    /// Visible, and on its way to disk.
    Disk,
    /// Visible in memory; not going to disk for this reason.
    Memory(DropReason),
    /// Not stored.
    Refused(DropReason),
}

impl Admission {
    /// Returns whether a lookup finds the object.
    #[must_use]
    pub const fn is_visible(self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

/// Why something was not (or not fully) stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// No store takes writes.
    NoStore,
    /// Too much waits to be written.
    PendingFull,
    /// Too large.
    TooLarge,
    /// The write budget is spent, and the rule for that case does not admit the object.
    NotAdmitted,
    /// It was fetched before a purge that covers it.
    Purged,
    /// Its length is not what was announced.
    Incomplete,
}
