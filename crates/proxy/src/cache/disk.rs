//! The disk reads of one worker (network thread). The worker has its own read queue for every store. The
//! worker submits reads once per iteration of its event loop, and wakes no other thread.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use foxy_base::Clock;
use foxy_disk::{AlignedBuf, BufPool, Completion, Op, Queue, Readiness};
use foxy_store::{Backlog, Engine, Object, ReadMiss, ReadPlan, StoreId};
use hashbrown::HashMap;
use tokio::sync::Notify;

/// Largest number of concurrent reads of a queue.
const DEPTH: u32 = 128;
/// Largest total size in bytes of the unused read buffers that a worker keeps.
const IDLE_BUFFERS: usize = 8 << 20;
/// The unused read buffers of all workers together take at most the memory for requests, divided by this
/// number.
const IDLE_PART: usize = 8;

/// Longest expected wait behind other reads. If a read would wait for longer, [`DiskReader::declines`]
/// returns true.
const BACKLOG_MAX: Duration = Duration::from_millis(250);

/// Position on the disk, length and key hash of a read. Calls with equal values share one read.
type Same = (u64, u32, u128);

/// The result that each caller of [`DiskReader::read`] receives.
type Answer = Result<Arc<Object>, ReadMiss>;
/// Checks the bytes that were read and turns them into an object.
type Finish = Box<dyn FnOnce(&Engine, &ReadPlan, AlignedBuf) -> Answer>;

/// The disk reads of one worker.
#[derive(Debug)]
pub(crate) struct DiskReader {
    engine: Arc<Engine>,
    clock: Arc<dyn Clock>,
    buffers: BufPool,
    queues: Queues,
}

/// A queue for each store. `None` means that the queue of this store could not be opened.
type Queues = Rc<RefCell<HashMap<StoreId, Option<Rc<StoreQueue>>>>>;

struct StoreQueue {
    clock: Arc<dyn Clock>,
    inner: RefCell<Inner>,
    /// Signals that a read was staged: it is in the queue, but not yet submitted to the kernel.
    staged: Notify,
    /// True if the store was taken out of use and its last read has ended. No read is staged after that.
    left: Cell<bool>,
}

struct Inner {
    queue: Box<dyn Queue>,
    reads: HashMap<u64, Read>,
    by_plan: HashMap<Same, u64>,
    next: u64,
    backlog: Backlog,
}

struct Read {
    /// The read that is carried out: the requested read, or a longer read that includes it.
    plan: ReadPlan,
    /// The values that identify the requested read.
    same: Same,
    finish: Finish,
    waiters: Vec<Rc<RefCell<Slot>>>,
    /// True if the read took too long. Then no caller waits for it any longer.
    given_up: bool,
}

#[derive(Default)]
struct Slot {
    answer: Option<Answer>,
    waker: Option<Waker>,
}

impl std::fmt::Debug for StoreQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreQueue").finish_non_exhaustive()
    }
}

impl DiskReader {
    /// Makes the reader of one worker. The process has `workers` workers, and `memory` bytes for all
    /// requests.
    pub(crate) fn new(
        engine: Arc<Engine>,
        clock: Arc<dyn Clock>,
        memory: usize,
        workers: usize,
    ) -> Self {
        let idle = IDLE_BUFFERS.min(memory / IDLE_PART / workers.max(1));
        Self {
            engine,
            clock,
            buffers: BufPool::new(idle),
            queues: Rc::default(),
        }
    }

    /// Returns true if the backlog of the disk exceeds [`BACKLOG_MAX`]. Then the caller should fetch from the
    /// origin if it can. A fetch is faster then, and the disk gets no more work. A read that can join an
    /// equal read is never declined.
    pub(crate) fn declines(&self, plan: &ReadPlan) -> bool {
        let queues = self.queues.borrow();
        let Some(Some(queue)) = queues.get(&plan.store) else {
            return false;
        };
        let inner = queue.inner.borrow();
        inner.backlog.exceeds(BACKLOG_MAX) && !inner.by_plan.contains_key(&same(plan))
    }

    /// Reads the bytes that `plan` describes and passes them to `finish`. Calls with equal plans that overlap
    /// in time share one read and its answer. The returned flag is true if this call joined the read of
    /// another call. If the read takes longer than `timeout`, the answer is [`ReadMiss::Device`]. Dropping
    /// the future does not stop the read.
    pub(crate) async fn read(
        &self,
        plan: ReadPlan,
        timeout: Duration,
        finish: impl FnOnce(&Engine, &ReadPlan, AlignedBuf) -> Answer + 'static,
    ) -> (Answer, bool) {
        let Some(queue) = self.queue(plan.store) else {
            return (Err(ReadMiss::Device), false);
        };
        let slot = Rc::new(RefCell::new(Slot::default()));
        let shared = queue.start(self, plan, Box::new(finish), Rc::clone(&slot));
        let answer = tokio::time::timeout(timeout, wait(&slot)).await;
        let answer = answer.unwrap_or_else(|_| {
            // A stuck disk must not delay requests, so this call gives the read up. The read keeps its
            // buffer, because the disk may still write to the buffer.
            queue.give_up(&self.engine, &plan);
            Err(ReadMiss::Device)
        });
        (answer, shared)
    }

    /// Returns this worker's queue for a store. The first read opens the queue. Returns `None` if the queue
    /// cannot be opened.
    fn queue(&self, store: StoreId) -> Option<Rc<StoreQueue>> {
        if let Some(queue) = self.queues.borrow().get(&store) {
            return queue.clone();
        }
        let opened = self.open(store);
        // `NotFound` is expected: the store was taken out of use after the lookup.
        let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        if opened.as_ref().is_err_and(gone) {
            return None;
        }
        if let Err(error) = &opened {
            tracing::error!(store = store.0, %error, "cannot open a read queue: the store is not read");
        }
        let queue = opened.ok();
        self.queues.borrow_mut().insert(store, queue.clone());
        queue
    }

    fn open(&self, store: StoreId) -> io::Result<Rc<StoreQueue>> {
        let queue = self.engine.reads().open_reads(store, DEPTH)?;
        let ready = Readiness::of(&*queue)?;
        let queue = Rc::new(StoreQueue {
            clock: Arc::clone(&self.clock),
            inner: RefCell::new(Inner {
                queue,
                reads: HashMap::new(),
                by_plan: HashMap::new(),
                next: 0,
                backlog: Backlog::default(),
            }),
            staged: Notify::new(),
            left: Cell::new(false),
        });
        let engine = &self.engine;
        tokio::task::spawn_local(flush_each_iteration(Rc::clone(&queue), Arc::clone(engine)));
        let queues = Rc::clone(&self.queues);
        let (reaped, engine) = (Rc::clone(&queue), Arc::clone(engine));
        tokio::task::spawn_local(async move {
            reap_until_left(&reaped, &engine, &ready, store).await;
            queues.borrow_mut().remove(&store);
        });
        Ok(queue)
    }
}

fn same(plan: &ReadPlan) -> Same {
    (plan.at, plan.len, plan.hash().0)
}

async fn wait(slot: &RefCell<Slot>) -> Answer {
    poll_fn(|cx| {
        let mut slot = slot.borrow_mut();
        match slot.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}

impl StoreQueue {
    /// Stages a read, or joins an equal read. Returns true if an equal read was joined.
    fn start(
        &self,
        reader: &DiskReader,
        plan: ReadPlan,
        finish: Finish,
        slot: Rc<RefCell<Slot>>,
    ) -> bool {
        let mut inner = self.inner.borrow_mut();
        let inner = &mut *inner;
        let same = same(&plan);
        if let Some(token) = inner.by_plan.get(&same)
            && let Some(read) = inner.reads.get_mut(token)
        {
            read.waiters.push(slot);
            return true;
        }
        let token = inner.next;
        inner.next += 1;
        inner.by_plan.insert(same, token);
        let plan = reader.engine.reads().widen(&plan);
        let read = Read {
            plan,
            same,
            finish,
            waiters: vec![slot],
            given_up: false,
        };
        inner.reads.insert(token, read);
        inner.backlog.begin(|| self.clock.mono());
        let len = plan.len as usize;
        inner
            .queue
            .submit(Op::read(token, plan.at, len, reader.buffers.take(len)));
        self.staged.notify_one();
        false
    }

    /// Gives up a read because one caller has waited for too long. All other callers that share this read
    /// immediately get a miss. The engine does not use the store for a while, so later reads do not wait for
    /// this store.
    fn give_up(&self, engine: &Engine, plan: &ReadPlan) {
        let same = same(plan);
        let mut inner = self.inner.borrow_mut();
        let Some(token) = inner.by_plan.remove(&same) else {
            return;
        };
        let Some(read) = inner.reads.get_mut(&token) else {
            return;
        };
        read.given_up = true;
        let others = std::mem::take(&mut read.waiters);
        drop(inner);
        engine.reads().give_up_read(plan);
        answer_all(others, &Err(ReadMiss::Device));
    }

    /// Collects the reads that are complete and answers their callers.
    fn reap(&self, engine: &Engine) {
        let mut done = Vec::new();
        {
            let mut inner = self.inner.borrow_mut();
            inner.queue.reap(&mut done);
            if !done.is_empty() {
                inner.backlog.end(done.len(), self.clock.mono());
            }
        }
        for completion in done {
            self.finish(engine, completion);
        }
    }

    fn finish(&self, engine: &Engine, completion: Completion) {
        let read = {
            let mut inner = self.inner.borrow_mut();
            let Some(read) = inner.reads.remove(&completion.token) else {
                return;
            };
            if !read.given_up {
                inner.by_plan.remove(&read.same);
            }
            read
        };
        if read.given_up {
            engine.reads().late_read(&read.plan);
            return;
        }
        let answer = match (completion.result, completion.buf) {
            (Ok(()), Some(buf)) => (read.finish)(engine, &read.plan, buf),
            (Ok(()), None) => Err(ReadMiss::Device),
            (Err(error), _) => Err(engine.reads().fail_read(&read.plan, &error)),
        };
        answer_all(read.waiters, &answer);
    }
}

fn answer_all(waiters: Vec<Rc<RefCell<Slot>>>, answer: &Answer) {
    for slot in waiters {
        let mut slot = slot.borrow_mut();
        slot.answer = Some(answer.clone());
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    }
}

/// Submits the staged reads to the kernel, once per iteration of the worker's event loop. The other tasks
/// that are ready run first, because they may stage more reads.
async fn flush_each_iteration(queue: Rc<StoreQueue>, engine: Arc<Engine>) {
    loop {
        queue.staged.notified().await;
        if queue.left.get() {
            return;
        }
        tokio::task::yield_now().await;
        let flushed = queue.inner.borrow_mut().queue.flush_submissions();
        if let Err(error) = flushed {
            tracing::warn!(%error, "disk reads were not accepted; trying again");
            tokio::time::sleep(Duration::from_millis(5)).await;
            queue.staged.notify_one();
        }
        // Reads that the device answers from its cache are complete already.
        queue.reap(&engine);
    }
}

/// Collects the reads that are complete, until the store is taken out of use and no read is under way. Then
/// the file of the store can be closed.
async fn reap_until_left(
    queue: &StoreQueue,
    engine: &Arc<Engine>,
    ready: &Readiness,
    store: StoreId,
) {
    let mut departure = pin!(engine.fleet().departure(store));
    let mut left = false;
    while !(left && queue.inner.borrow().reads.is_empty()) {
        tokio::select! {
            // An error means that the runtime ends.
            found = ready.ready() => if found.is_err() { return },
            () = &mut departure, if !left => left = true,
        }
        queue.reap(engine);
    }
    queue.left.set(true);
    queue.staged.notify_one();
}
