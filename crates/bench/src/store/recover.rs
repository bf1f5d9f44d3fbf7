//! `bench store recover`: a process with a full store is killed. The measurement shows which objects the next
//! process has, and when it has them.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{Clock, Rng};
use foxy_disk::{AlignedBuf, Disk};
use foxy_store::{Engine, Lookup, StoreOptions};

use super::harness::{self, Harness, StoreParams, keyed};
use super::report::{Goal, Section};
use super::system::{self, Scratch};
use super::{Context, own_command};

/// Length of a body in bytes. A segment has a slot for its summary (the list of its records), and the length
/// of this slot is chosen for records of 2 KiB. The records of this measurement have about half of this
/// length, as on the web. So a segment has twice as many records, its summary is longer than the slot, and
/// the rest of the summary is at the end of the segment.
const BODY: usize = 700;
const RECORD: u64 = 1152;

/// Options of the process that is killed.
#[derive(Debug, clap::Args)]
pub struct VictimArgs {
    /// Path of the store
    #[arg(long)]
    path: std::path::PathBuf,
    /// Number of objects to write before the process may be killed
    #[arg(long)]
    objects: u64,
}

fn params(path: &Path, objects: u64, create: bool) -> StoreParams<'_> {
    StoreParams {
        path,
        size: create.then(|| objects * RECORD * 9 / 8 + (256 << 20)),
        memory: objects * 40 + (256 << 20),
        options: StoreOptions::default(),
    }
}

/// Fills the store, reports this on standard output, and continues to write until it is killed.
pub(super) fn victim(args: &VictimArgs, clock: &Arc<dyn Clock>) -> io::Result<()> {
    let harness = Harness::start(&params(&args.path, args.objects, true), clock)?;
    for number in 0..args.objects {
        harness.put(number, BODY);
    }
    harness.sync();
    println!("{}", harness.counts().sealed);
    io::stdout().flush()?;
    for number in args.objects..args.objects + args.objects / 50 {
        harness.put(number, BODY);
        std::thread::sleep(Duration::from_micros(100));
    }
    std::thread::sleep(Duration::from_secs(60));
    Ok(())
}

/// Starts the process, kills it while it writes, drops the page cache and opens the store again.
pub(super) fn recover(context: &Context<'_>) -> io::Result<Vec<Section>> {
    let objects = context
        .objects
        .unwrap_or(context.quick_or(200_000, 1_000_000));
    let file = Scratch::new(context.folder, "bench-recover.store");
    let path = file.0.display().to_string();
    let count = objects.to_string();
    let mut child = Command::new(std::env::current_exe()?)
        .args(own_command())
        .args(["victim", "--path", &path, "--objects", &count])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    // The process is killed while it writes.
    std::thread::sleep(Duration::from_millis(300));
    child.kill()?;
    child.wait()?;
    let Ok(sealed) = line.trim().parse::<u64>() else {
        return Err(io::Error::other(
            "the process to be killed did not fill its store",
        ));
    };
    let mut section = Section::new(
        "recover",
        format!(
            "killed with {objects} objects ({sealed} segments sealed) while writing, then opened again"
        ),
    );
    if !system::drop_caches() {
        section.missing("a cold page cache: needs root (the store itself is read past the cache)");
    }
    reopen(context, &file.0, objects, &mut section)?;
    Ok(vec![section])
}

fn reopen(
    context: &Context<'_>,
    path: &Path,
    objects: u64,
    section: &mut Section,
) -> io::Result<()> {
    let clock = context.clock;
    let start = clock.mono();
    let since = || clock.mono().since(start).as_secs_f64();
    let (engine, mut writer, disk) = harness::open(&params(path, objects, false), clock)?;
    let opened = since();
    let mut rng = Rng::new(11);
    let (mut first, mut most) = (None, None);
    let mut curve = vec![(opened, 0.0)];
    loop {
        let turn = writer.turn();
        for _ in 0..32 {
            if first.is_none() && hit(&engine, &*disk, rng.below(objects)) {
                first = Some(since());
            }
        }
        let stats = engine.stats();
        let share = stats.disk_objects as f64 / objects as f64;
        curve.push((since(), share * 100.0));
        if most.is_none() && share >= 0.9 {
            most = Some(since());
        }
        if stats.stores.iter().all(|s| !s.loading) {
            break;
        }
        writer.park(turn);
    }
    let all = since();
    // These objects were stored before the sync of the killed process, so they were durable. Each of them
    // must be found.
    let asked = objects.min(20_000);
    let back = (0..asked).filter(|_| hit(&engine, &*disk, rng.below(objects)));
    let back = back.count() as f64 / asked as f64 * 100.0;
    let per_10m = 1e7 / objects as f64;
    section.row("opened, lookups right", opened, "s");
    section
        .row("first disk hit", first.unwrap_or(f64::INFINITY), "s")
        .goal(Goal::Most(0.3));
    section.row("90 % of former hits", most.unwrap_or(f64::INFINITY), "s");
    section
        .row(
            "90 % of former hits, for 10 M",
            most.map_or(f64::INFINITY, |s| s * per_10m),
            "s",
        )
        .goal(Goal::Most(1.0));
    section.row("everything", all, "s");
    section
        .row("everything, for 10 M", all * per_10m, "s")
        .goal(Goal::Most(1.0));
    section
        .row("durable objects back (sample)", back, "%")
        .goal(Goal::Least(100.0));
    let counts = engine.stats().stores.first().map(|s| s.counts);
    let counts = counts.unwrap_or_default();
    section.row("segments by their summary", counts.load_slots as f64, "");
    section.row("segments by scan", counts.load_scans as f64, "");
    section.row("bytes read", counts.load_bytes as f64 / 1e6, "MB");
    // The curve has thousands of points. A few hundred points draw the same curve.
    let step = curve.len() / 300 + 1;
    section.curves = vec![(
        "objects back".into(),
        curve.into_iter().step_by(step).collect(),
    )];
    section.axes = ("seconds since the start", "percent of the objects");
    Ok(())
}

fn hit(engine: &Engine, disk: &dyn Disk, number: u64) -> bool {
    let (key, hash) = keyed(number);
    match engine.reads().lookup(hash, &key) {
        Lookup::Memory(_) => true,
        Lookup::Miss => false,
        Lookup::Disk(plan) => {
            let mut buf = AlignedBuf::new(plan.len as usize);
            disk.read_at(plan.at, &mut buf).is_ok()
                && engine.reads().finish_read(&plan, &key, buf).is_ok()
        }
    }
}
