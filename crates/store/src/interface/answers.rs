//! Disk reads and their possible results, and the result of storing.

use foxy_base::KeyHash;
use thiserror::Error;

use super::spot::Spot;

/// Number of a store within an engine. Numbers follow the order of opening and are never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreId(pub u16);

/// One aligned read that covers a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPlan {
    /// The store from whose disk the bytes are read.
    pub store: StoreId,
    /// Byte offset on that disk, aligned to the disk's logical block.
    pub at: u64,
    /// Bytes to read, a multiple of the logical block.
    pub len: u32,
    /// Offset of the record in the bytes that are read.
    pub(crate) skip: u32,
    /// Hash of the key whose record is expected.
    pub(crate) hash: KeyHash,
    /// The place of the record, as the index entry states it.
    pub(crate) spot: Spot,
    /// True if the read also includes the neighbours of the record: the records beside it on the disk.
    pub(crate) wide: bool,
}

impl ReadPlan {
    /// Hash of the key for which this read is made. Callers with equal plans may share one read.
    #[must_use]
    pub const fn hash(&self) -> KeyHash {
        self.hash
    }
}

/// The reason why a disk read did not return the object. Each reason is a miss for the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ReadMiss {
    /// The record belongs to another key. The index cannot distinguish the two keys, because the bits
    /// that it keeps of their hashes are equal.
    #[error("the record is another key's")]
    CollidingKey,
    /// While the read was under way, the object was superseded or purged, its index entry was dropped for the
    /// reuse of its segment, or its store was taken out.
    #[error("the object was superseded during the read")]
    Superseded,
    /// The record was moved while the read was under way; another lookup may find it.
    #[error("the object was moved during the read")]
    Moved,
    /// The record is damaged or not at the expected place.
    #[error("the record is damaged")]
    Damaged,
    /// The device failed.
    #[error("the device failed")]
    Device,
}

/// The result of a `put`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admission {
    /// Lookups find the object, and it is on its way to disk.
    Disk,
    /// Lookups find the object in memory. The [`DropReason`] states why it does not go to disk.
    Memory(DropReason),
    /// The object is not stored.
    Refused(DropReason),
}

impl Admission {
    /// Returns whether a lookup finds the object.
    #[must_use]
    pub const fn is_visible(self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

/// The reason why an object was not, or not completely, stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// No store takes writes.
    NoStore,
    /// Too many bytes wait to be written.
    PendingFull,
    /// The object is too large.
    TooLarge,
    /// The write budget is spent, or only its last quarter is left and the options for that case (size limit
    /// and rule) do not admit the object.
    NotAdmitted,
    /// The object was fetched before a purge that covers it.
    Purged,
    /// The length of the object differs from the announced length.
    Incomplete,
}
