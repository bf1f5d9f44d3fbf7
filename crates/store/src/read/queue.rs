//! The read queue of one thread: it passes reads on as they arrive, or sorts them together with the reads
//! of other threads.

use std::io;
use std::mem::take;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::Clock;
use foxy_disk::{AlignedBuf, Completion, Op, OpKind, Queue, QueueStats};
use foxy_policy::{Device, MergedRead, PendingRead, ReadGauge};
use hashbrown::HashMap;

use crate::interface::add;
use crate::shared::{Mailbox, Parked, StoreShared};

/// This bit marks the tokens of sorted reads.
const SORTED: u64 = 1 << 63;
/// Time that `wait` sleeps before it checks again whether other threads have finished reads for this
/// queue.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// A dropped queue waits for the reads that it carries out. These are the limits: the maximum number of
/// waits, and the maximum duration of each wait.
const DRAIN: (u32, Duration) = (20, Duration::from_millis(100));

pub(super) struct OrderedQueue {
    inner: Box<dyn Queue>,
    store: Arc<StoreShared>,
    clock: Arc<dyn Clock>,
    gauge: ReadGauge,
    mailbox: Arc<Mailbox>,
    /// The reads that are to be sorted at the next flush.
    staged: Vec<PendingRead<Parked>>,
    /// The number of the queue's own reads that were passed on to be sorted and have not returned. Any
    /// thread may carry them out.
    away: usize,
    /// Sorted reads that this thread carries out.
    carried: HashMap<u64, Carried>,
    next: u64,
    batch: Vec<PendingRead<Parked>>,
}

/// A sorted read under way, and the waiting reads that it satisfies.
struct Carried {
    at: u64,
    parts: Vec<PendingRead<Parked>>,
}

impl OrderedQueue {
    pub(super) fn new(
        inner: Box<dyn Queue>,
        store: Arc<StoreShared>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            inner,
            gauge: ReadGauge::new(store.disk.len()),
            store,
            clock,
            mailbox: Arc::default(),
            staged: Vec::new(),
            away: 0,
            carried: HashMap::new(),
            next: 0,
            batch: Vec::new(),
        }
    }

    /// If the disk is idle, takes the waiting reads and submits them in order.
    fn carry_out(&mut self) -> io::Result<()> {
        let mut batch = take(&mut self.batch);
        let merged: Vec<MergedRead> = {
            let mut waiting = self.store.reads.waiting.lock();
            if waiting.flying > 0 || waiting.reads.is_empty() {
                self.batch = batch;
                return Ok(());
            }
            waiting.reads.take(&mut batch);
            let merged: Vec<_> = waiting.reads.merge(&batch).collect();
            waiting.flying = merged.len();
            merged
        };
        let counters = &self.store.counters;
        add(&counters.sorted_batches, 1);
        add(&counters.sorted_reads, batch.len() as u64);
        add(&counters.joined_reads, (batch.len() - merged.len()) as u64);
        let mut parts = batch.drain(..);
        for read in &merged {
            let parts = parts.by_ref().take(read.count).collect();
            self.begin(read.at, read.len as usize, parts);
        }
        drop(parts);
        self.batch = batch;
        self.inner.flush_submissions()
    }

    /// Stages one sorted read. If it satisfies only one waiting read, it uses the buffer of that read.
    fn begin(&mut self, at: u64, len: usize, mut parts: Vec<PendingRead<Parked>>) {
        let token = self.next;
        self.next += 1;
        let buf = match &mut parts[..] {
            [only] => std::mem::replace(&mut only.tag.buf, AlignedBuf::new(0)),
            _ => AlignedBuf::new(len),
        };
        self.gauge.begins(at, || self.clock.mono());
        self.inner.submit(Op::read(token | SORTED, at, len, buf));
        self.carried.insert(token, Carried { at, parts });
    }

    /// Handles the end of a sorted read: delivers the bytes of each waiting read to the queue that requested
    /// it.
    fn end(&mut self, completion: Completion, out: &mut Vec<Completion>) {
        let Some(mut read) = self.carried.remove(&(completion.token & !SORTED)) else {
            return;
        };
        if read.parts.len() > 1 && completion.result.is_err() {
            // The failed read covers several waiting reads. Each of them is read separately, to find which
            // one fails.
            self.store.reads.waiting.lock().flying += read.parts.len() - 1;
            for part in read.parts {
                self.begin(part.at, part.len as usize, vec![part]);
            }
            return;
        }
        let single = read.parts.len() == 1;
        self.store.reads.waiting.lock().flying -= 1;
        if single && let Some(part) = read.parts.pop() {
            let buf = completion.buf;
            return self.deliver(&part.tag, completion.result, buf, out);
        }
        let whole = completion.buf.as_deref().unwrap_or(&[]);
        for mut part in read.parts {
            let from = (part.at - read.at) as usize;
            let len = part.len as usize;
            let found = whole.get(from..from + len);
            let result = found.map_or(Err(io::ErrorKind::UnexpectedEof.into()), |found| {
                part.tag.buf.set_len(len);
                part.tag.buf.copy_from_slice(found);
                Ok(())
            });
            let buf = std::mem::replace(&mut part.tag.buf, AlignedBuf::new(0));
            self.deliver(&part.tag, result, Some(buf), out);
        }
    }

    fn deliver(
        &mut self,
        part: &Parked,
        result: io::Result<()>,
        buf: Option<AlignedBuf>,
        out: &mut Vec<Completion>,
    ) {
        let completion = Completion {
            token: part.token,
            result,
            buf,
        };
        if Arc::ptr_eq(&part.home, &self.mailbox) {
            self.away -= 1;
            out.push(completion);
        } else {
            part.home.push(completion);
        }
    }

    fn timed(&mut self, failed: bool) {
        if self.gauge.ends(failed, || self.clock.mono()) {
            let device = self.gauge.device();
            self.store.reads.found(device);
            let disk = self.store.disk.describe();
            let sorted = self.store.reads.sorts();
            if device == Device::Rotating {
                tracing::info!(store = disk, sorted, "the disk rotates, its reads tell");
            } else {
                tracing::debug!(store = disk, sorted, ?device, "what the reads tell");
            }
        }
    }

    /// Adds the staged reads to the reads that wait for the disk. If the disk is idle, carries out waiting
    /// reads.
    fn flush_sorted(&mut self) -> io::Result<()> {
        if self.staged.is_empty() {
            return Ok(());
        }
        let now = self.clock.mono();
        let mut waiting = self.store.reads.waiting.lock();
        for read in self.staged.drain(..) {
            waiting.reads.push(read, now);
        }
        drop(waiting);
        self.carry_out()
    }

    fn settle(&mut self, from: usize, out: &mut Vec<Completion>) {
        for completion in out.split_off(from) {
            self.timed(completion.result.is_err());
            if completion.token & SORTED == 0 {
                out.push(completion);
            } else {
                self.end(completion, out);
            }
        }
        // If the submission is refused, the next flush tries it again and reports a failure.
        let _ = self.carry_out();
        let _ = self.inner.flush_submissions();
    }
}

impl Queue for OrderedQueue {
    fn submit(&mut self, op: Op) {
        let Op { token, kind } = op;
        let (at, buf, len) = match kind {
            OpKind::Read { at, buf, len } => (at, buf, len),
            kind => return self.inner.submit(Op { token, kind }),
        };
        let short = u32::try_from(len).ok();
        if let Some(len) = short.filter(|_| self.store.reads.sorts()) {
            let home = self.mailbox.clone();
            let tag = Parked { token, buf, home };
            self.staged.push(PendingRead { at, len, tag });
            self.away += 1;
            return;
        }
        self.gauge.begins(at, || self.clock.mono());
        self.inner.submit(Op::read(token, at, len, buf));
    }

    fn flush_submissions(&mut self) -> io::Result<()> {
        self.flush_sorted()?;
        self.inner.flush_submissions()
    }

    fn reap(&mut self, out: &mut Vec<Completion>) -> usize {
        let before = out.len();
        self.inner.reap(out);
        if self.away == 0 && self.carried.is_empty() {
            for completion in &out[before..] {
                self.timed(completion.result.is_err());
            }
            return out.len() - before;
        }
        self.settle(before, out);
        let mut done = self.mailbox.done.lock();
        self.away -= done.len();
        out.append(&mut done);
        out.len() - before
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        self.flush_sorted()?;
        if self.away == 0 {
            return self.inner.wait(timeout);
        }
        let mut left = timeout;
        loop {
            if !self.mailbox.done.lock().is_empty() {
                return Ok(true);
            }
            let step = left.min(LOOK_EVERY);
            if self.inner.in_flight() > 0 {
                if self.inner.wait(step)? {
                    return Ok(true);
                }
            } else {
                let mut done = self.mailbox.done.lock();
                self.mailbox.arrived.wait_for(&mut done, step);
            }
            self.carry_out()?;
            left -= step;
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        let fd = self.inner.event_fd()?;
        if self.mailbox.nudge.get().is_none() {
            // This cannot fail: `nudge` was unset just before.
            let _ = self.mailbox.nudge.set(self.inner.nudge()?);
        }
        Some(fd)
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() - self.carried.len() + self.away
    }

    fn stats(&self) -> QueueStats {
        self.inner.stats()
    }
}

impl Drop for OrderedQueue {
    /// Finishes the reads that this thread carries out, because other threads wait for them.
    fn drop(&mut self) {
        let mut out = Vec::new();
        for _ in 0..DRAIN.0 {
            if self.carried.is_empty() {
                return;
            }
            let waited = self.inner.wait(DRAIN.1);
            self.inner.reap(&mut out);
            for completion in take(&mut out) {
                if completion.token & SORTED != 0 {
                    self.end(completion, &mut Vec::new());
                }
            }
            if waited.is_err() {
                break;
            }
        }
        let mut waiting = self.store.reads.waiting.lock();
        waiting.flying = waiting.flying.saturating_sub(self.carried.len());
    }
}
