//! `bench store files`: the papers in docs/reproduction.md claim that a layout in one large file is faster
//! than one file per object. This measurement tests the claim on present hardware. It generates a stream of
//! three operations: URL-read, URL-write and URL-delete. A cache that keeps objects in memory and on a disk
//! makes these operations on its disk. The stream runs through the engine, and through one file per object on
//! usual file systems. The engine also runs on a device that is much slower than the engine, so that only the
//! device limits the result.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use foxy_base::KeyHash;
use foxy_disk::{BufPool, Op, Queue};
use foxy_store::{EngineCounts, Lookup, ReadPlan, StoreId};

use super::Context;
use super::fio::{self, Job};
use super::harness::{Harness, StoreParams, keyed};
use super::one_file::one_file_each;
use super::operations::{Kind, Operation, operations};
use super::report::{Goal, Section};
use super::system::{Loop, Scratch};
use super::throttle::{Limit, Throttle};

/// Number of reads of the engine that run at the same time.
const DEPTH: usize = 32;
/// Memory of the engine or of a file system, including the page cache.
const MEMORY: u64 = 64 << 20;
/// Bytes per second of the slow device in each direction, like sequential access on a rotating disk.
const SLOW: u64 = 200 << 20;
/// Fraction of the device's sequential rate that the papers reached.
const SHARE: f64 = 0.78;

/// Measures the engine, ext4 and XFS.
pub(super) fn files(context: &Context<'_>) -> io::Result<Vec<Section>> {
    let requests = context
        .requests
        .unwrap_or(context.quick_or(30_000, 300_000));
    // The disk has space for about a third of the requested bytes, so that objects are evicted.
    let all = operations(requests, (context.size / 3).min(requests * 1500));
    let bytes: u64 = all
        .iter()
        .filter(|o| o.kind != Kind::Delete)
        .map(|o| o.size)
        .sum();
    let count = |kind| all.iter().filter(|o| o.kind == kind).count();
    let mut section = Section::new(
        "files",
        format!(
            "{} reads, {} writes, {} deletions, {} MB",
            count(Kind::Read),
            count(Kind::Write),
            count(Kind::Delete),
            bytes / 1_000_000
        ),
    );
    let whole = fast(context, &all, bytes, &mut section)?;
    slow(context, &all, bytes, &mut section)
        .unwrap_or_else(|error| section.missing(format!("a slow device: {error}")));
    for kind in ["ext4", "xfs"] {
        match one_file_each(context, &all, kind, MEMORY) {
            Ok((seconds, limited)) => {
                let rate = bytes as f64 / 1e6 / seconds;
                section.row(format!("one file per object, {kind}"), rate, "MB/s");
                section.row(format!("engine over {kind}"), whole / rate, "times");
                if !limited {
                    section.missing(format!(
                        "{kind} within {MEMORY} bytes of memory: no cgroup v1"
                    ));
                }
            }
            Err(error) => section.missing(format!("{kind}: {error}")),
        }
    }
    Ok(vec![section])
}

/// Runs the stream through the engine, as fast as this machine can. Returns MB/s, including reads that were
/// answered from memory.
fn fast(
    context: &Context<'_>,
    all: &[Operation],
    bytes: u64,
    section: &mut Section,
) -> io::Result<f64> {
    let file = Scratch::new(context.folder, "bench-files.store");
    let done = engine(context, all, &file.0, Some(context.size / 2))?;
    drop(file);
    let rate = bytes as f64 / 1e6 / done.seconds;
    let row = section.row("engine", rate, "MB/s");
    match sequential(context) {
        Ok(fio) => {
            row.reference("fio sequential", fio)
                .goal(Goal::Least(fio * SHARE));
        }
        Err(error) => section.missing(error.to_string()),
    }
    for (what, number) in [
        ("reads of the device", done.counts.disk_plans),
        (
            "of these, of what lies around as well",
            done.counts.wide_reads,
        ),
        ("objects that those brought along", done.counts.prefetched),
        (
            "of these, asked for while in memory",
            done.counts.prefetch_hits,
        ),
    ] {
        section.row(what, number as f64, "");
    }
    Ok(rate)
}

/// Runs the stream through the engine, on a device with the limit [`SLOW`]. Reads that were answered from
/// memory do not count. The result is compared with the rate of fio's sequential writes on that device.
fn slow(
    context: &Context<'_>,
    all: &[Operation],
    bytes: u64,
    section: &mut Section,
) -> io::Result<()> {
    let device = Loop::new(context.folder, "bench-files.img", context.size / 2, 512)?;
    let path = device.device.clone();
    let devices = [device];
    let limits = [Limit::BytesRead(SLOW), Limit::BytesWritten(SLOW)];
    let _slow = Throttle::new(&devices, &limits)?;
    let done = engine(context, all, &path, None)?;
    let fio = written_in_sequence(context, &path)?;
    let moved = (bytes - done.from_memory) as f64 / 1e6 / done.seconds;
    section
        .row("engine on a slow device, through it", moved, "MB/s")
        .reference("fio sequential", fio)
        .goal(Goal::Least(fio * SHARE));
    Ok(())
}

/// Returns the rate of fio's sequential writes to a new file, in MB/s.
fn sequential(context: &Context<'_>) -> io::Result<f64> {
    let scratch = Scratch::new(context.folder, "bench-files.fio");
    written_in_sequence(context, &scratch.0)
}

fn written_in_sequence(context: &Context<'_>, file: &Path) -> io::Result<f64> {
    let job = Job {
        file,
        pattern: "write",
        // The kernel splits longer writes, and the limit of a throttled device counts such a write twice.
        block: 256 << 10,
        align: 4096,
        depth: 16,
        size: context.size / 2,
        rate: None,
    };
    let seconds = context.run_time().as_secs().max(1) as u32;
    let jobs = fio::run(&[job], seconds)?;
    Ok(jobs.first().map_or(0.0, |j| j.bytes_per_second / 1e6))
}

/// Results of a run of the stream through the engine.
struct Done {
    seconds: f64,
    /// Bytes of the reads that were answered from memory.
    from_memory: u64,
    counts: EngineCounts,
}

/// Runs the stream through an engine with one store. At the end, everything is durable.
fn engine(
    context: &Context<'_>,
    all: &[Operation],
    path: &Path,
    size: Option<u64>,
) -> io::Result<Done> {
    let params = StoreParams {
        path,
        size,
        memory: MEMORY,
        options: foxy_store::StoreOptions::default(),
    };
    let harness = Harness::start(&params, context.clock)?;
    let start = harness.clock.mono();
    let mut reads = Reads {
        queue: harness
            .engine
            .reads()
            .open_reads(StoreId(0), DEPTH as u32)?,
        pool: BufPool::new(DEPTH * 2),
        flights: (0..DEPTH).map(|_| None).collect(),
        free: (0..DEPTH).collect(),
        harness: &harness,
    };
    let mut from_memory = 0;
    for operation in all {
        match operation.kind {
            Kind::Read => {
                let disk = reads.ask(operation.object)?;
                from_memory += if disk { 0 } else { operation.size };
            }
            Kind::Write => {
                let size = operation.size as usize;
                harness.put_in(group(operation.object), operation.object, size);
            }
            Kind::Delete => {
                let (key, hash) = keyed(operation.object);
                harness.engine.supersede(hash, &key);
            }
        }
    }
    while reads.free.len() < DEPTH {
        reads.collect()?;
    }
    harness.sync();
    Ok(Done {
        seconds: harness.clock.mono().since(start).as_secs_f64(),
        from_memory,
        counts: harness.engine.stats().counts,
    })
}

/// Group of an object. The objects of a page form a group, and so do the objects that all pages of a server
/// share.
const fn group(object: u64) -> u64 {
    object >> 8
}

struct Reads<'a> {
    queue: Box<dyn Queue>,
    pool: BufPool,
    flights: Vec<Option<(ReadPlan, Bytes)>>,
    free: Vec<usize>,
    harness: &'a Harness,
}

impl Reads<'_> {
    /// Starts a disk read of an object if its bytes are only on the disk. Returns true if it started a read.
    /// If [`DEPTH`] reads are running, it first waits until one of them has ended.
    fn ask(&mut self, object: u64) -> io::Result<bool> {
        let (key, hash): (Bytes, KeyHash) = keyed(object);
        let Lookup::Disk(plan) = self.harness.engine.reads().lookup(hash, &key) else {
            return Ok(false);
        };
        let plan = self.harness.engine.reads().widen(&plan);
        while self.free.is_empty() {
            self.collect()?;
        }
        let Some(place) = self.free.pop() else {
            return Ok(false);
        };
        let len = plan.len as usize;
        self.queue
            .submit(Op::read(place as u64, plan.at, len, self.pool.take(len)));
        self.flights[place] = Some((plan, key));
        // The reads are submitted to the kernel in groups of at most eight, with one call for each group.
        if self.free.len().is_multiple_of(8) {
            self.queue.flush_submissions()?;
        }
        Ok(true)
    }

    fn collect(&mut self) -> io::Result<()> {
        self.queue.wait(Duration::from_secs(1))?;
        let mut done = Vec::new();
        self.queue.reap(&mut done);
        for completion in done {
            let place = completion.token as usize;
            if let (Some((plan, key)), Some(buf)) = (self.flights[place].take(), completion.buf) {
                // A miss here is not an error, because the engine may drop objects.
                let _ = self.harness.engine.reads().finish_read(&plan, &key, buf);
            }
            self.free.push(place);
        }
        Ok(())
    }
}
