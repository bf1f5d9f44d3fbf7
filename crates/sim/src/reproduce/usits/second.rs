//! Table 2 on the other reading of the object sizes.

use super::{BUDDY, MILLION, Progress, figure, runs};
use crate::{
    figure::{Figure, Series},
    layout::LayoutSpec,
    reproduce::{Claim, Comparison, Conditions, Reproduction},
    run::{RunError, RunResult},
};

/// Table 2 once more with objects as large as the bytes that were moved imply: 7.6 GB in
/// 720,125 reads and writes are 10.5 KB each, twice what the number of live objects implies.
pub(super) fn second_stream(
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
