//! Block storage: one narrow [`Disk`] trait, and the ways to have one.
//!
//! [`FileDisk`] is a regular file or block device, driven by an `io_uring` per [`Queue`] or, where
//! the kernel refuses that, by a small thread pool. [`MemDisk`] is memory with planned faults and
//! power cuts, for tests and the simulator. All of them keep the same rules, and one test body
//! (`tests/conformance.rs`) runs on each.
//!
//! The rules:
//! - Offsets and lengths of queue operations are multiples of [`Disk::block_bytes`].
//! - A buffer moves into its operation and comes back with the completion. Nobody can free or read
//!   memory that the kernel may still write.
//! - An operation is done in full or fails. Short transfers are continued inside.
//! - A completed write is *written* (reads see it) but *durable* only when a flush that was
//!   submitted after that completion has completed. Until then a power cut keeps any part of it.
//! - A cached write outlives the process as soon as it returns, and is durable like any other write.
//! - Operations in flight together are not ordered, also when they overlap.
//!
//! This is the only crate of the proxy with `unsafe`; every block says why it is sound.

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
pub use socket::send_queue;
