//! Tables 1 and 2 and figures 6 to 8: the STREAM family on 2 GB over utilisation.

use super::{BUDDY, MILLION, Progress, figure, runs};
use crate::{
    figure::{Figure, Series},
    layout::LayoutSpec,
    reproduce::{Claim, Comparison, Conditions, Reproduction},
    run::{RunConfig, RunError, RunResult},
};

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

/// The runs of a million operations on 2 GB.
pub(super) struct Large {
    utilisations: Vec<f64>,
    pub(super) buddy: RunResult,
    /// By [`CURVES`], then by utilisation.
    pub(super) curves: Vec<Vec<RunResult>>,
}

impl Large {
    pub(super) fn run(conditions: &Conditions, progress: Progress<'_>) -> Result<Self, RunError> {
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

pub(super) fn table_2(small: &[RunResult], large: &Large, out: &mut Reproduction) {
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

pub(super) fn figure_6(large: &Large, out: &mut Reproduction) {
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

pub(super) fn figure_7(large: &Large, out: &mut Reproduction) {
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

pub(super) fn figure_8(large: &Large, out: &mut Reproduction) {
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
pub(super) fn table_1(large: &Large, out: &mut Reproduction) {
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
pub(super) fn journal(large: &Large, out: &mut Reproduction) {
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

fn utilisation(title: &str, series: Vec<Series>) -> Figure {
    figure(
        title,
        "a million operations on 2 GB; modelled ST15150WC and UFS",
        "space in use, %",
        "completion time, seconds",
        series,
    )
}
