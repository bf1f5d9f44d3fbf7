//! The figures for the results of `bench peers`: the CPU time per request, the requests per second, and three
//! curves over the offered load, as in figures 18 to 20 of the Foxy paper.

use std::path::Path;

use foxy_sim::figure::{Figure, Scale, Series};

use super::results::{Results, Row};
use super::servers::{KINDS, Kind, LAYOUTS};

const BARS: [(&str, &str, &str); 4] = [
    ("s1", "closed", "S1 memory hits"),
    ("s2", "closed", "S2 disk hits"),
    ("s3", "all", "S3 misses"),
    ("s4", "0 ms", "S4 mix"),
];
/// A measurement with rising load, which is drawn as in figures 18 to 20 of the Foxy paper.
struct Sweep {
    scenario: &'static str,
    stem: &'static str,
    title: &'static str,
    note: &'static str,
    x_scale: Scale,
    /// True if response times differ by more than a factor of ten. Then their axis is logarithmic.
    spread: bool,
}

const SWEEPS: [Sweep; 2] = [
    Sweep {
        scenario: "s6",
        stem: "peers",
        title: "Polygraph mix at rising load, one core",
        note: "Document hit ratio 40 %, Zipf 0.6, mean 5 KB, origin 100 ms; open loop, times from the intended moment",
        x_scale: Scale::Linear,
        spread: true,
    },
    Sweep {
        scenario: "s7",
        stem: "slow",
        title: "Polygraph mix at rising load, a drive of 2000",
        note: "Document hit ratio 40 %, Zipf 0.6, mean 5 KB, origin 1 s, 128 MiB for contents; drive: 120 reads and 120 writes, 20 MB a second each",
        x_scale: Scale::Log,
        spread: false,
    },
];
/// Each curve of a measurement: end of the file's name, value, label of the axis, scale.
const CURVES: [(&str, &str, &str, Scale); 3] = [
    ("throughput", "rate", "answers per second", Scale::Linear),
    (
        "response",
        "response ms",
        "mean response time, ms",
        Scale::Log,
    ),
    (
        "origin",
        "origin share",
        "bytes from the origin per byte sent",
        Scale::Linear,
    ),
];

/// Draws the figures for which there are results, as SVG and PNG.
pub(super) fn save(results: &Results, folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for (file, value, title, note) in [
        (
            "peers-cpu",
            "cpu",
            "CPU per request, us",
            "User and kernel time of the proxy's processes",
        ),
        (
            "peers-rate",
            "rate",
            "Requests per second, one core",
            "Closed loop; load and origin on another core",
        ),
    ] {
        draw(&bars(results, value, title, note), &folder.join(file))?;
    }
    for sweep in &SWEEPS {
        for (file, value, axis, scale) in CURVES {
            let stem = folder.join(format!("{}-{file}", sweep.stem));
            draw(&curves(results, sweep, value, axis, scale), &stem)?;
        }
    }
    Ok(())
}

fn draw(figure: &Figure, stem: &Path) -> Result<(), String> {
    if figure.series.iter().all(|s| s.points.is_empty()) {
        return Ok(());
    }
    figure
        .save(stem)
        .map(|_| ())
        .map_err(|e| format!("{}: {e}", stem.display()))
}

fn row<'a>(results: &'a Results, scenario: &'a str, kind: Kind) -> Option<&'a Row> {
    results.of(scenario).find(|c| c.proxy == kind.name())
}

fn bars(results: &Results, what: &str, title: &str, note: &str) -> Figure {
    let present: Vec<_> = BARS
        .iter()
        .filter(|(scenario, ..)| results.of(scenario).next().is_some())
        .collect();
    let series = KINDS
        .into_iter()
        .filter(|k| k.is_proxy() && *k != Kind::FoxyReverse);
    let series = series.filter_map(|kind| {
        let value = |(scenario, part, _): &&(&str, &str, &str)| {
            row(results, scenario, kind)?.get(&format!("{part} {what}"))
        };
        let values: Vec<_> = present.iter().map(value).collect();
        let points = values
            .iter()
            .enumerate()
            .map(|(at, v)| (at as f64, v.unwrap_or(0.0)));
        let any = values.iter().any(Option::is_some);
        any.then(|| Series::new(kind.name(), points.collect()))
    });
    Figure {
        title: title.into(),
        note: note.into(),
        y: title.into(),
        labels: present
            .iter()
            .map(|(.., label)| (*label).to_owned())
            .collect(),
        series: series.collect(),
        ..Figure::default()
    }
}

fn curves(results: &Results, sweep: &Sweep, what: &str, axis: &str, scale: Scale) -> Figure {
    let series = KINDS.into_iter().chain(LAYOUTS).filter_map(|kind| {
        let row = row(results, sweep.scenario, kind)?;
        let suffix = format!(" {what}");
        let point = |(name, value): (&String, &f64)| {
            Some((name.strip_suffix(&suffix)?.parse::<f64>().ok()?, *value))
        };
        let mut points: Vec<_> = row.values.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Some(Series::new(kind.name(), points))
    });
    Figure {
        title: sweep.title.into(),
        note: sweep.note.into(),
        x: "offered requests per second".into(),
        y: axis.into(),
        x_scale: sweep.x_scale,
        y_scale: if sweep.spread { scale } else { Scale::Linear },
        series: series.collect(),
        ..Figure::default()
    }
}
