//! `bench store write`: objects are stored without a limit, and at the rates of typical proxies.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use foxy_base::Rng;
use foxy_store::Admission;
use foxy_trace::generate::Sizes;

use super::Context;
use super::fio::{self, Job};
use super::harness::{Harness, StoreParams};
use super::report::{Goal, Section};
use super::system::Scratch;
use super::trace::ask;
use crate::load::cpu;

/// Measures writing at full speed and at 10 MB/s.
pub(super) fn write(context: &Context<'_>) -> io::Result<Vec<Section>> {
    let mut section = Section::new(
        "write",
        "admission without limit, and at 10 MB/s; new files, then the same space again",
    );
    // The first run of fio writes to a new file: its space is reserved, but was never written. The second run
    // overwrites the same file.
    let scratch = Scratch::new(context.folder, "bench-write.fio");
    let mut fios = Vec::new();
    for _ in 0..2 {
        let job = Job {
            file: &scratch.0,
            pattern: "write",
            block: 512 << 10,
            align: 512,
            depth: 2,
            size: context.size,
            rate: None,
        };
        match fio::run(&[job], context.run_time().as_secs().max(1) as u32 * 2) {
            Ok(jobs) => fios.extend(jobs.first().map(|j| j.bytes_per_second)),
            Err(error) => section.missing(error.to_string()),
        }
    }
    drop(scratch);
    let best_fio = fios.into_iter().max_by(f64::total_cmp);
    for (name, sizes) in [
        ("64 KiB", Some(64 << 10)),
        ("8 KiB", Some(8 << 10)),
        ("web", None),
    ] {
        full_speed(context, &mut section, name, sizes, best_fio)?;
    }
    at_ten(context, &mut section)?;
    for rate in [40, 80, 120] {
        small(context, &mut section, rate)?;
    }
    Ok(vec![section])
}

fn harness(context: &Context<'_>, file: &Scratch) -> io::Result<Harness> {
    let params = StoreParams {
        path: &file.0,
        size: Some(context.size),
        memory: 256 << 20,
        options: foxy_store::StoreOptions::default(),
    };
    Harness::start(&params, context.clock)
}

/// Length of a body: fixed, or distributed as on the web. A length from the distribution is at most 200 KiB,
/// because this measurement stores no objects in fragments.
fn length(rng: &mut Rng, fixed: Option<usize>) -> usize {
    fixed.unwrap_or_else(|| Sizes::web().draw(rng).min(200 << 10) as usize)
}

fn full_speed(
    context: &Context<'_>,
    section: &mut Section,
    name: &str,
    fixed: Option<usize>,
    fio: Option<f64>,
) -> io::Result<()> {
    let file = Scratch::new(context.folder, "bench-write.store");
    let harness = harness(context, &file)?;
    let mut rng = Rng::new(5);
    let mut number = 0;
    let start = harness.clock.mono();
    let cpu = cpu::of_this_thread();
    // Stores objects until the writes reach twice the size of the store, or until the time is over.
    let most = context.run_time() * 2;
    while harness.clock.mono().since(start) < most
        && harness.counts().cluster_bytes < context.size * 2
    {
        for _ in 0..256 {
            harness.put(number, length(&mut rng, fixed));
            number += 1;
        }
    }
    harness.sync();
    let seconds = harness.clock.mono().since(start).as_secs_f64();
    let put_us = (cpu::of_this_thread().saturating_sub(cpu)).as_secs_f64() * 1e6 / number as f64;
    let written_us = harness.writer_cpu().as_secs_f64() * 1e6 / number as f64;
    let counts = harness.counts();
    let rate = (counts.cluster_bytes + counts.meta_bytes) as f64 / seconds;
    let row = section.row(format!("written, objects of {name}"), rate / 1e6, "MB/s");
    if let Some(fio) = fio {
        row.reference("fio", fio / 1e6)
            .goal(Goal::Least(fio * 0.9 / 1e6));
    }
    section.row(
        format!("objects of {name} put"),
        number as f64 / seconds,
        "1/s",
    );
    section.row(format!("CPU of a put of {name}"), put_us, "us");
    section.row(format!("CPU of writing one of {name}"), written_us, "us");
    // If this percentage is near 100, the processor limits the rate of writes, and not the device.
    let computing = harness.writer_cpu().as_secs_f64() * 100.0 / seconds;
    section.row(
        format!("writing thread computing, {name}"),
        computing,
        "% time",
    );
    ratio(
        section,
        &format!("device bytes per byte put, {name}"),
        &harness,
    );
    Ok(())
}

fn ratio(section: &mut Section, name: &str, harness: &Harness) {
    let counts = harness.counts();
    let device = counts.cluster_bytes + counts.meta_bytes;
    let payload = counts.payload_bytes.max(1);
    let goal = Goal::Most(1.08);
    section
        .row(name, device as f64 / payload as f64, "")
        .goal(goal);
}

/// Measures the length of the writes to the device while 10 MB/s of web objects are stored.
fn at_ten(context: &Context<'_>, section: &mut Section) -> io::Result<()> {
    const RATE: f64 = 10e6;
    let file = Scratch::new(context.folder, "bench-write.store");
    let harness = harness(context, &file)?;
    let stop = AtomicBool::new(false);
    let time = context.run_time() * 2;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut rng, start) = (Rng::new(6), harness.clock.mono());
            let (mut number, mut bytes) = (0u64, 0u64);
            while !stop.load(Ordering::Relaxed) {
                let due = (harness.clock.mono().since(start).as_secs_f64() * RATE) as u64;
                while bytes < due {
                    let length = length(&mut rng, None);
                    harness.put(number, length);
                    number += 1;
                    bytes += length as u64;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
    });
    let counts = harness.counts();
    let mean = counts.cluster_bytes as f64 / counts.clusters.max(1) as f64 / 1024.0;
    section
        .row("mean device write at 10 MB/s", mean, "KiB")
        .goal(Goal::Least(256.0));
    ratio(section, "device bytes per byte put at 10 MB/s", &harness);
    let per_second = counts.flushes as f64 / time.as_secs_f64();
    section.row("flushes at 10 MB/s", per_second, "1/s");
    Ok(())
}

/// Stores web objects at a steady rate in a small store, like the store of a small proxy. Requests some of
/// the objects again. Reports how many objects were dropped because the writer's queue was full, and how long
/// the writer waited for segments and for the device.
fn small(context: &Context<'_>, section: &mut Section, megabytes: u64) -> io::Result<()> {
    let file = Scratch::new(context.folder, "bench-write.store");
    let params = StoreParams {
        path: &file.0,
        size: Some(140_000_000),
        memory: 64 << 20,
        options: foxy_store::StoreOptions::default(),
    };
    let harness = Harness::start(&params, context.clock)?;
    let (mut rng, start) = (Rng::new(8), harness.clock.mono());
    let (mut number, mut bytes, mut dropped) = (0u64, 0u64, 0u64);
    let time = context.run_time() * 2;
    loop {
        let passed = harness.clock.mono().since(start);
        if passed >= time {
            break;
        }
        let due = (passed.as_secs_f64() * megabytes as f64 * 1e6) as u64;
        while bytes < due {
            let length = length(&mut rng, None);
            dropped += u64::from(harness.try_put(number, length) != Admission::Disk);
            number += 1;
            bytes += length as u64;
            // Requests an object again that was stored recently.
            ask(&harness, number - 1 - rng.below(number.min(10_000)));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let counts = harness.counts();
    let name = |what| format!("{what}, 140 MB store at {megabytes} MB/s");
    let percent = dropped as f64 / number.max(1) as f64 * 100.0;
    section
        .row(name("admissions dropped"), percent, "%")
        .goal(Goal::Most(0.0));
    let busy = start_to_now(&harness, start);
    let causes = [
        ("waiting for segments", counts.wait_segment_nanos),
        ("waiting for the device", counts.wait_device_nanos),
    ];
    for (cause, nanos) in causes {
        section.row(name(cause), nanos as f64 / 1e7 / busy, "% time");
    }
    Ok(())
}

fn start_to_now(harness: &Harness, start: foxy_base::MonoTime) -> f64 {
    harness.clock.mono().since(start).as_secs_f64()
}
