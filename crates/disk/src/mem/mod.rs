//! A disk in memory that tells *written* from *durable*, and fails on demand.
//!
//! The model: a write takes effect as a whole when it is executed; reads see it from then on. It
//! is *unsynced* until a flush executes after it. A power cut ([`MemDisk::crash`]) keeps any
//! chosen part of what is unsynced or not yet executed, by whole writes, blocks or 512-byte
//! sectors, and everything that was durable. Everything random comes from one seed.
//!
//! Operations execute when their queue flushes submissions, in the order of submission; in step
//! mode when the test releases them, in any order.

mod faults;

pub use faults::{Fault, FaultPlan, FaultRule};

use crate::{Disk, Queue};
use foxy_base::Clock;
use std::io;
use std::sync::Arc;

/// Kinds of operations, for rules and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpClass {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Flushes.
    Flush,
    /// All of them (in rules only).
    Any,
}

/// How many operations were executed, and bytes moved, over all queues and blocking calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Bytes of the writes.
    pub written_bytes: u64,
    /// Operations hit by a fault.
    pub faults: u64,
}

/// An executed operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedOp {
    /// Number of its queue in order of opening; `None` for a blocking call.
    pub queue: Option<u32>,
    /// What it was.
    pub class: OpClass,
    /// Byte offset; 0 for a flush.
    pub at: u64,
    /// Bytes; 0 for a flush.
    pub len: u64,
    /// The fault that hit it.
    pub fault: Option<Fault>,
}

/// An operation that waits for [`MemDisk::release`] in step mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldOp {
    /// Its number on this disk, ascending in order of submission.
    pub id: u64,
    /// Number of its queue in order of opening.
    pub queue: u32,
    /// The caller's token.
    pub token: u64,
    /// What it is.
    pub class: OpClass,
    /// Byte offset; 0 for a flush.
    pub at: u64,
    /// Bytes; 0 for a flush.
    pub len: u64,
}

/// A write that a power cut may lose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsynced {
    /// Index in [`MemDisk::unsynced`], in order of execution; those not yet executed come last.
    pub index: usize,
    /// Byte offset.
    pub at: u64,
    /// Bytes.
    pub len: u64,
    /// False if it was submitted, but not executed.
    pub executed: bool,
}

/// What a power cut keeps of the unsynced writes. Kept pieces are applied in order of execution.
pub enum Keep<'a> {
    /// None of it: only what was durable.
    Nothing,
    /// All that was executed.
    All,
    /// The writes for which this says true.
    Writes(&'a mut dyn FnMut(&Unsynced) -> bool),
    /// The blocks for which this says true; the number counts blocks within the write.
    Blocks(&'a mut dyn FnMut(&Unsynced, u64) -> bool),
    /// The 512-byte sectors for which this says true: torn blocks.
    Sectors(&'a mut dyn FnMut(&Unsynced, u64) -> bool),
    /// A random choice by this seed: each write whole, gone or in random blocks, and the order of
    /// overlapping writes kept.
    Random(u64),
}

/// The disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct MemDisk(Arc<()>);

impl MemDisk {
    /// Zeros, `len` bytes (rounded down to blocks of 512 or 4096 bytes); memory is taken only for
    /// what is written. `seed` decides everything random.
    #[must_use]
    pub fn new(_len: u64, _block_bytes: u32, _seed: u64) -> Self {
        Self(Arc::new(()))
    }
    /// The same disk with the clock that [`Fault::Delay`] uses; the system's unless given.
    #[must_use]
    pub fn with_clock(self, _clock: Arc<dyn Clock>) -> Self {
        self
    }
    /// Replaces the fault plan.
    pub fn set_faults(&self, _plan: impl Into<FaultPlan>) {}
    /// Operations wait for `release` from now on (true), or execute when flushed (false; releases
    /// what is held).
    pub fn set_step(&self, _on: bool) {}
    /// What waits, in order of submission.
    #[must_use]
    pub fn held(&self) -> Vec<HeldOp> {
        Vec::new()
    }
    /// Executes one held operation; false if there is none of that id.
    pub fn release(&self, _id: u64) -> bool {
        false
    }
    /// Executes all held operations in order of submission.
    pub fn release_all(&self) {}
    /// Lets stuck and delayed operations complete.
    pub fn unstick(&self) {}
    /// The writes a power cut may lose now.
    #[must_use]
    pub fn unsynced(&self) -> Vec<Unsynced> {
        Vec::new()
    }
    /// The disk as found after a power cut at this moment: a new disk, all of it durable, without
    /// faults or step mode. This one is unchanged, so that one history gives many crashes.
    #[must_use]
    pub fn crash(&self, _keep: Keep<'_>) -> Self {
        self.clone()
    }
    /// The disk as found after the process died: all that was executed. As `crash(Keep::All)`.
    #[must_use]
    pub fn kill(&self) -> Self {
        self.crash(Keep::All)
    }
    /// Changes bytes on the medium behind everybody's back, durably: `change` gets the old ones.
    pub fn corrupt(&self, _at: u64, _len: usize, _change: impl FnOnce(&mut [u8])) {}
    /// Bytes as reads see them now, without counting, faults or logs. Zeros past the end.
    #[must_use]
    pub fn peek(&self, _at: u64, len: usize) -> Vec<u8> {
        vec![0; len]
    }
    /// Counters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts::default()
    }
    /// Starts (with an empty log) or stops recording executed operations.
    pub fn set_log(&self, _on: bool) {}
    /// What was recorded.
    #[must_use]
    pub fn log(&self) -> Vec<LoggedOp> {
        Vec::new()
    }
}

impl Disk for MemDisk {
    fn len(&self) -> u64 {
        0
    }
    fn block_bytes(&self) -> u32 {
        512
    }
    fn describe(&self) -> String {
        "memory".into()
    }
    fn open_queue(&self, _depth: u32) -> io::Result<Box<dyn Queue>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn read_at(&self, _at: u64, _into: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn write_at(&self, _at: u64, _data: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn flush(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn grow(&self, _new_len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
