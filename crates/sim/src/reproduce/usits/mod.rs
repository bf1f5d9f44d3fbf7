//! USITS'99, "Secondary storage management for web proxies": figures 2 to 8, tables 1 and 2.
//!
//! Conditions (sections 3.2 to 3.6): figures 4 and 5 on a 1 GB disk with 300,000 and 400,000
//! operations; the others on 2 GB with a million. Figures 6 to 8 use one operation stream and
//! vary the file: 2 GB over utilisation. The published "URL-gets/s" of table 2 equal operations
//! over completion time, so operations per second are compared.

mod one_gigabyte;
mod second;
mod two_gigabytes;

use one_gigabyte::{figure_4, figure_5};
use second::second_stream;
use two_gigabytes::{Large, figure_6, figure_7, figure_8, journal, table_1, table_2};

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
