//! The queues that use no ring (`io_uring`): a few threads call `pread`, `pwrite` and `fdatasync`.

use crate::file::Target;
use crate::signal::Inbox;
use crate::{Completion, Nudge, Op, OpKind, Queue, QueueStats, check};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait of a dropped queue for operations that threads have begun.
const DRAIN: Duration = Duration::from_secs(10);

/// The threads of one disk, shared by its queues. They start when there is work, and end when this
/// value is dropped.
#[derive(Debug)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
    max: usize,
}

#[derive(Debug)]
struct Shared {
    target: Arc<Target>,
    jobs: Mutex<Jobs>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Jobs {
    queue: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closing: bool,
}

struct Job {
    op: Op,
    to: Arc<Inbox<Completion>>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.op.fmt(f)
    }
}

impl Workers {
    pub(crate) fn new(target: Arc<Target>, max: usize) -> Self {
        let shared = Shared {
            target,
            jobs: Mutex::default(),
            more: Condvar::new(),
        };
        Self {
            shared: Arc::new(shared),
            max: max.max(1),
        }
    }

    /// Takes the staged jobs. If there is no thread and none can be started, it fails and leaves the jobs
    /// staged.
    fn accept(&self, staged: &mut VecDeque<Job>) -> io::Result<()> {
        let mut jobs = self.shared.jobs.lock();
        let wanted = jobs.queue.len() + staged.len();
        while jobs.idle < wanted && jobs.threads < self.max {
            match self.spawn() {
                Ok(()) => {
                    jobs.threads += 1;
                    jobs.idle += 1;
                }
                Err(error) if jobs.threads == 0 => return Err(error),
                Err(_) => break,
            }
        }
        let count = staged.len();
        jobs.queue.append(staged);
        drop(jobs);
        for _ in 0..count.min(self.max) {
            self.shared.more.notify_one();
        }
        Ok(())
    }

    fn spawn(&self) -> io::Result<()> {
        let shared = self.shared.clone();
        let run = move || work(&shared);
        std::thread::Builder::new()
            .name("disk".into())
            .stack_size(128 << 10)
            .spawn(run)
            .map(drop)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.jobs.lock().closing = true;
        self.shared.more.notify_all();
    }
}

/// The main function of a thread. The thread counts as idle from its start, so that a burst does
/// not start too many threads.
fn work(shared: &Shared) {
    loop {
        let mut jobs = shared.jobs.lock();
        let job = loop {
            if let Some(job) = jobs.queue.pop_front() {
                break job;
            }
            if jobs.closing {
                return;
            }
            shared.more.wait(&mut jobs);
        };
        jobs.idle -= 1;
        drop(jobs);
        let Job { mut op, to } = job;
        let result = execute(&shared.target, &mut op);
        // The thread counts as idle before the owner sees the completion, so that the owner's next
        // operation does not start an unnecessary thread.
        shared.jobs.lock().idle += 1;
        to.push(check::completion(op, result));
    }
}

fn execute(target: &Target, op: &mut Op) -> io::Result<()> {
    check::op(op, target.len(), target.block)?;
    match &mut op.kind {
        OpKind::Flush => target.sync(),
        OpKind::Write { at, buf, len } => target.write_all(*at, &buf[..*len]),
        OpKind::Read { at, buf, len } => {
            buf.set_len(*len);
            target.read_all(*at, buf)
        }
    }
}

/// A queue that uses the shared threads.
pub(crate) struct PoolQueue {
    workers: Arc<Workers>,
    inbox: Arc<Inbox<Completion>>,
    staged: VecDeque<Job>,
    flying: usize,
    stats: QueueStats,
}

impl PoolQueue {
    pub(crate) fn new(workers: Arc<Workers>) -> io::Result<Self> {
        let inbox = Arc::new(Inbox::new()?);
        let (staged, stats) = (VecDeque::new(), QueueStats::default());
        Ok(Self {
            workers,
            inbox,
            staged,
            flying: 0,
            stats,
        })
    }
}

impl Queue for PoolQueue {
    fn submit(&mut self, op: Op) {
        check::count(&mut self.stats, &op);
        self.staged.push_back(Job {
            op,
            to: self.inbox.clone(),
        });
    }

    fn flush_submissions(&mut self) -> io::Result<()> {
        if self.staged.is_empty() {
            return Ok(());
        }
        let count = self.staged.len();
        self.workers.accept(&mut self.staged)?;
        self.stats.submit_calls += 1;
        self.flying += count;
        Ok(())
    }

    fn reap(&mut self, out: &mut Vec<Completion>) -> usize {
        let count = self.inbox.drain(|completion| out.push(completion));
        self.flying -= count;
        count
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        self.flush_submissions()?;
        if self.flying == 0 {
            return Ok(false);
        }
        self.stats.wait_calls += 1;
        Ok(self.inbox.wait(1, timeout))
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.inbox.fd())
    }

    fn nudge(&self) -> Option<Nudge> {
        let inbox = self.inbox.clone();
        Some(Box::new(move || inbox.nudge()))
    }

    fn in_flight(&self) -> usize {
        self.staged.len() + self.flying
    }

    fn stats(&self) -> QueueStats {
        self.stats
    }
}

impl Drop for PoolQueue {
    fn drop(&mut self) {
        // The threads own the buffers that they work on. So this wait is not necessary for safety;
        // it only makes the queue's end orderly.
        self.inbox.wait(self.flying, DRAIN);
        // A thread may keep the inbox a moment longer than this queue exists. So the buffers in the inbox are
        // dropped now.
        self.inbox.drain(drop);
    }
}
