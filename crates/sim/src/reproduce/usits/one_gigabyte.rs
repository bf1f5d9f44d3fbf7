//! Figures 4 and 5: one file for each object, and BUDDY, on 1 GB.

use super::{BUDDY, Progress, figure, runs};
use crate::{
    figure::{Figure, Series},
    layout::LayoutSpec,
    reproduce::{Claim, Comparison, Conditions, Reproduction},
    run::{RunError, RunResult},
};

/// SIMPLE, SQUID, MULTIPLE-DIRS and BUDDY: 300,000 operations on 1 GB.
pub(super) fn figure_4(
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
pub(super) fn figure_5(
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
