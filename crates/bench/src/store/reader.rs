//! The reads of the measurements `read` and `mixed`. They go through the engine in the same way as the reads
//! of a network thread: a lookup, one direct read, and a check of the bytes.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use foxy_base::{MonoTime, Rng};
use foxy_disk::{BufPool, Completion, Op, Queue, QueueStats};
use foxy_store::{Lookup, ReadPlan, StoreId};

use super::harness::{Harness, keyed};
use super::system;
use crate::Histogram;
use crate::load::cpu;

/// Number of completed reads after which new reads are submitted. Completed reads arrive in groups. If new
/// reads were submitted only after a complete group, the device would have no work in the meantime.
const SUBMIT_EVERY: usize = 4;

/// Results of one call of [`run`].
#[derive(Debug, Default)]
pub(super) struct Reads {
    pub(super) disk_hits: u64,
    pub(super) memory_hits: u64,
    pub(super) misses: u64,
    pub(super) failed: u64,
    pub(super) seconds: f64,
    pub(super) cpu: Duration,
    pub(super) switches: u64,
    pub(super) queue: QueueStats,
    pub(super) times: Histogram,
}

impl Reads {
    /// Disk hits per second.
    pub(super) fn rate(&self) -> f64 {
        self.disk_hits as f64 / self.seconds.max(1e-9)
    }

    /// `amount` divided by the number of disk hits.
    pub(super) fn per_hit(&self, amount: f64) -> f64 {
        amount / self.disk_hits.max(1) as f64
    }

    /// CPU time of the reading thread per disk hit, in microseconds.
    pub(super) fn cpu_us(&self) -> f64 {
        self.per_hit(self.cpu.as_secs_f64() * 1e6)
    }

    /// Mean length of a device read in bytes.
    pub(super) fn mean_read(&self) -> u64 {
        self.queue.read_bytes / self.queue.reads.max(1)
    }
}

struct Flight {
    plan: ReadPlan,
    key: Bytes,
    since: MonoTime,
}

struct Loop<'a> {
    harness: &'a Harness,
    queue: Box<dyn Queue>,
    pool: BufPool,
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    rng: Rng,
    objects: std::ops::Range<u64>,
    reads: Reads,
}

/// Requests random objects of `objects` for this time, with `depth` reads running at the same time.
///
/// # Errors
/// Returned if the disk refuses to open a queue, or if the queue fails.
pub(super) fn run(
    harness: &Harness,
    objects: std::ops::Range<u64>,
    depth: usize,
    time: Duration,
    seed: u64,
) -> io::Result<Reads> {
    let mut state = Loop {
        harness,
        queue: harness
            .engine
            .reads()
            .open_reads(StoreId(0), depth as u32)?,
        pool: BufPool::new(depth * 2),
        flights: (0..depth).map(|_| None).collect(),
        free: (0..depth).collect(),
        rng: Rng::new(seed),
        objects,
        reads: Reads::default(),
    };
    let start = harness.clock.mono();
    let (cpu, switches) = (cpu::of_this_thread(), system::context_switches());
    let mut done = Vec::new();
    while harness.clock.mono().since(start) < time {
        state.fill();
        state.queue.wait(Duration::from_secs(1))?;
        state.reap(&mut done);
    }
    state.reads.cpu = cpu::of_this_thread().saturating_sub(cpu);
    state.reads.switches = system::context_switches() - switches;
    state.reads.seconds = harness.clock.mono().since(start).as_secs_f64();
    state.reads.queue = state.queue.stats();
    Ok(state.reads)
}

impl Loop<'_> {
    fn fill(&mut self) {
        // Memory hits use no slot in `flights`. Without this bound, the loop would not end if the memory
        // contains all objects.
        for _ in 0..self.flights.len() * 4 {
            if self.free.is_empty() {
                return;
            }
            let span = self.objects.end - self.objects.start;
            let (key, hash) = keyed(self.objects.start + self.rng.below(span));
            match self.harness.engine.reads().lookup(hash, &key) {
                Lookup::Memory(_) => self.reads.memory_hits += 1,
                Lookup::Miss => self.reads.misses += 1,
                Lookup::Disk(plan) => self.submit(plan, key),
            }
        }
    }

    fn submit(&mut self, plan: ReadPlan, key: Bytes) {
        let Some(place) = self.free.pop() else { return };
        let plan = self.harness.engine.reads().widen(&plan);
        let buf = self.pool.take(plan.len as usize);
        let since = self.harness.clock.mono();
        self.queue
            .submit(Op::read(place as u64, plan.at, plan.len as usize, buf));
        self.flights[place] = Some(Flight { plan, key, since });
    }

    fn reap(&mut self, done: &mut Vec<Completion>) {
        self.queue.reap(done);
        for (n, completion) in done.drain(..).enumerate() {
            if n % SUBMIT_EVERY == SUBMIT_EVERY - 1 {
                self.fill();
                // If the queue refuses the submission, the next wait for completions reports the error.
                let _ = self.queue.flush_submissions();
            }
            let place = completion.token as usize;
            let Some(flight) = self.flights[place].take() else {
                continue;
            };
            self.free.push(place);
            let found = completion.buf.filter(|_| completion.result.is_ok());
            let found = found.map(|buf| {
                self.harness
                    .engine
                    .reads()
                    .finish_read(&flight.plan, &flight.key, buf)
                    .is_ok()
            });
            if found == Some(true) {
                self.reads.disk_hits += 1;
                let took = self.harness.clock.mono().since(flight.since);
                self.reads.times.add(took.as_nanos() as u64);
            } else {
                self.reads.failed += 1;
            }
        }
    }
}
