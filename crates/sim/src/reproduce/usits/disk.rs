//! Repeats the figures that only the journal version of the USITS'99 paper (WebCoSM) contains. They show
//! activity inside the drive and the file.
//!
//! In the journal, figures 8 and 9 show positions of the head over time. Figure 13 shows fragmentation maps.
//! Figure 14 shows free pieces over time. Figure 15 shows distances of consecutive reads. This part also
//! shows the share of the drive's bandwidth that a run uses.

use super::{BUDDY, MILLION, figure};
use crate::{
    figure::{Figure, Map, Scale, Series},
    layout::LayoutSpec,
    model::Op,
    reproduce::{Claim, Comparison, Conditions, Part, Progress, Section},
    run::{OpStream, RunError, Watched, watch},
};

/// The part on the journal's figures.
pub(in crate::reproduce) const DISK: Part = Part {
    id: "disk",
    title: "What head and file look like from inside",
    about: "WebCoSM (IEEE/ACM Transactions on Networking, 2002), sections 3.3 and 3.5, shows snapshots of \
            the head's positions under BUDDY and under STREAM, the effect of locality buffers on the free \
            space and on the distance of consecutive reads, and the share of the drive's bandwidth that is \
            used in the end.",
    run: all,
};

/// Number of operations before the measurement, as in the published measurement of the free pieces.
const WARM: u64 = 300_000;

fn all(conditions: &Conditions, progress: Progress<'_>) -> Result<Section, RunError> {
    let specs = [
        BUDDY,
        LayoutSpec::Stream,
        LayoutSpec::Packetizer,
        LayoutSpec::Loc(128),
        LayoutSpec::LazyLoc(128),
    ];
    let config = |spec| conditions.config(spec, 2.0, MILLION);
    let ops = OpStream::make(&config(LayoutSpec::Stream))?;
    let mut seen = Vec::new();
    for spec in specs {
        progress("head and file", seen.len(), specs.len());
        seen.push(watch(&config(spec), &ops, CELLS)?);
    }
    let [buddy, stream, without, with, best] = seen.as_slice() else {
        return Err(RunError::Nothing);
    };
    let mut out = Section::default();
    efficiency(best, &mut out);
    heads(buddy, stream, &mut out);
    maps(without, with, &mut out);
    free_pieces(without, with, &mut out);
    distances(without, with, &mut out);
    add_notes(&mut out);
    out.runs = seen.into_iter().map(|w| w.result).collect();
    Ok(out)
}

fn efficiency(best: &Watched, out: &mut Section) {
    let run = &best.result;
    let mut claim = |what: &str, published, ours, comparison| {
        let claim = Claim::new("efficiency", what, published, ours, comparison);
        out.claims.push(claim);
    };
    let all = run.of_sequential * run.device_bytes_per_byte;
    claim(
        "sequential write, MB/s",
        4.7,
        run.sequential_mb_per_s,
        Comparison::Input,
    );
    claim(
        "of sequential with 128 buffers, % (all bytes moved)",
        78.0,
        100.0 * all,
        Comparison::Band,
    );
    claim(
        "of sequential with 128 buffers, % (object bytes)",
        0.0,
        100.0 * run.of_sequential,
        Comparison::Band,
    );
    let moved = run.mb_per_s * run.seconds * run.device_bytes_per_byte / 1e3;
    claim(
        "bytes moved with 128 buffers, GB",
        7.6,
        moved,
        Comparison::Band,
    );
}

/// Share of a run's time that a snapshot of the head's positions covers.
const SNAPSHOT: f64 = 0.01;

fn heads(buddy: &Watched, stream: &Watched, out: &mut Section) {
    for (stem, name, watched, caption) in [
        (
            "head-buddy",
            "Figure 8 of the journal: the head under BUDDY",
            buddy,
            "Objects of one size lie together, so the head runs between the class files.",
        ),
        (
            "head-stream",
            "Figure 9 of the journal: the head under STREAM",
            stream,
            "The line is the cursor, whose pages are read before they are written. Other points: object \
             reads.",
        ),
    ] {
        let (from, length) = (
            watched.result.seconds * 0.7,
            watched.result.seconds * SNAPSHOT,
        );
        let of = |op: Op| {
            let window = watched.head.iter().filter(|h| h.op == op);
            let window = window.filter(|h| (from..from + length).contains(&h.seconds));
            window
                .map(|h| (h.seconds - from, h.at as f64 / 1e9))
                .collect()
        };
        let series = vec![
            Series::new("reads", of(Op::Read)).as_dots(),
            Series::new("writes", of(Op::Write)).as_dots(),
        ];
        let drawn = Figure {
            y_most: Some(4.3),
            ..figure(
                name,
                "one hundredth of the run, from 70 % of it on; modelled ST15150WC and UFS",
                "seconds",
                "place on the drive, GB",
                series,
            )
        };
        out.draw(stem, caption, drawn);
    }
}

/// Number of cells of a fragmentation map.
const CELLS: usize = 160 * 120;
const ROWS: usize = 120;

fn maps(without: &Watched, with: &Watched, out: &mut Section) {
    let map = |name: &str, watched: &Watched| Map {
        name: name.into(),
        rows: ROWS,
        cells: watched.usage.clone(),
    };
    let drawn = Figure {
        maps: vec![
            map("without buffers", without),
            map("with 128 buffers of 64 KB", with),
        ],
        ..figure(
            "Figure 13 of the journal: the file at the end of the run",
            "dark: in use; column after column from the lower left",
            "",
            "",
            Vec::new(),
        )
    };
    let caption = "The runs without and with buffers leave one band of free space before the cursor. With \
                   buffers, fewer objects remain in the band.";
    out.draw("fragmentation", caption, drawn);
}

fn free_pieces(without: &Watched, with: &Watched, out: &mut Section) {
    let both = [("without buffers", without), ("128 buffers of 64 KB", with)];
    let series = both.map(|(name, watched)| {
        let samples = &watched.result.samples;
        let warm = samples.iter().filter(|s| s.ops > WARM);
        let points = warm.map(|s| (s.ops as f64, s.free_chunk / 1e3));
        Series::new(name, points.collect())
    });
    let series = if series.iter().all(|s| s.points.is_empty()) {
        both.map(|(name, w)| {
            let points = w
                .result
                .samples
                .iter()
                .map(|s| (s.ops as f64, s.free_chunk / 1e3));
            Series::new(name, points.collect())
        })
    } else {
        series
    };
    let end = |w: &Watched| w.result.free_chunk / 1e3;
    let claim = |what: &str, published, ours| {
        Claim::new(
            "journal figure 14",
            what,
            published,
            ours,
            Comparison::Shape,
        )
    };
    let piece = claim(
        "mean free piece with 128 buffers at the end, KB",
        145.0,
        end(with),
    );
    let times = claim(
        "with over without, at the end, times (above 1)",
        1.0,
        end(with) / end(without),
    );
    out.claims.extend([piece, times.at_least()]);
    let drawn = Figure {
        y_scale: Scale::Log,
        ..figure(
            "Figure 14 of the journal: mean free piece of the file",
            "71 % in use; after 300,000 operations",
            "operations",
            "mean free piece, KB",
            series.into(),
        )
    };
    let caption = "During the first pass over the file, one large piece is free. Compare the lines after \
                   that pass.";
    out.draw("free-pieces", caption, drawn);
}

fn distances(without: &Watched, with: &Watched, out: &mut Section) {
    let (a, b) = (&without.result, &with.result);
    let mut claim = |what: &str, published, ours| {
        out.claims.push(Claim::new(
            "journal figure 15",
            what,
            published,
            ours,
            Comparison::Shape,
        ));
    };
    claim(
        "reads within 10 blocks without buffers, %",
        6.0,
        100.0 * a.read_within_10,
    );
    claim(
        "reads within 10 blocks with 128 buffers, %",
        17.0,
        100.0 * b.read_within_10,
    );
    claim(
        "with over without, within 10 blocks, times",
        8_400.0 / 3_200.0,
        b.read_within_10 / a.read_within_10,
    );
    claim(
        "with over without, very next block, times",
        1_885.0 / 611.0,
        b.read_next / a.read_next,
    );
    let share = |name: &str, run: &crate::run::RunResult| {
        let all = run.read_pairs.max(1) as f64;
        let mut sum = 0.0;
        let points = run
            .read_distances
            .iter()
            .enumerate()
            .map(|(bucket, count)| {
                sum += *count as f64;
                (f64::from(1u32 << bucket.min(31)), 100.0 * sum / all)
            });
        Series::new(name, points.collect())
    };
    let drawn = Figure {
        x_scale: Scale::Log,
        ..figure(
            "Figure 15 of the journal: distance of consecutive reads",
            "share of reads that begin nearer than so many blocks to the end of the one before",
            "distance, blocks of 512 bytes",
            "share of reads, %",
            vec![
                share("without buffers", a),
                share("128 buffers of 64 KB", b),
            ],
        )
    };
    let caption = "Buffers place objects that are read together near each other.";
    out.draw("read-distances", caption, drawn);
}

fn add_notes(out: &mut Section) {
    out.note(
        "Read distances",
        "Read distances follow from the published arrival rate: 10,089 clients with 5.86 requests a second \
         leave few other requests between the objects of a page. Reads of the very next block (published: \
         611 and 1,885 times) are more frequent here, because the objects of a generated page are requested \
         exactly in the order in which they were written. Browsers with four connections do not keep this \
         order exactly.",
    );
    out.note(
        "Free pieces",
        "The decimal point of the published 145 KB may be lost in print. Our curves begin with one free \
         piece of some gigabytes, and fall until the cursor has passed the complete file once.",
    );
    out.note(
        "Share of the bandwidth",
        "The published 78 % are 3.7 of 4.7 MB/s. The rate of 3.7 MB/s follows from 7.6 GB in 2,020 seconds. \
         The objects that were read and written have 3.9 GB, so the 7.6 GB must be all bytes that the drive \
         moved. Our drive moves 8.4 GB in about the same time, because a complete page is read and written \
         also if it contains objects of two buffers. With 7.6 GB the share would be 79 %.",
    );
    out.because("journal figure 14", &[""], "Free pieces");
    out.because("journal figure 15", &[""], "Read distances");
}
