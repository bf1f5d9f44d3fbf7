//! The traits every store is written against: a [`Disk`], and its [`Queue`]s.

use crate::AlignedBuf;
use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Storage of a fixed length, addressed in bytes, transferred in blocks.
///
/// The blocking calls here are for start-up and tools; serving goes through queues.
pub trait Disk: Send + Sync + Debug {
    /// Length in bytes; a multiple of [`block_bytes`](Self::block_bytes). Only `grow` changes it.
    fn len(&self) -> u64;

    /// True if there is no room at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The logical block: 512 or 4096 bytes. Queue operations are multiples of it.
    fn block_bytes(&self) -> u32;

    /// Description of the disk for logs: path, direct or buffered, ring or pool and why.
    fn describe(&self) -> String;

    /// A queue for one thread, meant for about `depth` operations at once (1..=4096; more are
    /// accepted and wait inside). It may be opened on one thread and then moved to its owner.
    ///
    /// # Errors
    /// When the system offers neither a ring nor threads.
    fn open_queue(&self, depth: u32) -> io::Result<Box<dyn Queue>>;

    /// Fills `into` from byte `at`; any alignment, any length.
    ///
    /// # Errors
    /// `UnexpectedEof` past the end, otherwise what the device says.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes all of `data` at byte `at`; both block-aligned, the memory need not be.
    ///
    /// # Errors
    /// `InvalidInput` when misaligned or past the end, otherwise what the device says.
    fn write_at(&self, at: u64, data: &[u8]) -> io::Result<()>;

    /// Writes `data` at byte `at` through the operating system's cache; any alignment, any length.
    /// Written bytes survive the death of the process at once. They survive a power cut after a flush
    /// that began later; without such a flush a power cut may keep any part of them. Takes about a
    /// microsecond: the device is not waited for.
    ///
    /// Blocks written in this way must never be written or read in any other way: direct transfers
    /// and the cache do not see each other.
    ///
    /// # Errors
    /// `InvalidInput` past the end, otherwise what the system says.
    fn write_cached(&self, at: u64, data: &[u8]) -> io::Result<()>;

    /// Fills `into` from byte `at` with what [`write_cached`](Self::write_cached) wrote. Bytes that
    /// have reached the device are read from the device again by each call.
    ///
    /// # Errors
    /// As `read_at`.
    fn read_cached(&self, at: u64, into: &mut [u8]) -> io::Result<()>;

    /// Makes everything durable that was written before this call.
    ///
    /// # Errors
    /// The error of the device; then nothing is known about the writes since the last flush.
    fn flush(&self) -> io::Result<()>;

    /// Makes the disk `new_len` bytes long (rounded down to blocks); contents are kept, new room
    /// reads as zeros or, on a device, as what was there. A smaller length is refused.
    ///
    /// # Errors
    /// `Unsupported`, `StorageFull`, `InvalidInput` (shrinking, or a device that is smaller).
    fn grow(&self, new_len: u64) -> io::Result<()>;
}

/// Operation and position on the disk.
#[derive(Debug)]
pub enum OpKind {
    /// Reads `len` bytes at `at` into the beginning of `buf`.
    Read {
        /// Byte offset, block-aligned.
        at: u64,
        /// Room for at least `len` bytes; comes back with its length set to `len` (0 on error).
        buf: AlignedBuf,
        /// Bytes, a multiple of the block.
        len: usize,
    },
    /// Writes the first `len` bytes of `buf` at `at`.
    Write {
        /// Byte offset, block-aligned.
        at: u64,
        /// At least `len` bytes; comes back unchanged.
        buf: AlignedBuf,
        /// Bytes, a multiple of the block.
        len: usize,
    },
    /// Makes durable every write *completed* before this operation was submitted.
    Flush,
}

/// One operation, with the number its completion will carry.
#[derive(Debug)]
pub struct Op {
    /// The caller's own; need not be unique.
    pub token: u64,
    /// The operation.
    pub kind: OpKind,
}

impl Op {
    /// A read of `len` bytes at `at`.
    #[must_use]
    pub fn read(token: u64, at: u64, len: usize, buf: AlignedBuf) -> Self {
        Self {
            token,
            kind: OpKind::Read { at, buf, len },
        }
    }
    /// A write of the first `len` bytes of `buf` at `at`.
    #[must_use]
    pub fn write(token: u64, at: u64, len: usize, buf: AlignedBuf) -> Self {
        Self {
            token,
            kind: OpKind::Write { at, buf, len },
        }
    }
    /// A flush of what has completed so far.
    #[must_use]
    pub fn flush(token: u64) -> Self {
        Self {
            token,
            kind: OpKind::Flush,
        }
    }
}

/// The end of an operation.
#[derive(Debug)]
pub struct Completion {
    /// The number given at submission.
    pub token: u64,
    /// Done in full, or why not. Refused operations (misaligned: `InvalidInput`; read past the
    /// end: `UnexpectedEof`; write past the end: `InvalidInput`) end here too.
    pub result: io::Result<()>,
    /// The buffer of a read or write.
    pub buf: Option<AlignedBuf>,
}

/// Counts of one queue since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Reads submitted by the caller.
    pub reads: u64,
    /// Writes submitted by the caller.
    pub writes: u64,
    /// Flushes submitted by the caller.
    pub flushes: u64,
    /// Bytes asked for by the reads.
    pub read_bytes: u64,
    /// Bytes given by the writes.
    pub written_bytes: u64,
    /// Calls that handed operations to the kernel or the pool (ring: `io_uring_enter`).
    pub submit_calls: u64,
    /// Further calls, made only to collect or to wait for completions.
    pub wait_calls: u64,
    /// Operations issued again because of a short transfer or an interruption.
    pub reissued: u64,
}

/// Wakes the owner of a queue who waits for its descriptor.
pub type Nudge = Box<dyn Fn() + Send + Sync>;

/// Operations under way, owned by one thread.
///
/// A turn of a network thread is: `submit` any number, `flush_submissions` once, sleep in epoll,
/// `reap` once. A thread that has nothing but its queue calls `wait` instead of flushing and
/// sleeping: one system call does both.
/// Use it from one thread only once the first operation has been flushed: a ring belongs to the
/// thread that first used it, and refuses others with an error.
///
/// Dropping it waits (bounded) for what is in flight and discards the results; if the device does
/// not answer, the memory is leaked rather than freed under the kernel's hands.
pub trait Queue: Send {
    /// Stages an operation: no system call, never blocks, any number.
    fn submit(&mut self, op: Op);

    /// Hands everything staged to the kernel by one call; operations that exceed the ring follow by
    /// themselves in later turns. Does nothing when nothing is staged.
    ///
    /// # Errors
    /// When the kernel refuses the call as a whole; operations stay staged, and may be tried again.
    fn flush_submissions(&mut self) -> io::Result<()>;

    /// Moves finished operations to the end of `out`, and returns how many. Never blocks. Once it
    /// has returned, [`event_fd`](Self::event_fd) becomes readable again for later completions.
    fn reap(&mut self, out: &mut Vec<Completion>) -> usize;

    /// Flushes submissions, then blocks until `reap` would find something (true) or the timeout
    /// (false). True at once if something is there; false at once if nothing is in flight.
    ///
    /// # Errors
    /// As `flush_submissions`.
    fn wait(&mut self, timeout: Duration) -> io::Result<bool>;

    /// Readable when `reap` may find something; for epoll, level or edge triggered (with tokio:
    /// `Readiness`, of feature `tokio`). Spurious wake-ups occur. Call this for the first time on the
    /// thread that owns the queue, or before the first flush. A queue that only `wait`s is cheaper
    /// without the descriptor.
    fn event_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Handle that makes [`event_fd`](Self::event_fd) readable from any thread although nothing has
    /// completed; `None` where there is no descriptor.
    fn nudge(&self) -> Option<Nudge> {
        None
    }

    /// Operations submitted and not yet reaped, staged ones included.
    fn in_flight(&self) -> usize;

    /// Counters.
    fn stats(&self) -> QueueStats;
}
