//! Repeats table 2 with each of the two write calls, and with shared files that exist beforehand or that
//! grow.

use super::{BUDDY, MILLION, runs};
use crate::{
    layout::{Calls, LayoutSpec},
    report::{Align, Table},
    reproduce::{Conditions, Part, Progress, Section, claim::digits},
    run::{RunConfig, RunError, RunResult},
};

/// The part on all four combinations of write call and state of the shared files.
pub(in crate::reproduce) const CALLS: Part = Part {
    id: "calls",
    title: "Table 2 by the calls that write",
    about: "The journal version labels the arrow from its simulator to the disk \"file access calls: \
            mmap/write, lseek, read\". The papers do not say which layout used which call, or which files \
            existed before the first operation. So the tables show every layout whose objects share files, \
            in all four combinations.",
    run: all,
};

/// The combinations in the order of the table's columns, with the names of these columns.
const WAYS: [(&str, Calls, bool); 4] = [
    ("write, grows", Calls::Write, false),
    ("write, there", Calls::Write, true),
    ("mmap, grows", Calls::Mmap, false),
    ("mmap, there", Calls::Mmap, true),
];

fn all(conditions: &Conditions, progress: Progress<'_>) -> Result<Section, RunError> {
    let mut out = Section::default();
    let rows = [
        ("BUDDY, 1 GB", conditions.config(BUDDY, 1.0, 300_000), 133.0),
        ("BUDDY, 2 GB", conditions.config(BUDDY, 2.0, MILLION), 145.0),
        stream(conditions, "STREAM", LayoutSpec::Stream, 295.0),
        stream(
            conditions,
            "STREAM-PACKETIZER",
            LayoutSpec::Packetizer,
            358.0,
        ),
        stream(conditions, "LAZY-READS", LayoutSpec::Lazy(10), 396.0),
        stream(conditions, "LOC:128", LayoutSpec::Loc(128), 460.0),
        stream(
            conditions,
            "LAZY-READS-LOC:128",
            LayoutSpec::LazyLoc(128),
            495.0,
        ),
    ];
    let configs: Vec<_> = rows
        .iter()
        .flat_map(|(_, config, _)| WAYS.map(|(_, calls, there)| with(config, calls, there)))
        .collect();
    let results = runs(conditions, progress, "calls", &configs)?;
    let names = rows
        .each_ref()
        .map(|(name, _, published)| (*name, *published));
    table(
        "Operations per second",
        &names,
        &results,
        |r| r.ops_per_s,
        &mut out,
    );
    let moved = |r: &RunResult| r.mb_per_s * r.seconds * r.device_bytes_per_byte / 1e3;
    let of_bytes = names.map(|(name, _)| {
        (
            name,
            if name == "LAZY-READS-LOC:128" {
                7.6
            } else {
                0.0
            },
        )
    });
    table(
        "GB to and from the drive",
        &of_bytes,
        &results,
        moved,
        &mut out,
    );
    out.note(
        "Which combination is the main one",
        "In the main combination the STREAM family writes through a mapping into an existing file, and \
         BUDDY's class files grow and are written by write(). Decision 130 gives the reasons. The decision \
         was made before this table was computed. But some results of the mapped calls were already known \
         from an audit. A mapping cannot grow a file: in the columns \"mmap, grows\" bytes beyond the end of \
         the file are written by write(). The published value of BUDDY at 2 GB is derived from the factors \
         \"2 times\" and \"2.5 times\" of figure 6.",
    );
    out.runs = results;
    Ok(out)
}

fn stream(
    conditions: &Conditions,
    name: &'static str,
    spec: LayoutSpec,
    published: f64,
) -> (&'static str, RunConfig, f64) {
    (name, conditions.config(spec, 2.0, MILLION), published)
}

fn with(config: &RunConfig, calls: Calls, there: bool) -> RunConfig {
    RunConfig {
        calls,
        file_exists: there,
        ..config.clone()
    }
}

/// A table with a row for each layout and a column for each combination.
fn table(
    heading: &str,
    rows: &[(&str, f64)],
    results: &[RunResult],
    value: impl Fn(&RunResult) -> f64,
    out: &mut Section,
) {
    let mut columns = vec![("layout", Align::Left), ("published", Align::Right)];
    columns.extend(WAYS.map(|(name, ..)| (name, Align::Right)));
    let mut table = Table::new(&columns);
    for ((name, published), results) in rows.iter().zip(results.chunks(WAYS.len())) {
        let published = if *published > 0.0 {
            digits(*published)
        } else {
            "-".to_owned()
        };
        let ours = results.iter().map(|r| digits(value(r)));
        table.row([(*name).to_owned(), published].into_iter().chain(ours));
    }
    out.tables.push((heading.to_owned(), table));
}
