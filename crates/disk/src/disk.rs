//! The traits [`Disk`] and [`Queue`]. Every store (a file or device with cached objects) uses its file or
//! device through them.

use crate::AlignedBuf;
use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Storage that is addressed in bytes and transferred in blocks. Only [`grow`](Self::grow) changes its
/// length.
///
/// The blocking calls of this trait are for start-up and tools. Requests are served through queues.
pub trait Disk: Send + Sync + Debug {
    /// Length in bytes: a multiple of [`block_bytes`](Self::block_bytes).
    fn len(&self) -> u64;

    /// True if the length is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The logical block: 512 or 4096 bytes. Positions and lengths of queue operations are multiples of it.
    fn block_bytes(&self) -> u32;

    /// Description of the disk for logs. For a file or device, it contains the path, the kind of transfers
    /// (direct or buffered) and the kind of queues (ring or thread pool). If direct transfers or rings were
    /// wanted but refused, it also contains the reason.
    fn describe(&self) -> String;

    /// Opens a queue for one thread. `depth` (1..=4096) is the number of operations that the caller expects
    /// to have under way at the same time. The queue accepts more operations, which wait inside it. The queue
    /// may be opened on one thread and then moved to the thread that owns it.
    ///
    /// # Errors
    /// If the system offers neither a ring nor threads.
    fn open_queue(&self, depth: u32) -> io::Result<Box<dyn Queue>>;

    /// Fills `into` with the bytes from position `at`. Any alignment and any length are permitted.
    ///
    /// # Errors
    /// `UnexpectedEof` past the end, otherwise the error of the device.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes all of `data` at byte `at`. Position and length must be block-aligned; the memory need not be.
    ///
    /// # Errors
    /// `InvalidInput` if misaligned or past the end, otherwise the error of the device.
    fn write_at(&self, at: u64, data: &[u8]) -> io::Result<()>;

    /// Writes `data` at byte `at` through the operating system's cache. Any alignment and any length are
    /// permitted. Once the call has returned, the bytes survive the death of the process. Once a later flush
    /// has ended, they also survive a power cut. (The flush must begin after the call has returned.) Before
    /// the end of such a flush, a power cut may keep any part of the bytes. The call takes about a
    /// microsecond, because it does not wait for the device.
    ///
    /// Blocks written in this way must never be written or read in any other way. Direct transfers bypass the
    /// cache. So a cached call does not see direct changes, and a direct transfer does not see cached
    /// changes.
    ///
    /// # Errors
    /// `InvalidInput` past the end, otherwise the error of the system.
    fn write_cached(&self, at: u64, data: &[u8]) -> io::Result<()>;

    /// Fills `into` from byte `at`, where [`write_cached`](Self::write_cached) wrote the bytes. If the bytes
    /// have reached the device, each call reads them from the device again, not from the cache.
    ///
    /// # Errors
    /// As `read_at`.
    fn read_cached(&self, at: u64, into: &mut [u8]) -> io::Result<()>;

    /// Makes all data durable that was written before this call.
    ///
    /// # Errors
    /// The error of the device. After an error, writes since the last successful flush may be durable or not.
    fn flush(&self) -> io::Result<()>;

    /// Makes the disk `new_len` bytes long (rounded down to blocks). The contents are kept. The new part of a
    /// file reads as zeros; the new part of a device keeps the bytes that it already contains. A smaller
    /// length is refused.
    ///
    /// # Errors
    /// `Unsupported`, `StorageFull`, or `InvalidInput` (for a smaller length, or a device that is too small).
    fn grow(&self, new_len: u64) -> io::Result<()>;
}

/// An operation and its position on the disk.
#[derive(Debug)]
pub enum OpKind {
    /// Reads `len` bytes at `at` into the beginning of `buf`.
    Read {
        /// Byte offset, block-aligned.
        at: u64,
        /// The buffer for the bytes, with a capacity of at least `len`. It comes back with its length set to
        /// `len`, or to 0 on error.
        buf: AlignedBuf,
        /// Number of bytes to read: a multiple of the block.
        len: usize,
    },
    /// Writes the first `len` bytes of `buf` at `at`.
    Write {
        /// Byte offset, block-aligned.
        at: u64,
        /// The buffer with the bytes; its length is at least `len`. It comes back unchanged.
        buf: AlignedBuf,
        /// Number of bytes to write: a multiple of the block.
        len: usize,
    },
    /// A flush: makes every write durable that *completed* before this operation was submitted.
    Flush,
}

/// One operation, and the number that its completion will carry.
#[derive(Debug)]
pub struct Op {
    /// A number of the caller's choice; it need not be unique.
    pub token: u64,
    /// The operation, with its position and buffer.
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
    /// A flush of all writes that have completed so far.
    #[must_use]
    pub fn flush(token: u64) -> Self {
        Self {
            token,
            kind: OpKind::Flush,
        }
    }
}

/// The result of an operation.
#[derive(Debug)]
pub struct Completion {
    /// The number that the caller chose when it submitted the operation ([`Op::token`]).
    pub token: u64,
    /// Success if the operation was done in full, else the error. Refused operations are reported here too:
    /// a misaligned operation as `InvalidInput`, a read past the end as `UnexpectedEof`, and a write
    /// past the end as `InvalidInput`.
    pub result: io::Result<()>,
    /// The buffer of the read or write.
    pub buf: Option<AlignedBuf>,
}

/// The counters of one queue since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Number of reads that the caller submitted.
    pub reads: u64,
    /// Number of writes that the caller submitted.
    pub writes: u64,
    /// Number of flushes that the caller submitted.
    pub flushes: u64,
    /// Bytes that the submitted reads request.
    pub read_bytes: u64,
    /// Bytes that the submitted writes contain.
    pub written_bytes: u64,
    /// Number of calls that passed operations to the kernel or the pool (for a ring: `io_uring_enter`).
    pub submit_calls: u64,
    /// Number of other calls, made only to collect completions or to wait for them.
    pub wait_calls: u64,
    /// Number of operations that were submitted again because of a short transfer or an interruption.
    pub reissued: u64,
}

/// A function that wakes the owner of a queue while the owner waits for the queue's descriptor.
pub type Nudge = Box<dyn Fn() + Send + Sync>;

/// A queue of operations, owned by one thread.
///
/// A network thread runs a loop. In each iteration it calls `submit` any number of times, and
/// `flush_submissions` once. Then it sleeps in epoll, and calls `reap` once. A thread that waits for nothing
/// but its queue calls `wait` instead of `flush_submissions` and a sleep in epoll, because this needs only
/// one system call. After the first call of `flush_submissions` or `wait`, use the queue from one thread
/// only. A ring (an `io_uring`) belongs to the thread that first used it, and calls of other threads fail.
///
/// Dropping a queue waits for a limited time for operations in flight and discards their results. If the
/// device does not answer, the buffers are leaked, because the kernel may still write to them.
pub trait Queue: Send {
    /// Stages an operation. It makes no system call, never blocks, and accepts any number of operations.
    fn submit(&mut self, op: Op);

    /// Passes all staged operations to the kernel by one call. If the ring is full, later calls pass the
    /// remaining operations automatically. The call does nothing if no operation waits to be passed.
    ///
    /// # Errors
    /// If the kernel refuses the call as a whole. The operations then stay staged, and the call may be
    /// repeated.
    fn flush_submissions(&mut self) -> io::Result<()>;

    /// Moves finished operations to the end of `out`, and returns their number. It never blocks. After it has
    /// returned, [`event_fd`](Self::event_fd) becomes readable again for later completions.
    fn reap(&mut self, out: &mut Vec<Completion>) -> usize;

    /// Submits the staged operations, then blocks until `reap` would return something (true) or the timeout
    /// ends (false). It does not block if something has already completed (true), or if nothing is in flight
    /// (false).
    ///
    /// # Errors
    /// As `flush_submissions`.
    fn wait(&mut self, timeout: Duration) -> io::Result<bool>;

    /// A descriptor that is readable when `reap` may return something. It is for epoll, level or edge
    /// triggered (with tokio: `Readiness`, of feature `tokio`). Spurious wake-ups occur. Any thread may make
    /// the first call of this function before the first call of `flush_submissions` or `wait`. Later, only
    /// the thread that owns the queue may make the first call. A queue whose owner only calls `wait` is
    /// cheaper without the descriptor.
    fn event_fd(&self) -> Option<BorrowedFd<'_>>;

    /// A function that any thread may call to make [`event_fd`](Self::event_fd) readable although nothing has
    /// completed; `None` if there is no descriptor.
    fn nudge(&self) -> Option<Nudge> {
        None
    }

    /// Number of operations that were submitted and not yet reaped, including staged operations.
    fn in_flight(&self) -> usize;

    /// Counters of this queue.
    fn stats(&self) -> QueueStats;
}
