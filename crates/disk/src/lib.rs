//! Block storage: one small [`Disk`] trait, and its implementations.
//!
//! [`FileDisk`] is a regular file or block device. Each [`Queue`] of a `FileDisk` uses an `io_uring`, or a
//! small thread pool if the kernel refuses the ring. [`MemDisk`] is a disk in memory with planned faults and
//! power cuts, for tests and the simulator. All disks keep the same rules, and the same tests
//! (`tests/conformance`) run on each of them.
//!
//! The rules:
//! - Offsets and lengths of queue operations are multiples of [`Disk::block_bytes`].
//! - A buffer moves into its operation and comes back with the completion. So nobody can free or read memory
//!   that the kernel may still write.
//! - An operation is done in full or fails. The queue continues short transfers itself.
//! - A completed write is *written*: reads see it. It becomes *durable* by a flush that is submitted after
//!   the write has completed. Until that flush has completed, a power cut may keep any part of the write.
//! - A cached write survives the death of the process as soon as the call has returned. To survive a power
//!   cut, it needs a later flush like any other write.
//! - Operations in flight at the same time have no order, even if they overlap.
//!
//! This is the proxy's only crate with `unsafe`; each block has a comment that explains why it is sound.

mod allocator;
mod buf;
mod check;
mod disk;
mod error;
mod file;
mod mem;
mod pages;
mod pool;
#[cfg(feature = "tokio")]
mod readiness;
#[cfg(target_os = "linux")]
mod ring;
mod signal;
mod socket;

pub use allocator::{Allocator, give_back_after, separate_long_blocks, use_small_pages};
pub use buf::{AlignedBuf, BufPool};
pub use disk::{Completion, Disk, Nudge, Op, OpKind, Queue, QueueStats};
pub use error::DiskError;
pub use file::{Backend, Direct, FileDisk, OpenOptions, Report, ring_refusal};
pub use mem::{
    Counts, Fault, FaultPlan, FaultRule, HeldOp, Keep, LoggedOp, MemDisk, OpClass, Seek, Unsynced,
};
pub use pages::{map_zeroed, prefer_huge_pages, prefetch, unmap_zeroed};
#[cfg(feature = "tokio")]
pub use readiness::Readiness;
pub use socket::{peer_window, send_queue};
