//! Contents of caches after a crash. The caches are UCFS with saved tables, UCFS without saved tables, and
//! Hummingbird with and without its logs.
//!
//! Each system is killed at random points of the ISP stream, and then it starts again. There are four
//! results. The first concerns the objects that were known before the crash: the share that the system still
//! returns in the latest version. The second is the time until the system serves requests, and the time until
//! it knows all its objects. The third is the number of bytes written to survive a crash. The fourth is the
//! number of objects that the system returns in an old version, although a newer version replaced it before
//! the crash.

mod layouts;

use std::collections::HashMap;

use foxy_base::Rng;
use foxy_trace::Request;

use super::{
    Claim, Comparison, Conditions, Part, Progress, Section, SystemConfig, SystemSpec, scaled,
};
use crate::{
    layout::LayoutError,
    levels::ratio,
    model::{Drive, FsError, Raw, Schedule, SimTime},
    report::{Align, Table},
    reproduce::claim::digits,
    run::{Made, RunError, Workload},
    systems::{
        CacheSystem, Hummingbird, HummingbirdConfig, Ucfs, UcfsConfig, WgHummingbird,
        hummingbird::{HummingbirdError, LogConfig, WgConfig},
    },
};

/// Number of crashes for each row of the table.
const CRASHES: u64 = 3;

/// Sums over the crashes for one row of the table.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    before: u64,
    back: u64,
    stale: u64,
    serving_s: f64,
    all_s: f64,
    log_bytes: u64,
    bytes: u64,
}

/// Variants of Hummingbird's logs, each with its name in the table.
const KINDS: [(&str, LogConfig); 3] = [
    ("no log, scan", with(0, usize::MAX, None)),
    ("hot clusters and deletes", with(2_500, 100, None)),
    (
        "and mappings every 5 minutes",
        with(2_500, 100, Some(SimTime::from_micros(300_000_000))),
    ),
];

const fn with(hot: usize, deletes: usize, mappings_every: Option<SimTime>) -> LogConfig {
    LogConfig {
        reserved: 64 << 20,
        mappings_every,
        hot,
        deletes,
        deletes_every: SimTime::from_micros(10_000_000),
    }
}

fn fs(error: FsError) -> RunError {
    RunError::Layout(LayoutError::Fs(error))
}

fn library(error: HummingbirdError) -> RunError {
    RunError::Config(format!("Hummingbird: {error}"))
}

/// The part on contents after a crash.
pub(in crate::reproduce) const CRASH: Part = Part {
    id: "crashes",
    title: "What a crash leaves",
    about: "UCFS saves its tables only at a clean shutdown. Hummingbird has three logs. For layouts with one \
            file for many objects the papers describe a checkpoint every few minutes, or a scan that reads \
            the name and size stored beside each object, or nothing. All systems and layouts are killed at \
            random points and started again.",
    run: all,
};

fn all(conditions: &Conditions, progress: Progress<'_>) -> Result<Section, RunError> {
    let mut section = Section::default();
    let out = &mut section;
    let base = SystemConfig {
        workload: Workload::Made(Made::Isp, 300_000),
        ram: 32 << 20,
        disk: 2 << 30,
        life_minutes: 0.0,
        ..SystemConfig::hummingbird(SystemSpec::Hummingbird)
    };
    let config = scaled(base, conditions);
    let requests = config.requests()?.collect::<Result<Vec<_>, _>>()?;
    let mut rng = Rng::new(conditions.seed).fork("crash");
    let points: Vec<usize> = (0..CRASHES)
        .map(|_| (requests.len() / 2) + rng.below(requests.len() as u64 / 2) as usize)
        .collect();
    let mut table = Table::new(&[
        ("system", Align::Left),
        ("objects back, %", Align::Right),
        ("serves after, s", Align::Right),
        ("knows all after, s", Align::Right),
        ("written for it, % of all", Align::Right),
        ("replaced versions, %", Align::Right),
    ]);
    for (name, logs) in KINDS {
        let mut sum = Outcome::default();
        for point in &points {
            hummingbird(&config, logs, &requests[..*point], &mut sum)?;
        }
        if logs.hot > 0 && logs.mappings_every.is_none() {
            // The value was published for a disk of 18 GB, 2,500 hot clusters and 3,000 deletes. The disk of
            // this run differs, so only the shape is compared.
            let what = "Hummingbird, hot clusters and deletes: seconds until it serves";
            let ours = sum.serving_s / CRASHES as f64;
            let claim = Claim::new("Hummingbird 2001", what, 30.0, ours, Comparison::Shape);
            out.claims.push(claim);
        }
        table.row(row(&format!("Hummingbird, {name}"), &sum));
    }
    for (name, save) in [("UCFS, saved", true), ("UCFS, killed", false)] {
        let mut sum = Outcome::default();
        for point in &points {
            ucfs(&config, save, &requests[..*point], &mut sum)?;
        }
        table.row(row(name, &sum));
    }
    out.tables
        .push(("After a crash: cache systems".into(), table));
    progress("crashes", 1, 2);
    layouts::all(conditions, out)?;
    progress("crashes", 2, 2);
    out.note(
        "Hot clusters",
        "The published 30 seconds are the time for 2,500 hot clusters, 12 ms each. Memory holds at most 512 \
         clusters here (32 MB), and not all of them are hot. So the model reads a tenth as many clusters, in \
         a tenth of the time.",
    );
    out.because("Hummingbird 2001", &[""], "Hot clusters");
    out.note(
        "What it says",
        "Without a log Hummingbird finds its clusters again by reading all of them. But files that were \
         replaced after their cluster was written come back too; the delete log prevents this. Files that \
         were only in memory are lost in each case. UCFS has nothing after a crash and everything after a \
         clean shutdown.",
    );
    Ok(section)
}

/// A table row: `name` is its label, and `sum` contains its results.
fn row(name: &str, sum: &Outcome) -> [String; 6] {
    let each = |s: f64| digits(s / CRASHES as f64);
    let percent = |part, whole| digits(100.0 * ratio(part, whole));
    [
        name.to_owned(),
        percent(sum.back, sum.before),
        each(sum.serving_s),
        each(sum.all_s),
        percent(sum.log_bytes, sum.bytes),
        percent(sum.stale, sum.before),
    ]
}

/// The newest version of each object in these requests.
fn latest(requests: &[Request]) -> HashMap<u64, Request> {
    requests.iter().map(|r| (r.object, *r)).collect()
}

fn partition(config: &SystemConfig, reserved: u64) -> Result<Raw, RunError> {
    let drive = Drive::named(&config.drive)
        .ok_or_else(|| RunError::Config(format!("drive `{}` is not known", config.drive)))?;
    let bytes = config.disk + reserved;
    Ok(Raw::partition(drive, Schedule::CLook, 0, bytes))
}

fn hummingbird(
    config: &SystemConfig,
    logs: LogConfig,
    requests: &[Request],
    sum: &mut Outcome,
) -> Result<(), RunError> {
    let knobs = HummingbirdConfig {
        logs,
        ..config.library()
    };
    let mut system = WgHummingbird::new(
        partition(config, logs.reserved)?,
        knobs,
        WgConfig::default(),
    );
    for request in requests {
        system.request(request).map_err(fs)?;
    }
    let written = system.library().counts().cluster_writes * knobs.cluster;
    let library_before = system.into_library();
    let mut probe = library_before.clone();
    let known = answered(&mut probe, requests).map_err(library)?;
    sum.log_bytes += library_before.log_bytes();
    sum.bytes += written;
    let (mut after, report) =
        Hummingbird::recover(library_before.crash(), knobs).map_err(library)?;
    let scan = after.finish_scan().map_err(library)?;
    let back = answered(&mut after, requests).map_err(library)?;
    sum.before += known.0;
    sum.back += back.0.min(known.0);
    sum.stale += back.1;
    sum.serving_s += report.serving_s;
    sum.all_s += report.serving_s + scan.as_secs();
    Ok(())
}

/// Returns two numbers: the objects that a library returns in their latest version, and the objects that it
/// returns in an earlier version.
fn answered(
    library: &mut Hummingbird,
    requests: &[Request],
) -> Result<(u64, u64), HummingbirdError> {
    let mut counts = (0, 0);
    let mut wanted: Vec<_> = latest(requests).into_values().collect();
    wanted.sort_unstable_by_key(|r| r.object);
    for request in wanted {
        match library.read_file(request.object) {
            Ok(found) => {
                library.done_read_file(request.object)?;
                if found.version == request.version {
                    counts.0 += 1;
                } else {
                    counts.1 += 1;
                }
            }
            Err(HummingbirdError::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(counts)
}

fn ucfs(
    config: &SystemConfig,
    save: bool,
    requests: &[Request],
    sum: &mut Outcome,
) -> Result<(), RunError> {
    let choice = UcfsConfig {
        memory: config.ram,
        ..config.ucfs()
    };
    let raw = partition(config, choice.reserved + choice.memory)?;
    let mut system = Ucfs::new(raw, choice);
    for request in requests {
        system.request(request).map_err(fs)?;
    }
    sum.before += system.len() as u64;
    sum.bytes += system.counts().clusters_written * choice.cluster;
    let image = if save {
        let (image, saved) = system.save().map_err(fs)?;
        sum.log_bytes += saved.bytes;
        image
    } else {
        system.crash()
    };
    let (after, restored) = Ucfs::restore(image, choice).map_err(fs)?;
    sum.back += after.len() as u64;
    sum.serving_s += restored.seconds;
    sum.all_s += restored.seconds;
    Ok(())
}
