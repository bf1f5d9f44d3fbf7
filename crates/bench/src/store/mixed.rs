//! `bench store mixed`: disk hits of 8 KiB objects while other objects are admitted (stored).

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::fio::{self, Job, Measured};
use super::harness::Harness;
use super::read::{BODY, draw, on_both, params};
use super::reader::{self, Reads};
use super::report::{Goal, Section};
use super::system::Scratch;
use super::{Context, fill};

/// Bytes per second that are admitted during the reads.
const RATE: u64 = 200_000_000;
/// Numbers of reads that run at the same time.
const DEPTHS: [u32; 3] = [16, 24, 32];
/// Greatest permitted 99th percentile of a hit's time, microseconds.
const P99_MAX: f64 = 1000.0;

/// Measures disk hits while 200 MB/s are admitted, on a file and on a device with blocks of 4096 bytes.
pub(super) fn mixed(context: &Context<'_>) -> io::Result<Vec<Section>> {
    on_both(context, ["mixed", "mixed-4096"], mixed_on)
}

/// Results for one of the numbers of reads in [`DEPTHS`].
struct Step {
    reads: Reads,
    fio: Option<Measured>,
    /// Body bytes of the objects that were admitted during the reads.
    admitted: u64,
    written: u64,
}

impl Step {
    fn p99_us(&self) -> f64 {
        self.reads.times.quantile(0.99).as_secs_f64() * 1e6
    }
}

fn mixed_on(
    context: &Context<'_>,
    name: &'static str,
    path: &Path,
    size: Option<u64>,
) -> io::Result<Section> {
    let harness = Harness::start(&params(path, size), context.clock)?;
    let objects = fill(&harness, BODY);
    let mut section = Section::new(
        name,
        format!(
            "disk hits of 8 KiB while 200 MB/s of 32 KiB objects are admitted, blocks of {}",
            harness.disk.block_bytes()
        ),
    );
    let mut curve: (Vec<_>, Vec<_>) = Default::default();
    let mut most = 0.0f64;
    for (n, depth) in DEPTHS.into_iter().enumerate() {
        if n > 0 {
            // Stores all objects again, because the previous step has replaced many of them.
            (0..objects).for_each(|number| harness.put(number, BODY));
            harness.sync();
        }
        let step = step(context, &harness, path, objects, depth)?;
        if step.p99_us() < P99_MAX {
            most = most.max(step.reads.rate());
        }
        curve.0.push((f64::from(depth), step.reads.rate()));
        curve.1.extend(step.fio.map(|f| (f64::from(depth), f.iops)));
        rows(&mut section, depth, &step);
    }
    section
        .row("most disk hits with a p99 below 1 ms", most, "1/s")
        .goal(Goal::Least(60_000.0));
    draw(&mut section, curve);
    Ok(section)
}

/// Measures the engine with `depth` reads at a time. Then measures fio with reads of the same length, while
/// another job of fio writes at the rate [`RATE`].
fn step(
    context: &Context<'_>,
    harness: &Harness,
    path: &Path,
    objects: u64,
    depth: u32,
) -> io::Result<Step> {
    let time = context.run_time() * 2;
    let stop = AtomicBool::new(false);
    let before = harness.counts();
    // Only the newest half of the objects is read, because the admitted objects overwrite the oldest
    // segments.
    let newest = objects / 2..objects;
    let (reads, admitted) = std::thread::scope(|scope| {
        let producer = scope.spawn(|| admit(harness, RATE, &stop));
        let reads = reader::run(harness, newest, depth as usize, time, u64::from(depth));
        stop.store(true, Ordering::Relaxed);
        (reads, producer.join().unwrap_or(0))
    });
    let reads = reads?;
    let written = harness.counts().cluster_bytes - before.cluster_bytes;
    let scratch = Scratch::new(context.folder, "bench-mixed.fio");
    let align = u64::from(harness.disk.block_bytes());
    let block = (reads.mean_read() / align).max(1) * align;
    let job = |file, pattern, block, depth, rate| Job {
        file,
        pattern,
        block,
        align,
        depth,
        size: harness.used_bytes(),
        rate,
    };
    let jobs = [
        job(path, "randread", block, depth, None),
        job(&scratch.0, "write", 512 << 10, 2, Some(RATE)),
    ];
    let fio = fio::run(&jobs, time.as_secs().max(1) as u32).ok();
    Ok(Step {
        reads,
        fio: fio.and_then(|jobs| jobs.first().copied()),
        admitted,
        written,
    })
}

fn rows(section: &mut Section, depth: u32, step: &Step) {
    let at = |what: &str| format!("{what}, {depth} under way");
    let reads = &step.reads;
    let row = section.row(at("disk hits"), reads.rate(), "1/s");
    if let Some(fio) = step.fio {
        row.reference("fio", fio.iops);
    }
    let row = section.row(at("p99"), step.p99_us(), "us");
    if let Some(fio) = step.fio {
        row.reference("fio", fio.p99_us);
    }
    section.row(at("CPU per hit"), reads.cpu_us(), "us");
    let per_second = |bytes: u64| bytes as f64 / 1e6 / reads.seconds;
    section.row(at("admitted"), per_second(step.admitted), "MB/s");
    section.row(at("written"), per_second(step.written), "MB/s");
    let lost = reads.per_hit((reads.misses + reads.failed) as f64);
    section.row(at("misses (reused meanwhile)"), lost * 100.0, "%");
}

/// Admits objects of 32 KiB at `rate` bytes per second until `stop` is true. Returns the number of admitted
/// bytes.
pub(super) fn admit(harness: &Harness, rate: u64, stop: &AtomicBool) -> u64 {
    const BODY: usize = 32 << 10;
    let start = harness.clock.mono();
    let (mut number, mut bytes) = (1u64 << 40, 0u64);
    while !stop.load(Ordering::Relaxed) {
        let due = (harness.clock.mono().since(start).as_secs_f64() * rate as f64) as u64;
        while bytes < due {
            harness.put(number, BODY);
            number += 1;
            bytes += BODY as u64;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    bytes
}
