//! Queues on `io_uring`: one ring each, one submitting system call per turn.
//!
//! Completions are deferred to the owner's next call where the kernel can do that (6.1 and later),
//! else they run cooperatively (5.19), else by interruption. The ring starts disabled and belongs to
//! the thread that uses it first.
//!
//! A thread that sleeps in epoll is woken through an eventfd: with deferred completions the ring's
//! own descriptor becomes readable, but wakes nobody who sleeps on it already (Linux 6.18).

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

/// Most entries of a ring; operations beyond wait inside the queue.
const DEPTH_MAX: u32 = 4096;
/// Most times that one `reap` looks for completions, including those that arrived while it looked. It
/// leaves the rest for later.
const LOOKS: u32 = 4;
/// A dropped queue waits at most this many turns for operations in flight.
const DRAIN_TURNS: u32 = 100;
/// Length of such a turn.
const DRAIN_TURN: Duration = Duration::from_millis(100);

/// Delivery of completions to the owner, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Only inside the owner's own calls: no interruption at all.
    Deferred,
    /// At any return from the kernel.
    Cooperative,
    /// By interrupting the owner.
    Plain,
}

/// Checks that this kernel offers suitable rings; the error is the reason.
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
            // Unknown flags: an older kernel. Anything else will not get better.
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
            // Disabled at first, since a single-issuer ring belongs to the thread that enables it.
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

/// A queue with a ring of its own.
pub(crate) struct RingQueue {
    ring: IoUring,
    /// Signalled by the kernel; made when first asked for, since a queue that only waits needs none.
    events: OnceCell<OwnedFd>,
    /// Memory that the kernel may be reading or writing; freed only when the kernel is done.
    flights: ManuallyDrop<Flights>,
    target: Arc<Target>,
    fixed: bool,
    disabled: bool,
    /// Entries of the ring: at most this many operations are inside it.
    depth: usize,
    /// Submitted by the caller, not flushed.
    staged: VecDeque<u32>,
    /// Flushed, or to be continued, but not in the ring.
    backlog: VecDeque<u32>,
    /// In the ring or the kernel, completion not yet seen.
    inside: usize,
    stats: QueueStats,
}

impl RingQueue {
    pub(crate) fn new(target: Arc<Target>, depth: u32) -> io::Result<Self> {
        let (ring, mode) = build(depth.clamp(1, DEPTH_MAX))?;
        // A registered file saves its reference count per operation; without it works as well.
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

    /// Moves waiting operations into the ring while there is room.
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
            // SAFETY: the entry points into a buffer owned by `flights`, which stays there,
            // unreferenced by anybody, until this slot's completion has been seen; if it never
            // is, `drop` leaks it. The file is kept open by `target`. There is room (checked).
            if unsafe { room.push(&entry) }.is_err() {
                self.backlog.push_front(slot);
                return;
            }
            self.inside += 1;
        }
    }

    /// One system call: submits what is in the ring, runs deferred completions, and waits for one
    /// if a timeout is given. `Ok(false)` when that timed out.
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

    /// True if the kernel holds completions back until it is entered.
    fn held_back(&mut self) -> bool {
        let queue = self.ring.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    /// Takes what is in the completion ring.
    fn collect(&mut self, out: &mut Vec<Completion>) {
        for entry in self.ring.completion() {
            self.inside -= 1;
            // Slots are ours, 32 bits.
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

    /// Clears the signal. Call this after entering (which raises the signal for the completions that
    /// it brings), and before the last look at the ring.
    fn lower(&self) {
        if let Some(events) = self.events.get() {
            // It fails if the signal is not raised, which is as good.
            let _ = rustix::io::read(events, &mut [0; 8]);
        }
    }

    /// Makes the owner come again.
    fn raise(&self) {
        if let Some(events) = self.events.get() {
            // A full counter is readable already.
            let _ = rustix::io::write(events, &1u64.to_ne_bytes());
        }
    }

    /// Submits operations that have waited for room. If the kernel refuses, the next turn tries
    /// again.
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
                // A refusal shows as no completions; the next flush reports it.
                let _ = self.enter(None);
            }
            self.lower();
            self.collect(out);
            // The signal of completions that came in between was cleared, so they must not wait for
            // another.
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
            // Cannot fail: the cell was just seen to be empty.
            let _ = self.events.set(made);
        }
        self.events.get().map(AsFd::as_fd)
    }

    fn nudge(&self) -> Option<Nudge> {
        let events = self.event_fd()?.try_clone_to_owned().ok()?;
        Some(Box::new(move || {
            // A full counter is readable already.
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
            // Operations that would be continued are given up instead.
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
            // Releases the file at once, not when the kernel dismantles the ring later: a device
            // opened exclusively can then be opened again. The kernel refuses this to other threads
            // than the owner; then the release just takes longer.
            let _ = self.ring.submitter().unregister_files();
            // SAFETY: nothing is in the kernel's hands, and `flights` is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.flights) };
        } else {
            // The buffers stay allocated for ever, because the kernel may still write to them, and
            // the file stays locked, because it may still be written.
            std::mem::forget(self.target.clone());
        }
    }
}
