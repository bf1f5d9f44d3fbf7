//! USITS'99, "Secondary storage management for web proxies": figures 2 to 8, tables 1 and 2.
//!
//! Conditions (papers.md section 3): figures 4 and 5 on a 1 GB disk with 300,000 and 400,000
//! operations; the others on 2 GB with a million. Figures 6 to 8 use one operation stream and
//! vary the file: 2 GB over utilisation. The published "URL-gets/s" of table 2 equal operations
//! over completion time, so operations per second are compared.

use super::{Claim, Comparison, Conditions, Reproduction};
use crate::{
    figure::{Figure, Series},
    layout::{LayoutSpec, buddy},
    levels::{Levels, ratio},
    model::{
        Files,
        fs::{DeleteOrder, lat_fs},
    },
    run::{Backend, RunConfig, RunError, RunResult, SweepOptions, sweep},
};

type Progress<'a> = &'a (dyn Fn(&str, usize, usize) + Sync);

const MILLION: u64 = 1_000_000;
const BUDDY: LayoutSpec = LayoutSpec::Buddy(buddy::THRESHOLD);
/// Figures 6 to 8.
const CURVES: [LayoutSpec; 7] = [
    LayoutSpec::Stream,
    LayoutSpec::Packetizer,
    LayoutSpec::Lazy(10),
    LayoutSpec::Loc(128),
    LayoutSpec::LazyLoc(8),
    LayoutSpec::LazyLoc(64),
    LayoutSpec::LazyLoc(128),
];

pub(super) fn all(
    conditions: &Conditions,
    progress: Progress<'_>,
) -> Result<Reproduction, RunError> {
    let mut out = Reproduction::default();
    cascade(conditions, &mut out)?;
    figure_2(conditions, progress, &mut out)?;
    figure_3(&mut out)?;
    let small = figure_4(conditions, progress, &mut out)?;
    figure_5(conditions, progress, &mut out)?;
    let large = Large::run(conditions, progress)?;
    table_2(&small, &large, &mut out);
    figure_6(&large, &mut out);
    figure_7(&large, &mut out);
    figure_8(&large, &mut out);
    table_1(&large, &mut out);
    journal(&large, &mut out);
    let second = second_stream(conditions, progress, &mut out)?;
    out.runs.extend(second);
    out.runs.extend(small);
    out.runs.push(large.buddy);
    out.runs.extend(large.curves.into_iter().flatten());
    Ok(out)
}

fn runs(
    conditions: &Conditions,
    progress: Progress<'_>,
    what: &str,
    configs: &[RunConfig],
) -> Result<Vec<RunResult>, RunError> {
    let tell = |done, of| progress(what, done, of);
    let options = SweepOptions {
        threads: conditions.threads,
        resume: conditions.resume.clone(),
        progress: Some(&tell),
    };
    sweep(configs, &options)
}

/// 1,058,206 gets through 512 MB and 2 GB.
fn cascade(conditions: &Conditions, out: &mut Reproduction) -> Result<(), RunError> {
    let mut levels = Levels::new(conditions.levels(2.0));
    let mut ops = Vec::new();
    for request in conditions.dec(1_058_206).open(conditions.seed)? {
        ops.clear();
        levels.request(&request?, &mut ops);
    }
    let counts = levels.counts();
    let percent = |n| 100.0 * ratio(n, counts.requests);
    let scale = conditions.scale.max(1) as f64;
    let mut claim = |what: &str, published, ours| {
        out.claims.push(Claim::new(
            "cascade",
            what,
            published,
            ours,
            Comparison::Input,
        ));
    };
    claim("RAM hits, %", 31.95, percent(counts.ram_hits));
    claim("disk hits, %", 3.98, percent(counts.disk_hits));
    claim("misses, %", 64.07, percent(counts.misses));
    claim("URL-deletes", 279_875.0 / scale, counts.deletes as f64);
    claim(
        "mean object on disk, bytes",
        5_393.0,
        ratio(levels.disk_used(), levels.disk_objects() as u64),
    );
    Ok(())
}

/// URL-reads and URL-writes of 5 million gets over disk sizes.
fn figure_2(
    conditions: &Conditions,
    progress: Progress<'_>,
    out: &mut Reproduction,
) -> Result<(), RunError> {
    let workload = conditions.dec(5 * MILLION);
    let mut levels: Vec<_> = conditions
        .disks
        .iter()
        .map(|gib| Levels::new(conditions.levels(*gib)))
        .collect();
    let mut ops = Vec::new();
    // One pass over the stream feeds all sizes.
    for request in workload.open(conditions.seed)? {
        let request = request?;
        for level in &mut levels {
            ops.clear();
            level.request(&request, &mut ops);
        }
    }
    progress("figure 2", 1, 1);
    let line = |name: &str, value: &dyn Fn(&Levels) -> u64| {
        let points = conditions.disks.iter().zip(&levels);
        Series::new(
            name,
            points
                .map(|(gib, l)| (*gib, value(l) as f64 / 1e6))
                .collect(),
        )
    };
    let writes = line("URL-writes", &|l| l.counts().writes);
    let reads = line("URL-reads", &|l| l.counts().disk_hits);
    let scale = conditions.scale.max(1) as f64;
    let at_2_gib = |s: &Series| {
        s.points
            .iter()
            .find(|p| p.0 >= 2.0)
            .map_or(0.0, |p| p.1 * scale)
    };
    let mut claim = |what: &str, published, ours| {
        out.claims.push(Claim::new(
            "figure 2",
            what,
            published,
            ours,
            Comparison::Shape,
        ));
    };
    claim(
        "URL-writes of 5 M gets, millions (about)",
        3.0,
        at_2_gib(&writes),
    );
    claim(
        "URL-reads of 5 M gets, millions (less than)",
        0.5,
        at_2_gib(&reads),
    );
    claim(
        "reads and writes together, millions",
        3.4,
        at_2_gib(&reads) + at_2_gib(&writes),
    );
    let title = "Figure 2: operations of 5 million requests by disk size";
    out.figures.push((
        "figure-2",
        figure(
            title,
            "512 MB of memory before the disk; LRU both",
            "disk size, GiB",
            "operations, millions",
            vec![writes, reads],
        ),
    ));
    Ok(())
}

/// HBENCH lat_fs on the modelled file system.
fn figure_3(out: &mut Reproduction) -> Result<(), RunError> {
    let (mut creates, mut deletes) = (Vec::new(), Vec::new());
    for kib in [0, 1, 2, 4, 6, 8, 10] {
        let mut files = Backend::default().ufs()?;
        let fs = |error| RunError::Layout(crate::layout::LayoutError::Fs(error));
        let dir = files.mkdir(files.root(), 1).map_err(fs)?;
        let times = lat_fs(&mut files, dir, kib << 10, 64, 10, DeleteOrder::Forward).map_err(fs)?;
        creates.push((kib as f64, times.create_ms));
        deletes.push((kib as f64, times.delete_ms));
    }
    let at = |points: &[(f64, f64)], kib: f64| {
        points
            .iter()
            .find(|p| (p.0 - kib).abs() < 0.5)
            .map_or(0.0, |p| p.1)
    };
    let mut claim = |what: &str, published, ours| {
        out.claims.push(Claim::new(
            "figure 3",
            what,
            published,
            ours,
            Comparison::Input,
        ));
    };
    claim(
        "create an empty file, ms (at least)",
        20.0,
        at(&creates, 0.0),
    );
    claim(
        "create a file of 10 KB, ms (about)",
        40.0,
        at(&creates, 10.0),
    );
    claim(
        "create and delete 4 KB, ms (about)",
        50.0,
        at(&creates, 4.0) + at(&deletes, 4.0),
    );
    let series = vec![
        Series::new("create", creates),
        Series::new("delete", deletes),
    ];
    out.figures.push((
        "figure-3",
        figure(
            "Figure 3: creating and deleting files",
            "64 files in one directory, deleted in the order of creation; modelled UFS",
            "file size, KB",
            "ms per file",
            series,
        ),
    ));
    Ok(())
}

/// SIMPLE, SQUID, MULTIPLE-DIRS and BUDDY: 300,000 operations on 1 GB.
fn figure_4(
    conditions: &Conditions,
    progress: Progress<'_>,
    out: &mut Reproduction,
) -> Result<Vec<RunResult>, RunError> {
    let specs = [
        LayoutSpec::Simple,
        LayoutSpec::Squid,
        LayoutSpec::MultipleDirs,
        BUDDY,
    ];
    let configs = specs.map(|spec| conditions.config(spec, 1.0, 300_000));
    let results = runs(conditions, progress, "figure 4", &configs)?;
    let scale = conditions.scale.max(1) as f64;
    out.claims.push(Claim::new(
        "figure 4",
        "gets that make 300,000 operations",
        398_034.0 / scale,
        results.first().map_or(0.0, |r| r.gets as f64),
        Comparison::Input,
    ));
    if let Some(buddy) = results.last() {
        let each = 1000.0 / buddy.ops_per_s;
        out.claims.push(Claim::new(
            "figure 4",
            "BUDDY, ms per operation (less than 9)",
            7.5,
            each,
            Comparison::Band,
        ));
    }
    let bars = results.iter().map(|r| (0.0, r.seconds / 60.0)).collect();
    out.figures.push((
        "figure-4",
        Figure {
            labels: results.iter().map(|r| r.layout.to_uppercase()).collect(),
            ..figure(
                "Figure 4: one file for each object, and BUDDY",
                "300,000 operations on 1 GB; modelled ST15150WC and UFS",
                "",
                "completion time, minutes",
                vec![Series::new("ours", bars)],
            )
        },
    ));
    Ok(results)
}

/// BUDDY over its threshold: 400,000 operations.
fn figure_5(
    conditions: &Conditions,
    progress: Progress<'_>,
    out: &mut Reproduction,
) -> Result<(), RunError> {
    let configs: Vec<_> = conditions
        .thresholds
        .iter()
        .map(|t| conditions.config(LayoutSpec::Buddy(*t), 1.0, 400_000))
        .collect();
    let results = runs(conditions, progress, "figure 5", &configs)?;
    let points: Vec<_> = conditions
        .thresholds
        .iter()
        .zip(&results)
        .map(|(t, r)| (f64::from(*t), r.seconds / 60.0))
        .collect();
    let at = |t: f64| points.iter().find(|p| p.0 >= t).map_or(f64::NAN, |p| p.1);
    let last = points.last().map_or(f64::NAN, |p| p.1);
    let gained = (at(1.0) - at(10.0)) / (at(1.0) - last);
    out.claims.push(Claim::new(
        "figure 5",
        "share of the gain reached at 10 blocks (most of it)",
        0.8,
        gained,
        Comparison::Shape,
    ));
    out.claims.push(Claim::new(
        "figure 5",
        "256 blocks over the largest threshold (almost the best)",
        1.0,
        at(256.0) / last,
        Comparison::Shape,
    ));
    let series = vec![Series::new("BUDDY", points)];
    out.figures.push((
        "figure-5",
        Figure {
            x_scale: crate::figure::Scale::Log,
            ..figure(
                "Figure 5: BUDDY over its threshold",
                "400,000 operations on 1 GB; larger objects have files of their own",
                "threshold, blocks of 512 bytes",
                "completion time, minutes",
                series,
            )
        },
    ));
    out.runs.extend(results);
    Ok(())
}

/// The runs of a million operations on 2 GB.
struct Large {
    utilisations: Vec<f64>,
    buddy: RunResult,
    /// By [`CURVES`], then by utilisation.
    curves: Vec<Vec<RunResult>>,
}

impl Large {
    fn run(conditions: &Conditions, progress: Progress<'_>) -> Result<Self, RunError> {
        let config = |spec| conditions.config(spec, 2.0, MILLION);
        let mut configs = vec![config(BUDDY)];
        for spec in CURVES {
            let at = |u: &f64| RunConfig {
                utilisation: *u,
                ..config(spec)
            };
            configs.extend(conditions.utilisations.iter().map(at));
        }
        let mut results = runs(conditions, progress, "figures 6 to 8", &configs)?.into_iter();
        let buddy = results.next().ok_or(RunError::Nothing)?;
        let each = conditions.utilisations.len();
        let curves = CURVES
            .iter()
            .map(|_| results.by_ref().take(each).collect())
            .collect();
        Ok(Self {
            utilisations: conditions.utilisations.clone(),
            buddy,
            curves,
        })
    }

    /// A run by layout and the utilisation nearest to the one asked for.
    fn at(&self, spec: LayoutSpec, utilisation: f64) -> Option<&RunResult> {
        let curve = CURVES.iter().position(|s| *s == spec)?;
        let off = |n: &usize| (self.utilisations[*n] - utilisation).abs();
        let nearest = (0..self.utilisations.len()).min_by(|a, b| off(a).total_cmp(&off(b)))?;
        self.curves.get(curve)?.get(nearest)
    }

    fn seconds(&self, spec: LayoutSpec, utilisation: f64) -> f64 {
        self.at(spec, utilisation).map_or(f64::NAN, |r| r.seconds)
    }

    fn line(&self, spec: LayoutSpec) -> Series {
        let curve = CURVES
            .iter()
            .position(|s| *s == spec)
            .and_then(|n| self.curves.get(n));
        let points = self.utilisations.iter().zip(curve.into_iter().flatten());
        Series::new(
            spec.to_string().to_uppercase(),
            points.map(|(u, r)| (100.0 * u, r.seconds)).collect(),
        )
    }

    /// How many times as fast `a` is as `b`.
    fn times(&self, a: LayoutSpec, b: LayoutSpec, utilisation: f64) -> f64 {
        self.seconds(b, utilisation) / self.seconds(a, utilisation)
    }
}

fn table_2(small: &[RunResult], large: &Large, out: &mut Reproduction) {
    let mut claim = |what: String, published, ours| {
        out.claims.push(Claim::new(
            "table 2",
            what,
            published,
            ours,
            Comparison::Band,
        ));
    };
    for (result, published) in small.iter().zip([14.0, 20.0, 23.0, 133.0]) {
        claim(
            format!("{}, operations/s", result.layout.to_uppercase()),
            published,
            result.ops_per_s,
        );
    }
    let streams = [
        (LayoutSpec::Stream, 295.0),
        (LayoutSpec::Packetizer, 358.0),
        (LayoutSpec::Lazy(10), 396.0),
        (LayoutSpec::LazyLoc(128), 495.0),
    ];
    for (spec, published) in streams {
        // The best published rate of the last one is at the lowest utilisation measured.
        let ours = large.at(spec, 0.71).map_or(f64::NAN, |r| r.ops_per_s);
        claim(
            format!("{}, operations/s", spec.to_string().to_uppercase()),
            published,
            ours,
        );
    }
}

/// Table 2 once more with objects as large as the bytes that were moved imply: 7.6 GB in
/// 720,125 reads and writes are 10.5 KB each, twice what the number of live objects implies.
fn second_stream(
    conditions: &Conditions,
    progress: Progress<'_>,
    out: &mut Reproduction,
) -> Result<Vec<RunResult>, RunError> {
    let rows = [
        (LayoutSpec::Simple, 14.0),
        (LayoutSpec::Squid, 20.0),
        (LayoutSpec::MultipleDirs, 23.0),
        (BUDDY, 133.0),
        (LayoutSpec::Stream, 295.0),
        (LayoutSpec::Packetizer, 358.0),
        (LayoutSpec::Lazy(10), 396.0),
        (LayoutSpec::Loc(128), 460.0),
        (LayoutSpec::LazyLoc(128), 495.0),
    ];
    let configs = rows.map(|(spec, _)| {
        if spec.is_stream() {
            conditions.second(spec, 2.0, MILLION)
        } else {
            conditions.second(spec, 1.0, 300_000)
        }
    });
    let results = runs(conditions, progress, "second stream", &configs)?;
    for ((_, published), result) in rows.iter().zip(&results) {
        let what = format!("{}, operations/s", result.layout.to_uppercase());
        let claim = Claim::new(
            "table 2, 10.5 KB",
            what,
            *published,
            result.ops_per_s,
            Comparison::Band,
        );
        out.claims.push(claim);
    }
    if let Some(best) = results.last() {
        let what = "of sequential with 128 buffers, % (object bytes)";
        let ours = 100.0 * best.of_sequential;
        out.claims.push(Claim::new(
            "journal, 10.5 KB",
            what,
            78.0,
            ours,
            Comparison::Band,
        ));
    }
    let bars = |name: &str, values: Vec<f64>| {
        Series::new(name, values.into_iter().map(|v| (0.0, v)).collect())
    };
    out.figures.push(("table-2", Figure {
        labels: results.iter().map(|r| short(&r.layout)).collect(),
        y_scale: crate::figure::Scale::Log,
        series: vec![
            bars("published", rows.iter().map(|r| r.1).collect()).as_reference(),
            bars("ours", results.iter().map(|r| r.ops_per_s).collect()),
        ],
        ..figure("Table 2: disk operations per second", "objects of 10.5 KB on average, as the bytes moved imply; modelled ST15150WC and UFS", "", "operations per second", Vec::new())
    }));
    Ok(results)
}

/// A name that fits below two bars.
fn short(layout: &str) -> String {
    layout
        .replace("multiple-dirs", "multi-dirs")
        .replace("stream-packetizer", "packetizer")
        .replace("lazy-reads-loc", "lazy-loc")
}

fn figure_6(large: &Large, out: &mut Reproduction) {
    let over = |spec, u| large.buddy.seconds / large.seconds(spec, u);
    let mut claim = |what: &str, published, ours| {
        out.claims.push(Claim::new(
            "figure 6",
            what,
            published,
            ours,
            Comparison::Shape,
        ));
    };
    claim(
        "BUDDY, seconds for a million operations (derived)",
        6_900.0,
        large.buddy.seconds,
    );
    claim(
        "STREAM over BUDDY under 72 %, times",
        2.0,
        over(LayoutSpec::Stream, 0.71),
    );
    claim(
        "STREAM-PACKETIZER over BUDDY under 72 %, times",
        2.5,
        over(LayoutSpec::Packetizer, 0.71),
    );
    claim(
        "STREAM over BUDDY at 95 %, times",
        1.0,
        over(LayoutSpec::Stream, 0.95),
    );
    let buddy = large
        .utilisations
        .iter()
        .map(|u| (100.0 * u, large.buddy.seconds))
        .collect();
    let series = vec![
        large.line(LayoutSpec::Stream),
        large.line(LayoutSpec::Packetizer),
        Series::new("BUDDY", buddy).as_reference(),
    ];
    out.figures.push((
        "figure-6",
        utilisation("Figure 6: BUDDY, STREAM and STREAM-PACKETIZER", series),
    ));
}

fn figure_7(large: &Large, out: &mut Reproduction) {
    let series = vec![
        large.line(LayoutSpec::Packetizer),
        large.line(LayoutSpec::Lazy(10)),
    ];
    out.figures
        .push(("figure-7", utilisation("Figure 7: LAZY-READS", series)));
    let gain = 100.0 * (large.times(LayoutSpec::Lazy(10), LayoutSpec::Packetizer, 0.71) - 1.0);
    out.claims.push(Claim::new(
        "figure 7",
        "LAZY-READS over STREAM-PACKETIZER, %",
        10.0,
        gain,
        Comparison::Band,
    ));
}

fn figure_8(large: &Large, out: &mut Reproduction) {
    let series = [
        LayoutSpec::Lazy(10),
        LayoutSpec::LazyLoc(8),
        LayoutSpec::LazyLoc(64),
        LayoutSpec::LazyLoc(128),
    ];
    let series = series.map(|spec| large.line(spec)).into();
    out.figures.push((
        "figure-8",
        utilisation("Figure 8: locality buffers", series),
    ));
    let times = |b, u| large.times(LayoutSpec::LazyLoc(b), LayoutSpec::Lazy(10), u);
    let mut claim = |what: &str, published, ours| {
        out.claims.push(Claim::new(
            "figure 8",
            what,
            published,
            ours,
            Comparison::Shape,
        ));
    };
    claim(
        "8 buffers over LAZY-READS at 71 %, times (1.05 to 1.20)",
        1.12,
        times(8, 0.71),
    );
    claim(
        "128 buffers over LAZY-READS at 76 %, times",
        2.5,
        times(128, 0.76),
    );
    let least = large
        .utilisations
        .iter()
        .map(|u| times(128, *u))
        .fold(f64::MAX, f64::min);
    claim(
        "128 buffers over LAZY-READS, least of all, times (at least)",
        1.3,
        least,
    );
}

/// Completion times at 71 %, minutes.
fn table_1(large: &Large, out: &mut Reproduction) {
    let rows = [
        (LayoutSpec::Packetizer, 46.0 + 31.0 / 60.0, 0.0),
        (LayoutSpec::Lazy(10), 42.0 + 8.0 / 60.0, 10.0),
        (LayoutSpec::Loc(128), 36.0 + 16.0 / 60.0, 28.0),
        (LayoutSpec::LazyLoc(128), 33.0 + 51.0 / 60.0, 37.5),
    ];
    for (spec, minutes, gain) in rows {
        let name = spec.to_string().to_uppercase();
        let ours = large.seconds(spec, 0.71) / 60.0;
        out.claims.push(Claim::new(
            "table 1",
            format!("{name}, minutes"),
            minutes,
            ours,
            Comparison::Band,
        ));
        if gain > 0.0 {
            let ours = 100.0 * (large.times(spec, LayoutSpec::Packetizer, 0.71) - 1.0);
            let what = format!("{name}, improvement, %");
            out.claims
                .push(Claim::new("table 1", what, gain, ours, Comparison::Band));
        }
    }
}

/// What the journal version adds: efficiency and read distances.
fn journal(large: &Large, out: &mut Reproduction) {
    let (Some(without), Some(with)) = (
        large.at(LayoutSpec::Lazy(10), 0.71),
        large.at(LayoutSpec::LazyLoc(128), 0.71),
    ) else {
        return;
    };
    let mut claim = |what: &str, published, ours, comparison| {
        out.claims
            .push(Claim::new("journal", what, published, ours, comparison));
    };
    claim(
        "sequential write, MB/s",
        4.7,
        with.sequential_mb_per_s,
        Comparison::Input,
    );
    claim(
        "of sequential with 128 buffers, % (object bytes)",
        78.0,
        100.0 * with.of_sequential,
        Comparison::Band,
    );
    claim(
        "reads within 10 blocks without buffers, %",
        6.0,
        100.0 * without.read_within_10,
        Comparison::Shape,
    );
    claim(
        "reads within 10 blocks with 128 buffers, %",
        17.0,
        100.0 * with.read_within_10,
        Comparison::Shape,
    );
    let times = with.read_within_10 / without.read_within_10;
    claim(
        "with over without, within 10 blocks, times",
        8_400.0 / 3_200.0,
        times,
        Comparison::Shape,
    );
    let times = with.read_next / without.read_next;
    claim(
        "with over without, very next block, times",
        1_885.0 / 611.0,
        times,
        Comparison::Shape,
    );
    let series =
        [("without buffers", without), ("128 buffers of 64 KB", with)].map(|(name, run)| {
            let points = run
                .samples
                .iter()
                .filter(|s| s.ops > 300_000.min(run.samples.len() as u64));
            Series::new(
                name,
                points.map(|s| (s.ops as f64, s.free_chunk / 1e3)).collect(),
            )
        });
    out.figures.push((
        "free-chunks",
        figure(
            "Mean free piece of the file",
            "71 % in use",
            "operations",
            "mean free piece, KB",
            series.into(),
        ),
    ));
}

fn figure(title: &str, note: &str, x: &str, y: &str, series: Vec<Series>) -> Figure {
    Figure {
        title: title.into(),
        note: note.into(),
        x: x.into(),
        y: y.into(),
        series,
        ..Figure::default()
    }
}

fn utilisation(title: &str, series: Vec<Series>) -> Figure {
    figure(
        title,
        "a million operations on 2 GB; modelled ST15150WC and UFS",
        "space in use, %",
        "completion time, seconds",
        series,
    )
}
