//! Compares UCFS with Squid on FFS, with Squid on async FFS, and with SQUIDML (Squid with mapped files and a
//! directory for each server). Also shows the effect of the parameters whose values are lost in the UCFS
//! paper (the lost parameters).
//!
//! Conditions: there are two generated streams, because the NLANR logs are not available. The DEC stream runs
//! on a disk of 2 GB, where disk hits are rare. The other stream has the published hit ratios of the NLANR
//! proxies and runs on a disk of 8 GB. Each system has 192 MB of memory including its tables, and a modelled
//! Atlas 10K II with three times the sectors per track. The first half of each stream is not counted. The
//! published digits are lost, so only orders and factors are compared.

mod notes;

use super::{
    Claim, Comparison, Conditions, Pace, Part, Progress, Section, SystemConfig, SystemResult,
    SystemSpec, bars, draw, figure, holds, runs, scaled,
};
use crate::{
    figure::{Figure, Scale, Series},
    model::SimTime,
    run::{FsKind, Made, RunError, Workload},
    systems::{Histogram, Replay, UcfsConfig},
};

const MB: u64 = 1 << 20;
const SOURCE: &str = "UCFS";
/// Memory of each system, including its tables.
const MEMORY: u64 = 192 * MB;
const DISK: u64 = 2 << 30;
/// Mean size of the objects of the DEC stream, in bytes. `ROOT_OBJECT` is the mean size of the cached objects
/// of the NLANR stream.
const OBJECT: u64 = 5_400;
const ROOT_OBJECT: u64 = 9_000;
/// Maximum rate of the published proxies in requests per second (NLANR, 1.2 million a day).
const RATE: f64 = 14.0;

/// The part that compares UCFS with Squid on FFS and with SQUIDML.
pub(in crate::reproduce) const UCFS: Part = Part {
    id: "ucfs",
    title: "UCFS: against Squid on FFS and SQUIDML",
    about: "Wang and Hu simulated UCFS with five logs of the NLANR proxies. The digits of their paper are \
            lost to us and the logs are not available: so we compare only orders and factors, and vary the \
            lost values in a sweep.",
    run: all,
};

fn all(conditions: &Conditions, progress: Progress<'_>) -> Result<Section, RunError> {
    let mut section = Section::default();
    let out = &mut section;
    let base = base(conditions);
    let real = real_pace(&scaled(base.clone(), conditions))?;
    let variants = variants(&base);
    let mut configs = Vec::from(compared(&base, OBJECT));
    configs.extend(compared(&base, OBJECT).into_iter().map(|c| SystemConfig {
        replay: Replay {
            pace: real,
            ..c.replay
        },
        ..c
    }));
    configs.extend(
        compared(&base, OBJECT)
            .into_iter()
            .take(2)
            .map(|c| SystemConfig {
                drive: "atlas10k2".into(),
                ..c
            }),
    );
    configs.extend(variants.iter().map(|(_, c)| c.clone()));
    configs.extend(compared(&root(&base), ROOT_OBJECT));
    let configs: Vec<_> = configs.into_iter().map(|c| scaled(c, conditions)).collect();
    let results = runs(conditions, progress, "UCFS", &configs)?;
    factors(&results, out);
    rates(&results, out);
    histograms(&results, out);
    sweep(&variants, &results, out);
    let root = &results[results.len() - COMPARED..];
    root_proxies(root, out);
    notes::notes(&results[0], &root[0], out);
    Ok(section)
}

/// Number of systems in [`compared`].
const COMPARED: usize = 4;

fn base(conditions: &Conditions) -> SystemConfig {
    SystemConfig {
        workload: Workload::Made(Made::Dec, 1_500_000),
        seed: conditions.seed,
        largest: 1 << 20,
        disk: DISK,
        drive: "atlas10k2-x3".into(),
        fs: FsKind::Ffs,
        replay: Replay {
            pace: Pace::Throttle,
            warm_up: 750_000,
        },
        ucfs: UcfsConfig::new(0),
        ..SystemConfig::hummingbird(SystemSpec::Ucfs)
    }
}

/// The configuration `base`, but with the stream of the NLANR proxies and a disk that is large enough for the
/// hits of this stream.
fn root(base: &SystemConfig) -> SystemConfig {
    SystemConfig {
        workload: Workload::Made(Made::Nlanr, 1_766_409),
        disk: 8 << 30,
        replay: Replay {
            warm_up: 883_000,
            ..base.replay
        },
        ..base.clone()
    }
}

/// UCFS, Squid on FFS, Squid on async FFS and SQUIDML on FFS. The memory for contents is [`MEMORY`] minus the
/// memory of the system's tables. For each object, tables take 72 bytes in Squid, and 24 bytes and one bit in
/// UCFS. `object` is the mean size of an object.
fn compared(base: &SystemConfig, object: u64) -> [SystemConfig; COMPARED] {
    let objects = base.disk / object;
    let squid = |spec, fs| {
        let ram = MEMORY - 72 * objects;
        SystemConfig {
            spec,
            fs,
            ram,
            // The other half of `ram` is for the mapped files and the buffers of the file system.
            cache_mem: ram / 2,
            ..base.clone()
        }
    };
    [
        SystemConfig {
            ram: MEMORY - 25 * objects,
            ..base.clone()
        },
        squid(SystemSpec::Squid, FsKind::Ffs),
        squid(SystemSpec::Squid, FsKind::Async),
        squid(SystemSpec::SquidMl, FsKind::Ffs),
    ]
}

/// Variants of `base`. Each variant changes one of the lost parameters.
fn variants(base: &SystemConfig) -> Vec<(String, SystemConfig)> {
    let [ucfs, ..] = compared(base, OBJECT);
    let mut all = Vec::new();
    for kib in [16u64, 32, 128, 256] {
        let config = SystemConfig {
            cluster: kib << 10,
            ..ucfs.clone()
        };
        all.push((format!("cluster {kib} KB"), config));
    }
    for mib in [64u64, 128, 384] {
        let config = SystemConfig {
            ram: mib * MB - 25 * (DISK / OBJECT),
            ..ucfs.clone()
        };
        all.push((format!("memory {mib} MB"), config));
    }
    all.extend(choices().map(|(name, choice)| {
        let config = SystemConfig {
            ucfs: choice,
            ..ucfs.clone()
        };
        (name.to_owned(), config)
    }));
    all
}

/// The configurations of the sweep. In each of them, one lost parameter has a value other than its usual
/// value.
fn choices() -> [(&'static str, UcfsConfig); 10] {
    let new = UcfsConfig::new(0);
    let hours = |h: f64| SimTime::from_secs(3_600.0 * h);
    [
        ("hot 30 %", UcfsConfig { hot: 0.3, ..new }),
        ("hot 65 %", UcfsConfig { hot: 0.65, ..new }),
        ("medium 10 %", UcfsConfig { medium: 0.1, ..new }),
        ("medium 40 %", UcfsConfig { medium: 0.4, ..new }),
        (
            "no move up",
            UcfsConfig {
                medium_up: false,
                ..new
            },
        ),
        (
            "partial kept",
            UcfsConfig {
                keep_partial: true,
                ..new
            },
        ),
        (
            "no virtual",
            UcfsConfig {
                virtual_clusters: false,
                ..new
            },
        ),
        (
            "no grouping",
            UcfsConfig {
                grouping: false,
                ..new
            },
        ),
        (
            "1 per write",
            UcfsConfig {
                write_clusters: 1,
                ..new
            },
        ),
        (
            "one-timers 6 h",
            UcfsConfig {
                one_timers: hours(6.0),
                ..new
            },
        ),
    ]
}

/// The pace that stretches recorded times to the rate of the published proxies.
fn real_pace(config: &SystemConfig) -> Result<Pace, RunError> {
    let (mut first, mut last, mut number) = (None, 0, 0u64);
    for request in config.requests()? {
        let request = request?;
        first.get_or_insert(request.time_ms);
        last = request.time_ms;
        number += 1;
    }
    let span = (last - first.unwrap_or(0)).max(1) as f64 / 1e3;
    Ok(Pace::Real(number as f64 / span / RATE))
}

fn add(out: &mut Section, what: String, published: f64, ours: f64, comparison: Comparison) {
    out.claims
        .push(Claim::new(SOURCE, what, published, ours, comparison));
}

/// For each system: its name, the published text, the geometric mean of the published range, and the range.
/// The range is a range of factors: the system's total disk latency divided by that of UCFS.
const RANGES: [(&str, &str, f64, (f64, f64)); 3] = [
    (
        "Squid on FFS",
        "8 to 19; a real one later 2.5 to 3",
        12.3,
        (8.0, 19.0),
    ),
    ("Squid on async FFS", "4 to 7.5", 5.5, (4.0, 7.5)),
    ("SQUIDML", "3 to 9", 5.2, (3.0, 9.0)),
];

fn factors(results: &[SystemResult], out: &mut Section) {
    for (paced, name) in [(0, "back to back"), (COMPARED, "at recorded times")] {
        let ucfs = &results[paced];
        for (n, (other, range, middle, (least, most))) in RANGES.into_iter().enumerate() {
            let r = &results[paced + 1 + n];
            let what = format!("total disk latency of {other} over UCFS, {name} ({range})");
            let ours = r.hours() / ucfs.hours();
            let claim = Claim::new(SOURCE, what, middle, ours, Comparison::Order);
            out.claims.push(claim.within(least, most));
            for (part, theirs, own) in [
                ("read", r.read_hours, ucfs.read_hours),
                ("write", r.write_hours, ucfs.write_hours),
            ] {
                let what = format!("{part} part of {other} over UCFS, {name}");
                add(out, what, 0.0, theirs / own, Comparison::Order);
            }
        }
        let hours = |n: usize| results[paced + n].hours();
        let order = hours(0) < hours(3) && hours(0) < hours(2) && hours(2) < hours(1);
        let what = format!("UCFS before SQUIDML, async FFS before sync FFS, {name} (1: yes)");
        add(out, what, 1.0, holds(order), Comparison::Order);
    }
    let plain = &results[2 * COMPARED..];
    let what = "Squid on FFS over UCFS on the drive as sold";
    let ours = plain[1].hours() / plain[0].hours();
    let claim = Claim::new(SOURCE, what, 12.3, ours, Comparison::Order);
    out.claims.push(claim.within(8.0, 19.0));
    let names = ["UCFS", "Squid, FFS", "Squid, async", "SQUIDML"];
    draw(
        out,
        (
            "ucfs-latency",
            Figure {
                labels: names.map(String::from).into(),
                series: vec![
                    bars("reads", results[..COMPARED].iter().map(|r| r.read_ms)),
                    bars("writes", results[..COMPARED].iter().map(|r| r.write_ms)),
                ],
                ..figure(
                    "UCFS: mean response time of hits and of misses",
                    "back to back; modelled Atlas 10K II with three times the sectors",
                    "",
                    "ms per operation",
                    Vec::new(),
                )
            },
        ),
    );
}

/// Adds claims for the runs with the stream of the NLANR proxies: factors of disk latency, hit rates and
/// prefetching.
fn root_proxies(results: &[SystemResult], out: &mut Section) {
    let ucfs = &results[0];
    for (n, (other, range, middle, (least, most))) in RANGES.into_iter().enumerate() {
        let r = &results[1 + n];
        let what = format!("total disk latency of {other} over UCFS, NLANR stream ({range})");
        let ours = r.hours() / ucfs.hours();
        let claim = Claim::new(SOURCE, what, middle, ours, Comparison::Order);
        out.claims.push(claim.within(least, most));
        for (part, theirs, own) in [
            ("read part", r.read_hours, ucfs.read_hours),
            ("write part", r.write_hours, ucfs.write_hours),
        ] {
            let what = format!("{part} of {other} over UCFS, NLANR stream");
            add(out, what, 0.0, theirs / own, Comparison::Order);
        }
    }
    let disk = 100.0 * ucfs.hit_ratio * (1.0 - ucfs.ram_share);
    for (what, published, ours) in [
        (
            "hit rate of UCFS over Squid's, NLANR stream (similar)",
            1.0,
            ucfs.hit_ratio / results[1].hit_ratio,
        ),
        ("hits on disk of UCFS, %, NLANR stream", 0.0, disk),
        (
            "prefetch-hit rate of UCFS, NLANR stream",
            0.0,
            ucfs.prefetch_hit_ratio,
        ),
        (
            "files that come along with a disk hit, NLANR stream",
            0.0,
            ucfs.prefetched_per_read,
        ),
    ] {
        add(out, what.to_owned(), published, ours, Comparison::Order);
    }
}

fn rates(results: &[SystemResult], out: &mut Section) {
    let (ucfs, squid) = (&results[0], &results[1]);
    let what = "hit rate of UCFS over Squid's (similar)".to_owned();
    add(
        out,
        what,
        1.0,
        ucfs.hit_ratio / squid.hit_ratio,
        Comparison::Order,
    );
    let memory = |r: &SystemResult| r.hit_ratio * r.ram_share;
    let what = "memory hit rate of UCFS over Squid's (higher: above 1)";
    let ours = memory(ucfs) / memory(squid);
    let claim = Claim::new(SOURCE, what, 1.0, ours, Comparison::Order);
    out.claims.push(claim.at_least());
    let what = "prefetch-hit rate of UCFS".to_owned();
    add(out, what, 0.0, ucfs.prefetch_hit_ratio, Comparison::Order);
    let what = "files that come along with a disk hit (Hummingbird: 8 in a cluster)".to_owned();
    add(out, what, 0.0, ucfs.prefetched_per_read, Comparison::Order);
}

/// Adds the figures of the response times in the runs at recorded times.
fn histograms(results: &[SystemResult], out: &mut Section) {
    let names = ["UCFS", "Squid on FFS", "Squid on async FFS", "SQUIDML"];
    let of = |part: fn(&SystemResult) -> Histogram| {
        let rows = names.into_iter().zip(&results[COMPARED..]);
        rows.map(|(name, r)| {
            let shares = part(r).shares();
            let points = (0..shares.len()).map(|n| (Histogram::upper_ms(n), 100.0 * shares[n]));
            Series::new(name, points.collect())
        })
        .collect::<Vec<_>>()
    };
    for (name, title, series) in [
        (
            "ucfs-read-times",
            "UCFS: response times of hits",
            of(|r| r.read_times),
        ),
        (
            "ucfs-write-times",
            "UCFS: response times of misses",
            of(|r| r.write_times),
        ),
    ] {
        let note = "at recorded times; a point is the upper end of a class";
        let plain = figure(title, note, "ms", "share of operations, %", series);
        let x_scale = Scale::Log;
        draw(out, (name, Figure { x_scale, ..plain }));
    }
}

/// For each variant, adds the total disk latency of Squid on FFS divided by that of UCFS.
fn sweep(variants: &[(String, SystemConfig)], results: &[SystemResult], out: &mut Section) {
    let squid = &results[1];
    let runs = &results[2 * COMPARED + 2..results.len() - COMPARED];
    let mut rows = vec![("as chosen".to_owned(), squid.hours() / results[0].hours())];
    for ((name, _), r) in variants.iter().zip(runs) {
        rows.push((name.clone(), squid.hours() / r.hours()));
    }
    for (name, factor) in &rows {
        let what = format!("Squid on FFS over UCFS: {name}");
        let claim = Claim::new(SOURCE, what, 12.3, *factor, Comparison::Order);
        out.claims.push(claim.within(8.0, 19.0));
    }
    let all = rows.iter().map(|r| r.1);
    let least = all.clone().fold(f64::INFINITY, f64::min);
    for (what, published, ours) in [
        ("least factor of the sweep (8 to 19)", 8.0, least),
        (
            "largest factor of the sweep (8 to 19)",
            19.0,
            all.fold(0.0, f64::max),
        ),
    ] {
        let claim = Claim::new(SOURCE, what, published, ours, Comparison::Order);
        out.claims.push(claim.within(8.0, 19.0));
    }
    let curve = |name: &str, points: Vec<(f64, f64)>| Series::new(name, points);
    let factor = |n: usize| rows[n].1;
    let clusters = [(16.0, 1), (32.0, 2), (64.0, 0), (128.0, 3), (256.0, 4)];
    let points = clusters.map(|(x, n)| (1024.0 * x, factor(n))).into();
    draw(
        out,
        (
            "ucfs-clusters",
            Figure {
                x_scale: Scale::Log,
                x_bytes: true,
                ..figure(
                    "UCFS: cluster size",
                    "Squid on FFS has the value 1",
                    "cluster",
                    "times as fast as Squid on FFS",
                    vec![curve("ours", points)],
                )
            },
        ),
    );
    let memory = [(64.0, 5), (128.0, 6), (192.0, 0), (384.0, 7)];
    let points = memory.map(|(x, n)| (x, factor(n))).into();
    let title = "UCFS: memory";
    let note = "compared with Squid on FFS, which has 192 MB of memory";
    let series = vec![curve("ours", points)];
    draw(
        out,
        (
            "ucfs-memory",
            figure(
                title,
                note,
                "memory, MB",
                "times as fast as Squid on FFS",
                series,
            ),
        ),
    );
}
