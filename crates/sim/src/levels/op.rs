//! Operations of the cache levels on a disk: URL-read, URL-write, URL-delete.

use serde::Serialize;

/// The three operations of the papers' file-space simulators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskOpKind {
    /// The object is read from disk, because memory does not have it.
    Read,
    /// The object enters the disk.
    Write,
    /// The object leaves the disk: replaced by another version, or evicted.
    Delete,
}

/// One operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOp {
    /// Kind of the operation.
    pub kind: DiskOpKind,
    /// The object.
    pub object: u64,
    /// Bytes of the object, at least 1.
    pub size: u64,
    /// The server that the object came from (0: not known).
    pub server: u32,
}
