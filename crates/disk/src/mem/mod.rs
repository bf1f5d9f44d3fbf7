//! A disk in memory that distinguishes *written* from *durable* data, and fails on demand.
//!
//! The model: a write takes effect as a whole when it is executed, and later reads see it. It is *unsynced*
//! until a flush executes after it. A power cut ([`MemDisk::crash`]) keeps everything that was durable. All
//! other writes are unsynced or not yet executed. From these writes, a power cut keeps the part that the
//! caller chooses: whole writes, blocks or 512-byte sectors. All random choices follow from one seed.
//!
//! A flush covers only the writes whose completions were reaped before the flush was submitted, because a
//! real device guarantees no more.
//!
//! A cached write ([`Disk::write_cached`]) is executed before the call returns, as one write for each sector.
//! It survives a kill of the process. A power cut keeps any part of it.
//!
//! Operations execute in the order of submission when their queue flushes submissions. In step mode they
//! execute when the test releases them, in the order that the test chooses.

mod crash;
mod faults;
mod image;
mod queue;
mod seek;
mod state;
#[cfg(test)]
mod tests;

pub use faults::{Fault, FaultPlan, FaultRule};
pub use seek::Seek;

use crate::{Disk, Queue, check};
use foxy_base::{Clock, Rng, SystemClock};
use image::Image;
use parking_lot::Mutex;
use queue::MemQueue;
use seek::Head;
use state::{Held, State};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Kinds of operations, for fault rules and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpClass {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Flushes.
    Flush,
    /// All classes (in rules only).
    Any,
}

/// The numbers of operations (of all queues and blocking calls), and of the bytes that they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of flushes.
    pub flushes: u64,
    /// Bytes moved by the reads.
    pub read_bytes: u64,
    /// Bytes moved by the writes.
    pub written_bytes: u64,
    /// Number of operations that a fault hit.
    pub faults: u64,
}

/// An executed operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedOp {
    /// Number of the operation's queue, in order of opening; `None` for a blocking call.
    pub queue: Option<u32>,
    /// Class of the operation.
    pub class: OpClass,
    /// Byte offset; 0 for a flush.
    pub at: u64,
    /// Number of bytes; 0 for a flush.
    pub len: u64,
    /// The fault that hit the operation.
    pub fault: Option<Fault>,
}

/// An operation that waits for [`MemDisk::release`] in step mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldOp {
    /// The operation's number on this disk. Numbers ascend in order of submission.
    pub id: u64,
    /// Number of the operation's queue, in order of opening.
    pub queue: u32,
    /// The caller's token.
    pub token: u64,
    /// Class of the operation.
    pub class: OpClass,
    /// Byte offset; 0 for a flush.
    pub at: u64,
    /// Number of bytes; 0 for a flush.
    pub len: u64,
}

/// A write that a power cut may lose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsynced {
    /// Index in [`MemDisk::unsynced`], in order of execution. Writes that are not yet executed come last.
    pub index: usize,
    /// Byte offset.
    pub at: u64,
    /// Number of bytes.
    pub len: u64,
    /// False if the write was submitted, but not executed.
    pub executed: bool,
}

/// The part of the unsynced writes that a power cut keeps. Kept pieces are applied in order of execution.
pub enum Keep<'a> {
    /// None of the writes: only durable data is kept.
    Nothing,
    /// All writes that were executed.
    All,
    /// The writes for which this function returns true.
    Writes(&'a mut dyn FnMut(&Unsynced) -> bool),
    /// The blocks for which this function returns true. The second argument is the number of the block within
    /// the write.
    Blocks(&'a mut dyn FnMut(&Unsynced, u64) -> bool),
    /// The 512-byte sectors for which this function returns true, so that blocks can be torn. The second
    /// argument is the number of the sector within the write.
    Sectors(&'a mut dyn FnMut(&Unsynced, u64) -> bool),
    /// A random choice with this seed. Each write is kept whole, lost, or kept in random blocks. Overlapping
    /// writes keep their order.
    Random(u64),
}

/// The disk in memory. All clones are the same disk.
#[derive(Clone)]
pub struct MemDisk(Arc<Mutex<State>>);

impl MemDisk {
    /// Makes a disk of `len` zero bytes (rounded down to blocks). It uses memory only for pages that were
    /// written. `seed` decides all random choices.
    ///
    /// # Panics
    /// If `block_bytes` is neither 512 nor 4096: a mistake of the caller.
    #[must_use]
    pub fn new(len: u64, block_bytes: u32, seed: u64) -> Self {
        assert!(
            matches!(block_bytes, 512 | 4096),
            "blocks of {block_bytes} bytes"
        );
        Self::from_image(
            len,
            block_bytes,
            Rng::new(seed),
            Image::default(),
            system_clock(),
        )
    }

    fn from_image(len: u64, block: u32, rng: Rng, image: Image, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Mutex::new(State {
            len: len / u64::from(block) * u64::from(block),
            block,
            durable: image.clone(),
            written: image,
            unsynced: Vec::new(),
            late: Vec::new(),
            held: Vec::new(),
            parked: Vec::new(),
            step: false,
            plan: FaultPlan::none(),
            rng,
            clock,
            counts: Counts::default(),
            log: None,
            next_id: 0,
            queues: 0,
            head: None,
            longest_wait: None,
        })))
    }

    /// Sets the clock that [`Fault::Delay`] and [`Seek`] use. Without this call, the disk uses the system's
    /// clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        self.0.lock().clock = clock;
        self
    }

    /// Returns the same disk. Its queues never wait longer than `most` of real time, even if a timeout is
    /// longer. This is for tests with one thread, where nothing completes during a wait.
    #[must_use]
    pub fn with_longest_wait(self, most: Duration) -> Self {
        self.0.lock().longest_wait = Some(most);
        self
    }

    /// Replaces the fault plan.
    pub fn set_faults(&self, plan: impl Into<FaultPlan>) {
        self.0.lock().plan = plan.into();
    }

    /// Sets the time that reads and writes of queues take from now on, by the disk's clock. With `None`, they
    /// take no time. Flushes and blocking calls take no time in either case.
    pub fn set_seek(&self, seek: Option<Seek>) {
        self.0.lock().head = seek.map(Head::new);
    }

    /// With true, operations of queues wait for `release` from now on. With false, they execute when their
    /// queue flushes submissions; held operations are released. Blocking calls never wait.
    pub fn set_step(&self, on: bool) {
        self.0.lock().step = on;
        if !on {
            self.release_all();
        }
    }

    /// Held operations, in order of submission.
    #[must_use]
    pub fn held(&self) -> Vec<HeldOp> {
        self.0.lock().held.iter().map(Held::describe).collect()
    }

    /// Executes the held operation `id`; false if there is no such operation.
    pub fn release(&self, id: u64) -> bool {
        let mut state = self.0.lock();
        let Some(index) = state.held.iter().position(|held| held.id == id) else {
            return false;
        };
        let held = state.held.remove(index);
        state.run(held.id, held.op, &held.owner);
        true
    }

    /// Executes all held operations in order of submission.
    pub fn release_all(&self) {
        let mut state = self.0.lock();
        for held in std::mem::take(&mut state.held) {
            state.run(held.id, held.op, &held.owner);
        }
    }

    /// Lets stuck and delayed operations complete.
    pub fn unstick(&self) {
        for parked in std::mem::take(&mut self.0.lock().parked) {
            state::deliver(&parked.owner, parked.parcel);
        }
    }

    /// The writes that a power cut may lose now.
    #[must_use]
    pub fn unsynced(&self) -> Vec<Unsynced> {
        crash::unsynced(&self.0.lock())
            .into_iter()
            .map(|(write, _)| write)
            .collect()
    }

    /// The disk as it is found after a power cut at this moment. It is a new disk whose contents are durable,
    /// without faults, step mode or log. The disk `self` is unchanged, so that a test can try many power cuts
    /// after the same operations.
    #[must_use]
    pub fn crash(&self, keep: Keep<'_>) -> Self {
        let state = self.0.lock();
        let image = crash::image(&state, keep);
        Self::from_image(
            state.len,
            state.block,
            state.rng.clone(),
            image,
            state.clock.clone(),
        )
    }

    /// The disk as it is found after the process died: every executed write is kept. Equals
    /// `crash(Keep::All)`.
    #[must_use]
    pub fn kill(&self) -> Self {
        self.crash(Keep::All)
    }

    /// Changes bytes on the disk directly and durably; `change` gets the old bytes. Changed bytes past the
    /// end of the disk are kept too, and become visible after growth.
    pub fn corrupt(&self, at: u64, len: usize, change: impl FnOnce(&mut [u8])) {
        let mut state = self.0.lock();
        let mut bytes = vec![0; len];
        state.written.read(at, &mut bytes);
        change(&mut bytes);
        state.spoil(at, &bytes);
    }

    /// The bytes that a read would return now, without counting, faults or logs. Bytes past the end are
    /// zeros.
    #[must_use]
    pub fn peek(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.lock().written.read(at, &mut bytes);
        bytes
    }

    /// The numbers of operations and bytes so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.0.lock().counts
    }

    /// Starts to record executed operations with an empty log, or stops recording.
    pub fn set_log(&self, on: bool) {
        self.0.lock().log = on.then(Vec::new);
    }

    /// The recorded operations.
    #[must_use]
    pub fn log(&self) -> Vec<LoggedOp> {
        self.0.lock().log.clone().unwrap_or_default()
    }
}

impl std::fmt::Debug for MemDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Effect of a fault on a blocking call. Such a call cannot be delayed: `Stuck` becomes a timeout, and delays
/// are ignored.
fn blocking(fault: Option<Fault>) -> io::Result<Option<Fault>> {
    match fault {
        Some(Fault::Stuck) => Err(io::ErrorKind::TimedOut.into()),
        other => Ok(other),
    }
}

fn system_clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::default())
}

impl Disk for MemDisk {
    fn len(&self) -> u64 {
        self.0.lock().len
    }

    fn block_bytes(&self) -> u32 {
        self.0.lock().block
    }

    fn describe(&self) -> String {
        let state = self.0.lock();
        format!("memory, {} bytes, blocks of {}", state.len, state.block)
    }

    fn open_queue(&self, _depth: u32) -> io::Result<Box<dyn Queue>> {
        Ok(Box::new(MemQueue::new(self.0.clone())?))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let mut state = self.0.lock();
        check::range(false, at, into.len() as u64, state.len)?;
        let fault = state.strike(None, OpClass::Read, at, into.len() as u64);
        state.read(at, into, blocking(fault)?)
    }

    fn write_at(&self, at: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock();
        check::aligned(at, data.len() as u64, state.block)?;
        check::range(true, at, data.len() as u64, state.len)?;
        let fault = state.strike(None, OpClass::Write, at, data.len() as u64);
        // The write has completed for the caller when this call returns, so every later flush covers the
        // write.
        let seen = Arc::new(AtomicU64::new(state.new_id()));
        state.write(at, data, blocking(fault)?, seen)
    }

    fn write_cached(&self, at: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock();
        check::range(true, at, data.len() as u64, state.len)?;
        let fault = state.strike(None, OpClass::Write, at, data.len() as u64);
        let seen = Arc::new(AtomicU64::new(state.new_id()));
        state.write_cached(at, data, blocking(fault)?, &seen)
    }

    fn read_cached(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_at(at, into)
    }

    fn flush(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        let fault = state.strike(None, OpClass::Flush, 0, 0);
        let id = state.new_id();
        state.flush(id, blocking(fault)?)
    }

    fn grow(&self, new_len: u64) -> io::Result<()> {
        let mut state = self.0.lock();
        let new_len = new_len / u64::from(state.block) * u64::from(state.block);
        if new_len < state.len {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a disk cannot shrink",
            ));
        }
        state.len = new_len;
        Ok(())
    }
}
