//! The queues on `io_uring`. Each queue has one ring, and submits all staged operations with one system call.
//!
//! Linux 6.1 and later deliver completions only when the owner calls the ring. Such a ring starts disabled,
//! and belongs to the thread that uses it first. Linux 5.19 delivers completions when the owner returns from
//! any system call. Older kernels interrupt the owner.
//!
//! An eventfd wakes a thread that sleeps in epoll. The ring's own descriptor is not sufficient: with
//! deferred completions it becomes readable, but does not wake a thread that already sleeps on it
//! (Linux 6.18).

mod flights;

use crate::file::Target;
use crate::{Completion, Nudge, Op, Queue, QueueStats, check};
use flights::{Flights, Step};
use io_uring::{IoUring, Probe, opcode, types};
use rustix::event::{EventfdFlags, eventfd};
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Greatest number of entries of a ring. Further operations wait inside the queue.
const DEPTH_MAX: u32 = 4096;
/// Greatest number of checks for completions in one `reap`. Completions that arrive during a check are found
/// by the next check. Completions that arrive after the last check are left for a later call.
const LOOKS: u32 = 4;
/// Greatest number of times that a dropped queue waits for operations in flight.
const DRAIN_TURNS: u32 = 100;
/// Longest duration of one wait of a dropped queue.
const DRAIN_TURN: Duration = Duration::from_millis(100);

/// Ways to deliver completions to the owner, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Only inside the owner's own calls, without any interruption.
    Deferred,
    /// At any return from the kernel to the program.
    Cooperative,
    /// By interrupting the owner at any time.
    Plain,
}

/// Checks that this kernel offers suitable rings. Otherwise the error is the reason why it does not.
pub(crate) fn probe() -> Result<(), String> {
    let (ring, _) = build(2).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel has no io_uring".to_owned(),
        Some(libc::EPERM | libc::EACCES) => "the system forbids io_uring".to_owned(),
        Some(libc::ENOMEM) => "io_uring gets no memory (locked memory limit?)".to_owned(),
        _ => format!("io_uring setup fails: {error}"),
    })?;
    if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
        return Err("the kernel's io_uring is too old (5.11 is needed)".to_owned());
    }
    let mut probe = Probe::new();
    let asked = ring.submitter().register_probe(&mut probe);
    asked.map_err(|error| format!("io_uring cannot be asked for its operations: {error}"))?;
    let needed = [
        opcode::Read::CODE,
        opcode::Write::CODE,
        opcode::Fsync::CODE,
        opcode::Nop::CODE,
    ];
    if needed.iter().all(|code| probe.is_supported(*code)) {
        Ok(())
    } else {
        Err("the kernel's io_uring lacks reads or writes".to_owned())
    }
}

fn build(entries: u32) -> io::Result<(IoUring, Mode)> {
    let mut refusal = None;
    for mode in [Mode::Deferred, Mode::Cooperative, Mode::Plain] {
        match build_in(mode, entries) {
            Ok(ring) => return Ok((ring, mode)),
            // The kernel is too old for the flags of this mode, so the next mode is tried. Any other error
            // would also occur in the other modes.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refusal = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(refusal.unwrap_or_else(|| io::ErrorKind::Unsupported.into()))
}

fn build_in(mode: Mode, entries: u32) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.dontfork().setup_clamp();
    match mode {
        Mode::Deferred => {
            // The ring is disabled at first, since a single-issuer ring belongs to the thread that enables
            // it.
            builder
                .setup_single_issuer()
                .setup_defer_taskrun()
                .setup_taskrun_flag();
            builder.setup_submit_all().setup_r_disabled();
        }
        Mode::Cooperative => {
            builder
                .setup_coop_taskrun()
                .setup_taskrun_flag()
                .setup_submit_all();
        }
        Mode::Plain => {}
    }
    builder.build(entries)
}

/// A queue that has its own ring.
pub(crate) struct RingQueue {
    ring: IoUring,
    /// An eventfd that the kernel signals. It is made at the first call of `event_fd`, since a queue whose
    /// owner only calls `wait` does not need it.
    events: OnceCell<OwnedFd>,
    /// Memory that the kernel may be reading or writing. It is freed only when the kernel no longer uses it.
    flights: ManuallyDrop<Flights>,
    target: Arc<Target>,
    fixed: bool,
    disabled: bool,
    /// Number of entries of the ring: the greatest number of operations that can be inside the ring.
    depth: usize,
    /// Operations that the caller submitted and has not flushed.
    staged: VecDeque<u32>,
    /// Operations that were flushed or must be continued, and are not in the ring.
    backlog: VecDeque<u32>,
    /// Number of operations that are in the ring or the kernel and whose completion was not seen yet.
    inside: usize,
    stats: QueueStats,
}

impl RingQueue {
    pub(crate) fn new(target: Arc<Target>, depth: u32) -> io::Result<Self> {
        let (ring, mode) = build(depth.clamp(1, DEPTH_MAX))?;
        // With a registered file, the kernel counts no references per operation. If the registration fails,
        // operations name the file by its descriptor.
        let fixed = ring
            .submitter()
            .register_files(&[target.file.as_raw_fd()])
            .is_ok();
        let depth = ring.params().sq_entries() as usize;
        Ok(Self {
            ring,
            events: OnceCell::new(),
            flights: ManuallyDrop::new(Flights::default()),
            target,
            fixed,
            disabled: mode == Mode::Deferred,
            depth,
            staged: VecDeque::new(),
            backlog: VecDeque::new(),
            inside: 0,
            stats: QueueStats::default(),
        })
    }

    /// Moves waiting operations into the ring until it is full.
    fn fill_ring(&mut self) {
        let mut room = self.ring.submission();
        while self.inside < self.depth && !room.is_full() {
            let Some(slot) = self.backlog.pop_front() else {
                return;
            };
            let fd = self.target.file.as_raw_fd();
            let entry = self
                .flights
                .entry(slot, self.fixed.then_some(types::Fixed(0)), fd);
            // SAFETY: the entry points into a buffer that `flights` owns. The buffer stays there, and nobody
            // has a reference to it, until this slot's completion has been seen. If the completion is never
            // seen, `drop` leaks the buffer. `target` keeps the file open. The loop's condition checks that
            // the ring is not full.
            if unsafe { room.push(&entry) }.is_err() {
                self.backlog.push_front(slot);
                return;
            }
            self.inside += 1;
        }
    }

    /// Makes one system call. It submits the entries in the ring, runs deferred completions, and waits for
    /// one completion if a timeout is given. Returns `Ok(false)` if the wait timed out.
    fn enter(&mut self, wait: Option<Duration>) -> io::Result<bool> {
        if self.disabled {
            self.ring.submitter().register_enable_rings()?;
            self.disabled = false;
        }
        let span = types::Timespec::from(wait.unwrap_or_default());
        let args = types::SubmitArgs::new().timespec(&span);
        loop {
            let result = match wait {
                None => self.ring.submit(),
                Some(_) => self.ring.submitter().submit_with_args(1, &args),
            };
            match result {
                Ok(_) => return Ok(true),
                Err(error) => match error.raw_os_error() {
                    Some(libc::ETIME) => return Ok(false),
                    Some(libc::EINTR) if wait.is_none() => {}
                    Some(libc::EINTR) => return Ok(false),
                    _ => return Err(error),
                },
            }
        }
    }

    /// True if the kernel delays completions until the thread enters the kernel.
    fn held_back(&mut self) -> bool {
        let queue = self.ring.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    /// Takes all entries from the completion ring.
    fn collect(&mut self, out: &mut Vec<Completion>) {
        for entry in self.ring.completion() {
            self.inside -= 1;
            // The slot numbers are our own and have 32 bits.
            let slot = entry.user_data() as u32;
            match self.flights.land(slot, entry.result(), self.target.block) {
                Step::Done(completion) => out.push(completion),
                Step::Again => {
                    self.stats.reissued += 1;
                    self.backlog.push_back(slot);
                }
                Step::Unknown => {}
            }
        }
    }

    /// Clears the signal. Call this after entering the kernel (which raises the signal for the completions
    /// that it delivers), and before the last check of the ring.
    fn lower(&self) {
        if let Some(events) = self.events.get() {
            // The read fails if the signal is not raised; that is the wanted state.
            let _ = rustix::io::read(events, &mut [0; 8]);
        }
    }

    /// Raises the signal, so that the owner reaps again.
    fn raise(&self) {
        if let Some(events) = self.events.get() {
            // If the counter is full, the descriptor is readable already.
            let _ = rustix::io::write(events, &1u64.to_ne_bytes());
        }
    }

    /// Submits operations that have waited for free entries in the ring. If the kernel refuses, a later call
    /// tries again.
    fn push_on(&mut self) {
        if self.backlog.is_empty() {
            return;
        }
        self.fill_ring();
        if self.enter(None).is_ok() {
            self.stats.submit_calls += 1;
        }
    }
}

impl Queue for RingQueue {
    fn submit(&mut self, op: Op) {
        check::count(&mut self.stats, &op);
        let refused = check::op(&op, self.target.len(), self.target.block).err();
        self.staged.push_back(self.flights.insert(op, refused));
    }

    fn flush_submissions(&mut self) -> io::Result<()> {
        self.backlog.append(&mut self.staged);
        self.fill_ring();
        if self.ring.submission().is_empty() {
            return Ok(());
        }
        self.stats.submit_calls += 1;
        self.enter(None).map(drop)
    }

    fn reap(&mut self, out: &mut Vec<Completion>) -> usize {
        let before = out.len();
        for _ in 0..LOOKS {
            if self.inside > 0 && self.held_back() {
                self.stats.wait_calls += 1;
                // An error is ignored here: no completions arrive, and the next flush reports the error.
                let _ = self.enter(None);
            }
            self.lower();
            self.collect(out);
            // Completions that the kernel still holds back must be taken by the next iteration, because their
            // signal may have been cleared.
            if self.inside == 0 || !self.held_back() {
                self.push_on();
                return out.len() - before;
            }
        }
        self.raise();
        self.push_on();
        out.len() - before
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        self.backlog.append(&mut self.staged);
        self.fill_ring();
        if self.inside == 0 {
            return Ok(false);
        }
        let waiting = !self.ring.completion().is_empty();
        if waiting && self.ring.submission().is_empty() {
            return Ok(true);
        }
        self.stats.wait_calls += 1;
        self.enter(if waiting { None } else { Some(timeout) })?;
        Ok(!self.ring.completion().is_empty())
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        if self.events.get().is_none() {
            let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
            self.ring
                .submitter()
                .register_eventfd(made.as_raw_fd())
                .ok()?;
            // This cannot fail: the cell was empty just before.
            let _ = self.events.set(made);
        }
        self.events.get().map(AsFd::as_fd)
    }

    fn nudge(&self) -> Option<Nudge> {
        let events = self.event_fd()?.try_clone_to_owned().ok()?;
        Some(Box::new(move || {
            // If the counter is full, the descriptor is readable already.
            let _ = rustix::io::write(&events, &1u64.to_ne_bytes());
        }))
    }

    fn in_flight(&self) -> usize {
        self.flights.len()
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }
}

impl Drop for RingQueue {
    fn drop(&mut self) {
        self.backlog.clear();
        let mut sink = Vec::new();
        for _ in 0..DRAIN_TURNS {
            self.collect(&mut sink);
            // Operations that would have to be continued are abandoned.
            self.backlog.clear();
            if self.inside == 0 {
                break;
            }
            if self.enter(Some(DRAIN_TURN)).is_err() {
                break;
            }
        }
        self.collect(&mut sink);
        if self.inside == 0 {
            // Releases the file now. Otherwise the kernel releases the file only when it dismantles the ring
            // later, and a device opened exclusively could not be opened again until then. The kernel refuses
            // this call from threads other than the owner. Then the release only takes longer.
            let _ = self.ring.submitter().unregister_files();
            // SAFETY: the kernel has no operation in progress, and `flights` is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.flights) };
        } else {
            // The buffers stay allocated for ever, because the kernel may still write to them. The file stays
            // locked, because the kernel may still write to it.
            std::mem::forget(self.target.clone());
        }
    }
}
