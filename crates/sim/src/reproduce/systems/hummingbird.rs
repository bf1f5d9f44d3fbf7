//! Repeats Hummingbird's tables (cluster sizes, placement, lifetimes, file systems), and the results of 2001
//! that compare Hummingbird with FFS.
//!
//! Conditions: 4,809,895 requests of the generated ISP stream, objects of at most 64 KB, 256 MB of memory, no
//! pauses between requests. The generated stream differs from the published log, so hit rates and times are
//! compared within bands.

mod notes;

use super::{
    Claim, Comparison, Conditions, Part, Progress, Section, SystemConfig, SystemResult, SystemSpec,
    bars, draw, figure, holds, runs, scaled,
};
use crate::{
    figure::Figure,
    levels::ratio,
    run::{FsKind, RunError},
    systems::hummingbird::Placement,
};

const GB: u64 = 1 << 30;

/// The part on Hummingbird: clusters, lifetimes, file systems.
pub(in crate::reproduce) const HUMMINGBIRD: Part = Part {
    id: "hummingbird",
    title: "Hummingbird: clusters, lifetimes, file systems",
    about: "Gabber, Shriver and Stein (1999) and Shriver, Gabber, Huang and Stein (USENIX 2001) replayed the \
            requests of four days at a national ISP against their library file system and against the file \
            operations of Squid 2.2. We use a generated stream with the same number of requests, on modelled \
            drives.",
    run: all,
};

fn all(conditions: &Conditions, progress: Progress<'_>) -> Result<Section, RunError> {
    let mut section = Section::default();
    let out = &mut section;
    let configs = configs(conditions);
    let results = runs(conditions, progress, "Hummingbird", &configs)?;
    let rows = Rows { results: &results };
    clusters(&rows, out);
    placements(&rows, out);
    lifetimes(&rows, out);
    file_systems(&rows, out);
    published_2001(&rows, out);
    notes::notes(&rows, out);
    Ok(section)
}

/// Lifetimes in the table of lifetimes, in minutes. In the paper, the run with the last lifetime ended early,
/// because no cluster was free.
const LIVES: [f64; 6] = [5.0, 30.0, 60.0, 120.0, 135.0, 150.0];

/// Configurations of the runs, in the order of the functions of [`Rows`].
fn configs(conditions: &Conditions) -> Vec<SystemConfig> {
    let base = SystemConfig::hummingbird(SystemSpec::Hummingbird);
    let four = SystemConfig {
        disk: 4 * GB,
        life_minutes: 30.0,
        ..base.clone()
    };
    let mut all: Vec<_> = [64u64, 96, 128]
        .map(|kib| SystemConfig {
            cluster: kib << 10,
            ..base.clone()
        })
        .into();
    all.extend([&base, &four].map(|c| SystemConfig {
        placement: Placement::PreviousWrite,
        ..c.clone()
    }));
    all.push(four);
    all.extend(LIVES.map(|life_minutes| SystemConfig {
        drive: "st318275lc".into(),
        life_minutes,
        ..base.clone()
    }));
    all.push(SystemConfig {
        life_minutes: 80.0,
        ..base.clone()
    });
    let squid = |disk, fs| SystemConfig {
        spec: SystemSpec::Squid,
        disk,
        fs,
        ..base.clone()
    };
    all.push(squid(4 * GB, FsKind::Journal));
    all.push(squid(9 * GB, FsKind::Journal));
    all.extend([FsKind::Async, FsKind::Soft, FsKind::Ffs].map(|fs| squid(4 * GB, fs)));
    all.into_iter().map(|c| scaled(c, conditions)).collect()
}

/// The results of all runs. Each function returns the result of one run. A parameter `n` selects one run of a
/// group of runs.
struct Rows<'a> {
    results: &'a [SystemResult],
}

impl Rows<'_> {
    fn at(&self, n: usize) -> &SystemResult {
        &self.results[n]
    }

    fn cluster(&self, n: usize) -> &SystemResult {
        self.at(n)
    }

    /// Result of placement near the previous write: on 9 GB if `n` is 0, on 4 GB if `n` is 1.
    fn previous(&self, n: usize) -> &SystemResult {
        self.at(3 + n)
    }

    fn four(&self) -> &SystemResult {
        self.at(5)
    }

    fn life(&self, n: usize) -> &SystemResult {
        self.at(6 + n)
    }

    fn nine(&self) -> &SystemResult {
        self.at(12)
    }

    /// Result on XFS: with 4 GB if `n` is 0, with 9 GB if `n` is 1.
    fn xfs(&self, n: usize) -> &SystemResult {
        self.at(13 + n)
    }

    /// Result on FFS: async if `n` is 0, soft updates if `n` is 1, sync if `n` is 2.
    fn ffs(&self, n: usize) -> &SystemResult {
        self.at(15 + n)
    }
}

fn add(
    out: &mut Section,
    source: &'static str,
    what: String,
    published: f64,
    ours: f64,
    comparison: Comparison,
) {
    out.claims
        .push(Claim::new(source, what, published, ours, comparison));
}

/// Adds claims for a row of a published table: hit rates, times per read and per write, and run time.
fn row(out: &mut Section, source: &'static str, name: &str, r: &SystemResult, published: [f64; 5]) {
    let ours = [
        ("proxy hit rate", r.hit_ratio),
        ("memory hit rate", r.ram_share),
        ("read, ms", r.read_ms),
        ("write, ms", r.write_ms),
        ("run, s", r.seconds),
    ];
    for ((what, ours), published) in ours.into_iter().zip(published) {
        if published > 0.0 {
            let what = format!("{name}: {what}");
            add(out, source, what, published, ours, Comparison::Band);
        }
    }
}

fn clusters(rows: &Rows<'_>, out: &mut Section) {
    const SOURCE: &str = "Hummingbird table 3";
    let published = [
        ("64 KB", [0.65, 0.74, 3.32, 0.21, 11_720.0], 10.77),
        ("96 KB", [0.66, 0.73, 4.05, 0.23, 14_261.0], 13.57),
        ("128 KB", [0.64, 0.74, 4.74, 0.28, 16_536.0], 16.31),
    ];
    for (n, (name, values, io_ms)) in published.into_iter().enumerate() {
        let r = rows.cluster(n);
        row(out, SOURCE, name, r, values);
        let what = format!("{name}: ms per disk request, reads and writes (derived)");
        add(out, SOURCE, what, io_ms, r.io_ms, Comparison::Band);
    }
    let best = rows.cluster(0);
    let order = holds(
        best.seconds < rows.cluster(1).seconds && rows.cluster(1).seconds < rows.cluster(2).seconds,
    );
    add(
        out,
        SOURCE,
        "64 KB before 96 KB before 128 KB (1: yes)".into(),
        1.0,
        order,
        Comparison::Shape,
    );
    let tables = 100.0 * best.table_bytes as f64 / f64::from(256u32 << 20);
    add(
        out,
        SOURCE,
        "memory for metadata, % of 256 MB (column left blank)".into(),
        0.0,
        tables,
        Comparison::Shape,
    );
}

fn placements(rows: &Rows<'_>, out: &mut Section) {
    const SOURCE: &str = "Hummingbird table 4";
    row(
        out,
        SOURCE,
        "4 GB, closest",
        rows.four(),
        [0.0, 0.0, 2.82, 0.20, 9_926.0],
    );
    row(
        out,
        SOURCE,
        "4 GB, previous write",
        rows.previous(1),
        [0.0, 0.0, 2.91, 0.30, 11_457.0],
    );
    row(
        out,
        SOURCE,
        "9 GB, previous write",
        rows.previous(0),
        [0.0, 0.0, 3.40, 0.20, 11_983.0],
    );
    let ours = rows.previous(1).seconds / rows.four().seconds;
    let what = "4 GB: run time of previous-write over closest";
    add(
        out,
        SOURCE,
        what.into(),
        11_457.0 / 9_926.0,
        ours,
        Comparison::Band,
    );
}

fn lifetimes(rows: &Rows<'_>, out: &mut Section) {
    const SOURCE: &str = "Hummingbird table 5";
    let published = [
        [0.53, 0.88, 1.63, 0.11, 5_299.0],
        [0.60, 0.80, 2.73, 0.11, 8_847.0],
        [0.62, 0.77, 3.12, 0.11, 10_315.0],
        [0.65, 0.75, 3.36, 0.11, 11_396.0],
        [0.65, 0.75, 3.39, 0.11, 11_543.0],
    ];
    for (n, values) in published.into_iter().enumerate() {
        let name = format!("life {} min", LIVES[n]);
        row(out, SOURCE, &name, rows.life(n), values);
    }
    let rising = (0..4).all(|n| rows.life(n).hit_ratio <= rows.life(n + 1).hit_ratio + 1e-9);
    let what = "longer lives, more hits and longer runs (1: yes)";
    let longer = (0..4).all(|n| rows.life(n).seconds <= rows.life(n + 1).seconds * 1.001);
    add(
        out,
        SOURCE,
        what.into(),
        1.0,
        holds(rising && longer),
        Comparison::Shape,
    );
    let last = rows.life(5);
    let what = "life 150 min: share of the stream done before no cluster is free";
    let all = rows.life(0).requests.max(1);
    add(
        out,
        SOURCE,
        what.into(),
        3.6 / 4.81,
        ratio(last.requests, all),
        Comparison::Shape,
    );
    let points =
        |f: fn(&SystemResult) -> f64| (0..5).map(|n| (LIVES[n], f(rows.life(n)))).collect();
    let series = vec![
        crate::figure::Series::new(
            "published",
            published
                .iter()
                .zip(LIVES)
                .map(|(p, l)| (l, p[0]))
                .collect(),
        )
        .as_reference(),
        crate::figure::Series::new("ours", points(|r| r.hit_ratio)),
    ];
    let title = "Hummingbird: hit rate over the lifetime of clusters";
    let note = "9 GB, 64 KB clusters, modelled ST318275LC";
    draw(
        out,
        (
            "hummingbird-lifetimes",
            figure(
                title,
                note,
                "lifetime, minutes of the run",
                "proxy hit rate",
                series,
            ),
        ),
    );
}

fn file_systems(rows: &Rows<'_>, out: &mut Section) {
    const SOURCE: &str = "Hummingbird table 6";
    row(
        out,
        SOURCE,
        "4 GB, Hummingbird",
        rows.four(),
        [0.62, 0.0, 2.82, 0.20, 9_926.0],
    );
    row(
        out,
        SOURCE,
        "4 GB, XFS",
        rows.xfs(0),
        [0.64, 0.0, 16.67, 14.98, 78_243.0],
    );
    row(
        out,
        SOURCE,
        "9 GB, Hummingbird",
        rows.nine(),
        [0.66, 0.0, 3.30, 0.21, 11_861.0],
    );
    row(
        out,
        SOURCE,
        "9 GB, XFS",
        rows.xfs(1),
        [0.67, 0.0, 18.08, 12.24, 78_984.0],
    );
    let ios = [
        ("4 GB, Hummingbird", rows.four(), 0.19),
        ("9 GB, Hummingbird", rows.nine(), 0.21),
        ("4 GB, XFS", rows.xfs(0), 2.15),
        ("9 GB, XFS", rows.xfs(1), 2.01),
    ];
    for (name, r, published) in ios {
        let what = format!("{name}: disk requests per request");
        add(
            out,
            SOURCE,
            what,
            published,
            r.ios_per_request,
            Comparison::Band,
        );
    }
    let factors = [
        ("4 GB", rows.xfs(0), rows.four(), 7.9),
        ("9 GB", rows.xfs(1), rows.nine(), 6.7),
    ];
    for (name, xfs, ours, published) in factors {
        let what = format!("{name}: Hummingbird over wg-Squid on XFS, requests/s (5 to 10)");
        let factor = ours.requests_per_s / xfs.requests_per_s;
        add(out, SOURCE, what, published, factor, Comparison::Band);
    }
    file_systems_figure(rows, out);
}

fn file_systems_figure(rows: &Rows<'_>, out: &mut Section) {
    let labels = [
        "Hummingbird 4 GB",
        "XFS 4 GB",
        "Hummingbird 9 GB",
        "XFS 9 GB",
    ];
    let results = [rows.four(), rows.xfs(0), rows.nine(), rows.xfs(1)];
    draw(
        out,
        (
            "hummingbird-file-systems",
            Figure {
                labels: labels.map(String::from).into(),
                series: vec![
                    bars("published", [485.0, 61.0, 406.0, 61.0].into_iter()).as_reference(),
                    bars("ours", results.iter().map(|r| r.requests_per_s)),
                ],
                ..figure(
                    "Hummingbird and Squid on XFS",
                    "256 MB, one disk, back to back; modelled ST118202FC",
                    "",
                    "requests per second",
                    Vec::new(),
                )
            },
        ),
    );
}

fn published_2001(rows: &Rows<'_>, out: &mut Section) {
    const SOURCE: &str = "Hummingbird 2001 table 2";
    let hummingbird = rows.four();
    let names = [
        ("async", 3.0, 4.81 / 1.16),
        ("soft updates", 7.0, 10.7 / 1.16),
        ("sync", 7.0, 10.2 / 1.16),
    ];
    let bands = [(2.3, 4.0), (5.6, 8.4), (5.4, 9.4)];
    for (n, (name, published, ios)) in names.into_iter().enumerate() {
        let r = rows.ffs(n);
        let (least, most) = bands[n];
        let what = format!("Hummingbird over FFS {name}, requests/s ({least} to {most})");
        let factor = hummingbird.requests_per_s / r.requests_per_s;
        let claim = Claim::new(SOURCE, what, published, factor, Comparison::Shape);
        out.claims.push(claim.within(least, most));
        let what = format!("disk requests of FFS {name} over Hummingbird's");
        let ours = r.ios_per_request / hummingbird.ios_per_request;
        add(out, SOURCE, what, ios, ours, Comparison::Shape);
    }
    let order =
        hummingbird.seconds < rows.ffs(0).seconds && rows.ffs(0).seconds < rows.ffs(2).seconds;
    let what = "Hummingbird before async before sync (1: yes)";
    add(
        out,
        SOURCE,
        what.into(),
        1.0,
        holds(order),
        Comparison::Shape,
    );
}
