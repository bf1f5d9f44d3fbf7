//! `bench store read`: disk hits of 8 KiB objects.

use std::io;
use std::path::Path;

use super::fio::{self, Job, Measured};
use super::harness::{Harness, StoreParams};
use super::reader::{self, Reads};
use super::report::{Goal, Section};
use super::system::{Loop, Scratch};
use super::{Context, fill};

/// Length of a body in bytes.
pub(super) const BODY: usize = 8 << 10;
/// Memory of the engine. The index uses nearly all of it, so that nearly all hits are disk hits.
const MEMORY: u64 = 96 << 20;

/// Measures disk hits on a file, and on a device with blocks of 4096 bytes.
pub(super) fn read(context: &Context<'_>) -> io::Result<Vec<Section>> {
    on_both(context, ["read", "read-4096"], read_on)
}

/// Runs the same measurement on a store in a file and on a store on a loop device with blocks of 4096 bytes.
/// `names` are the names of the two sections of the report. If there is no such device, its section states
/// this.
pub(super) fn on_both(
    context: &Context<'_>,
    names: [&'static str; 2],
    measure: impl Fn(&Context<'_>, &'static str, &Path, Option<u64>) -> io::Result<Section>,
) -> io::Result<Vec<Section>> {
    let [plain, large] = names;
    let file = Scratch::new(context.folder, &format!("bench-{plain}.store"));
    let mut sections = vec![measure(context, plain, &file.0, Some(context.size))?];
    drop(file);
    let name = format!("bench-{large}.img");
    let on_loop = Loop::new(context.folder, &name, context.size, 4096)
        .and_then(|device| measure(context, large, &device.device, None));
    sections.push(on_loop.unwrap_or_else(|error| {
        let mut section = Section::new(large, "a loop device with blocks of 4096 bytes");
        section.missing(error.to_string());
        section
    }));
    Ok(sections)
}

fn read_on(
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
            "disk hits of objects with bodies of 8 KiB, {objects} of them, one thread, blocks of {}",
            harness.disk.block_bytes()
        ),
    );
    let mut curve: (Vec<_>, Vec<_>) = Default::default();
    for depth in [1u32, 8, 32] {
        // Short runs of the engine and of fio take turns, so that a change of the machine's load affects
        // both.
        let mut best: Option<(Reads, Option<Measured>)> = None;
        for run in 0..context.runs() {
            let seed = u64::from(depth) << 8 | run;
            let reads = reader::run(
                &harness,
                0..objects,
                depth as usize,
                context.run_time(),
                seed,
            )?;
            let fio = reader_job(context, &harness, path, &reads, depth);
            let better = best.as_ref().is_none_or(|(b, _)| reads.rate() > b.rate());
            let fio = [fio, best.as_ref().and_then(|(_, f)| *f)];
            let fio = fio
                .into_iter()
                .flatten()
                .max_by(|a, b| a.iops.total_cmp(&b.iops));
            best = match (best, better) {
                (Some((old, _)), false) => Some((old, fio)),
                _ => Some((reads, fio)),
            };
        }
        if let Some((reads, fio)) = best {
            curve.0.push((f64::from(depth), reads.rate()));
            curve.1.extend(fio.map(|f| (f64::from(depth), f.iops)));
            rows(&mut section, depth, &reads, fio);
        }
    }
    draw(&mut section, curve);
    Ok(section)
}

/// Points of a curve: number of reads that run at the same time, and hits per second.
type Curve = Vec<(f64, f64)>;

/// Adds a drawing to the section: the hits per second over the number of reads that run at the same time. It
/// has a curve for Foxy, and a curve for fio if fio has results.
pub(super) fn draw(section: &mut Section, (foxy, fio): (Curve, Curve)) {
    section.curves = vec![("Foxy".into(), foxy)];
    if fio.is_empty() {
        section.missing("fio's results: fio is not installed (Debian: apt install fio) or failed");
    } else {
        section.curves.push(("fio".into(), fio));
    }
    section.axes = ("reads under way", "per second");
}

/// Runs fio with reads that are as long as the engine's reads, on the part of the file that contains data.
fn reader_job(
    context: &Context<'_>,
    harness: &Harness,
    path: &Path,
    reads: &Reads,
    depth: u32,
) -> Option<Measured> {
    let align = u64::from(harness.disk.block_bytes());
    let job = Job {
        file: path,
        pattern: "randread",
        block: (reads.mean_read() / align).max(1) * align,
        align,
        depth,
        size: harness.used_bytes(),
        rate: None,
    };
    let seconds = context.run_time().as_secs().max(1) as u32;
    fio::run(&[job], seconds).ok()?.first().copied()
}

fn rows(section: &mut Section, depth: u32, reads: &Reads, fio: Option<Measured>) {
    let at = |what: &str| format!("{what}, {depth} under way");
    let row = section.row(at("disk hits"), reads.rate(), "1/s");
    if let Some(fio) = fio {
        row.reference("fio", fio.iops);
        if depth == 32 {
            row.goal(Goal::Least(fio.iops * 0.85));
        }
    }
    let p99 = reads.times.quantile(0.99).as_secs_f64() * 1e6;
    let row = section.row(at("p99"), p99, "us");
    if let Some(fio) = fio {
        row.reference("fio", fio.p99_us);
    }
    let row = section.row(at("CPU per hit"), reads.cpu_us(), "us");
    if let Some(fio) = fio {
        row.reference("fio", fio.cpu_us);
        if depth == 32 {
            row.goal(Goal::Most(fio.cpu_us + 5.0));
        }
    }
    if depth == 32 {
        let per_hit = |n: u64| reads.per_hit(n as f64);
        section
            .row("device reads per hit", per_hit(reads.queue.reads), "")
            .goal(Goal::Most(1.001));
        let calls = reads.queue.submit_calls + reads.queue.wait_calls;
        section.row("ring calls per hit", per_hit(calls), "");
        section.row("context switches per hit", per_hit(reads.switches), "");
        section.row("bytes per device read", reads.mean_read() as f64, "B");
        section.row("failed reads", reads.failed as f64, "");
        let memory = reads.memory_hits as f64 / (reads.memory_hits + reads.disk_hits) as f64;
        section.row("hits from memory, not counted above", memory * 100.0, "%");
    }
}

/// Parameters of the stores of `bench store read` and `bench store mixed`.
pub(super) fn params(path: &Path, size: Option<u64>) -> StoreParams<'_> {
    StoreParams {
        path,
        size,
        memory: MEMORY,
        options: foxy_store::StoreOptions::default(),
    }
}
