//! `files`: the claim that the papers began with, measured today. One stream of URL-read,
//! URL-write and URL-delete, as a disk level behind a memory level emits it, goes through the
//! engine and through one file per object on the usual file systems.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use foxy_base::KeyHash;
use foxy_disk::{BufPool, Op, Queue};
use foxy_store::{EngineCounts, Lookup, ReadPlan, StoreId};
use foxy_trace::generate::{SessionConfig, Sessions};
use foxy_trace::{Access, ByteLru};

use super::Context;
use super::fio::{self, Job};
use super::report::{Goal, Section};
use super::rig::{self, Rig, Wanted, keyed};
use super::system::{self, MemoryLimit, Mounted, Scratch};

/// Longer answers are left out.
const LONGEST: u64 = 200 << 10;
/// Operations under way: reads of the engine, threads on the file systems.
const DEPTH: usize = 32;
const THREADS: u64 = 8;
/// Memory for either, page cache included.
const MEMORY: u64 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Delete,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    kind: Kind,
    object: u64,
    size: u64,
}

/// The stream: what a memory level of 16 MB and a disk level of `disk` bytes (both LRU) leave of
/// clients that visit pages (the papers gathered objects by page, and so does the engine). A
/// modified object keeps its old version here: all are to handle the same bytes.
fn operations(requests: u64, disk: u64) -> Vec<Operation> {
    let config = SessionConfig {
        requests,
        ..SessionConfig::isp()
    };
    let (mut memory, mut level) = (ByteLru::new(16 << 20), ByteLru::new(disk));
    let (mut all, mut sizes) = (Vec::new(), HashMap::new());
    for request in Sessions::new(config, 4).filter(|r| r.size <= LONGEST) {
        let object = request.object;
        let size = *sizes.entry(object).or_insert(request.size.max(1));
        if memory.access(object, size) == Access::Hit {
            continue;
        }
        let mut gone = Vec::new();
        let found = level.access_with(object, size, |object, size| gone.push((object, size)));
        all.extend(gone.into_iter().map(|(object, size)| Operation {
            kind: Kind::Delete,
            object,
            size,
        }));
        let kind = if found == Access::Hit {
            Kind::Read
        } else {
            Kind::Write
        };
        all.push(Operation { kind, object, size });
    }
    all
}

/// Engine, ext4, XFS.
pub(super) fn files(context: &Context<'_>) -> io::Result<Vec<Section>> {
    let requests = context
        .requests
        .unwrap_or(context.quick_or(30_000, 300_000));
    // A third or so of what is asked for: objects have to go.
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
    let sequential = sequential(context)
        .map_err(|e| section.missing(e.to_string()))
        .ok();
    let (seconds, counts) = engine(context, &all)?;
    let engine = bytes as f64 / 1e6 / seconds;
    let row = section.row("engine", engine, "MB/s");
    if let Some(fio) = sequential {
        row.beside("fio sequential", fio)
            .goal(Goal::Least(fio * 0.78));
    }
    for (what, number) in [
        ("reads of the device", counts.disk_plans),
        ("of these, of what lies around as well", counts.wide_reads),
        ("objects that those brought along", counts.prefetched),
        ("of these, asked for while in memory", counts.prefetch_hits),
    ] {
        section.row(what, number as f64, "");
    }
    for kind in ["ext4", "xfs"] {
        match one_file_each(context, &all, kind) {
            Ok((seconds, limited)) => {
                let rate = bytes as f64 / 1e6 / seconds;
                section.row(format!("one file per object, {kind}"), rate, "MB/s");
                section.row(format!("engine over {kind}"), engine / rate, "times");
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

/// MB/s of fio's sequential writes.
fn sequential(context: &Context<'_>) -> io::Result<f64> {
    let scratch = Scratch::new(context.folder, "bench-files.fio");
    let job = Job {
        file: &scratch.0,
        pattern: "write",
        block: 1 << 20,
        align: 4096,
        depth: 4,
        size: context.size / 2,
        rate: None,
    };
    let seconds = context.turn_time().as_secs().max(1) as u32;
    let jobs = fio::run(&[job], seconds)?;
    Ok(jobs.first().map_or(0.0, |j| j.bytes_per_second / 1e6))
}

/// Seconds of the stream through the engine, everything durable at the end, and what it counted.
fn engine(context: &Context<'_>, all: &[Operation]) -> io::Result<(f64, EngineCounts)> {
    let file = Scratch::new(context.folder, "bench-files.store");
    let wanted = Wanted {
        path: &file.0,
        size: Some(context.size / 2),
        memory: MEMORY,
        options: foxy_store::StoreOptions::default(),
    };
    let rig = Rig::start(&wanted, context.clock)?;
    let start = rig.clock.mono();
    let mut reads = Reads {
        queue: rig.engine.open_reads(StoreId(0), DEPTH as u32)?,
        pool: BufPool::new(DEPTH * 2),
        flights: (0..DEPTH).map(|_| None).collect(),
        free: (0..DEPTH).collect(),
        rig: &rig,
    };
    for operation in all {
        match operation.kind {
            Kind::Read => reads.ask(operation.object)?,
            Kind::Write => {
                let size = operation.size as usize;
                rig.put_in(group(operation.object), operation.object, size);
            }
            Kind::Delete => {
                let (key, hash) = keyed(operation.object);
                rig.engine.supersede(hash, &key);
            }
        }
    }
    while reads.free.len() < DEPTH {
        reads.collect()?;
    }
    rig.sync();
    let seconds = rig.clock.mono().since(start).as_secs_f64();
    Ok((seconds, rig.engine.stats().counts))
}

/// The page that the object is part of, or the server's common objects.
const fn group(object: u64) -> u64 {
    object >> 8
}

struct Reads<'a> {
    queue: Box<dyn Queue>,
    pool: BufPool,
    flights: Vec<Option<(ReadPlan, Bytes)>>,
    free: Vec<usize>,
    rig: &'a Rig,
}

impl Reads<'_> {
    /// Begins to read an object; waits when enough is under way.
    fn ask(&mut self, object: u64) -> io::Result<()> {
        let (key, hash): (Bytes, KeyHash) = keyed(object);
        let Lookup::Disk(plan) = self.rig.engine.lookup(hash, &key) else {
            return Ok(());
        };
        let plan = self.rig.engine.widen(&plan);
        while self.free.is_empty() {
            self.collect()?;
        }
        let Some(place) = self.free.pop() else {
            return Ok(());
        };
        let len = plan.len as usize;
        self.queue
            .submit(Op::read(place as u64, plan.at, len, self.pool.take(len)));
        self.flights[place] = Some((plan, key));
        // Handed over in small groups: one call for several.
        if self.free.len().is_multiple_of(8) {
            self.queue.flush_submissions()?;
        }
        Ok(())
    }

    fn collect(&mut self) -> io::Result<()> {
        self.queue.wait(Duration::from_secs(1))?;
        let mut done = Vec::new();
        self.queue.reap(&mut done);
        for completion in done {
            let place = completion.token as usize;
            if let (Some((plan, key)), Some(buf)) = (self.flights[place].take(), completion.buf) {
                // A miss here is one of the engine's: it may forget.
                let _ = self.rig.engine.finish_read(&plan, &key, buf);
            }
            self.free.push(place);
        }
        Ok(())
    }
}

/// Seconds of the stream with one file per object, everything durable at the end; whether memory
/// was limited.
fn one_file_each(context: &Context<'_>, all: &[Operation], kind: &str) -> io::Result<(f64, bool)> {
    let mounted = Mounted::new(context.folder, kind, context.size / 2)?;
    for n in 0..256 {
        std::fs::create_dir(mounted.at.join(format!("{n:02x}")))?;
    }
    system::drop_caches();
    let limit = MemoryLimit::new(system::resident() + MEMORY);
    let stock = rig::stock();
    let start = context.clock.mono();
    let work = |thread: u64| {
        // An object belongs to one thread: its operations keep their order.
        let own = all.iter().filter(|o| o.object % THREADS == thread);
        own.copied().try_for_each(|o| apply(&mounted.at, &stock, o))
    };
    let work = &work;
    let results: Vec<io::Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || work(n))).collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|r| r.unwrap_or_else(|_| Err(io::Error::other("a thread ended early"))))
            .collect()
    });
    results.into_iter().collect::<io::Result<()>>()?;
    let folder = std::fs::File::open(&mounted.at)?;
    rustix::fs::syncfs(&folder)?;
    let seconds = context.clock.mono().since(start).as_secs_f64();
    Ok((seconds, limit.is_some()))
}

fn apply(root: &Path, stock: &Bytes, operation: Operation) -> io::Result<()> {
    let path = place(root, operation.object);
    match operation.kind {
        Kind::Write => {
            let body = rig::body(stock, operation.object, operation.size as usize);
            std::fs::write(path, body)
        }
        Kind::Read => std::fs::read(path).map(drop),
        Kind::Delete => std::fs::remove_file(path),
    }
}

/// As caches of this kind do it: folders by hash.
fn place(root: &Path, object: u64) -> PathBuf {
    let (_, hash) = keyed(object);
    root.join(format!("{:02x}", hash.high() >> 56))
        .join(format!("{:016x}", hash.low()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_stream_reads_and_deletes_only_what_is_there_and_stays_within_the_disk() {
        let (mut there, mut used) = (HashSet::new(), 0);
        let all = operations(20_000, 32 << 20);
        for operation in &all {
            match operation.kind {
                Kind::Read => assert!(there.contains(&operation.object)),
                Kind::Write => {
                    used += operation.size;
                    assert!(there.insert(operation.object));
                }
                Kind::Delete => {
                    used -= operation.size;
                    assert!(there.remove(&operation.object));
                }
            }
            assert!(used <= 32 << 20);
        }
        for kind in [Kind::Read, Kind::Write, Kind::Delete] {
            let count = all.iter().filter(|o| o.kind == kind).count();
            assert!(count > 100, "{count} of {kind:?}");
        }
    }
}
