//! Sends the requests through a memory level and a disk level, and compares the numbers of the resulting disk
//! operations with the published numbers. Repeats figure 2 too.

use super::{MILLION, figure};
use crate::{
    figure::Series,
    levels::{Levels, ratio},
    reproduce::{Claim, Comparison, Conditions, Part, Progress, Section},
    run::RunError,
};

/// The part on the cascade (a memory level before a disk level) and figure 2.
pub(in crate::reproduce) const WORKLOAD: Part = Part {
    id: "workload",
    title: "The stream of disk operations",
    about: "USITS'99 sections 3.1 and 3.2: requests of the DEC proxy trace go through 512 MB of memory and a \
            disk of 2 GB, both LRU. The operations that reach the disk are URL-reads, URL-writes and \
            URL-deletes. The trace is not available any more, so a generated stream stands for it, made from \
            what was published about it.",
    run: all,
};

fn all(conditions: &Conditions, progress: Progress<'_>) -> Result<Section, RunError> {
    let mut out = Section::default();
    cascade(conditions, &mut out)?;
    figure_2(conditions, progress, &mut out)?;
    out.note(
        "What the stream was made to meet",
        "The generator was adjusted to published values. These are the counts of the cascade (memory and \
         disk), and 10,089 clients with 5.86 requests a second in total. The sizes of the objects were \
         chosen so that 398,165 objects fill the disk of 2 GB. So the rows of the cascade show only that the \
         input is right; they show nothing about the layouts. The hits on disk are a ninth fewer than \
         published, because objects that are not in memory are requested again a little too rarely. Figure 2 \
         uses the same stream, five times as long. The published figure has no axes, so the rows of figure 2 \
         use the values in three sentences of the paper.",
    );
    out.because("cascade", &[""], "What the stream was made to meet");
    Ok(out)
}

/// Sends 1,058,206 gets through 512 MB of memory and 2 GB of disk.
fn cascade(conditions: &Conditions, out: &mut Section) -> Result<(), RunError> {
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

/// Number of URL-reads and URL-writes of 5 million gets as a function of the disk size.
fn figure_2(
    conditions: &Conditions,
    progress: Progress<'_>,
    out: &mut Section,
) -> Result<(), RunError> {
    let workload = conditions.dec(5 * MILLION);
    let mut levels: Vec<_> = conditions
        .disks
        .iter()
        .map(|gib| Levels::new(conditions.levels(*gib)))
        .collect();
    let mut ops = Vec::new();
    // One pass over the stream feeds the levels of all disk sizes.
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
    let claim = |what: &str, published, ours| {
        Claim::new("figure 2", what, published, ours, Comparison::Shape)
    };
    let wrote = claim(
        "URL-writes of 5 M gets, millions (about)",
        3.0,
        at_2_gib(&writes),
    );
    let read = claim(
        "URL-reads of 5 M gets, millions (less than)",
        0.5,
        at_2_gib(&reads),
    );
    let both = claim(
        "reads and writes together, millions",
        3.4,
        at_2_gib(&reads) + at_2_gib(&writes),
    );
    out.claims.extend([wrote, read.at_most(), both]);
    let title = "Figure 2: operations of 5 million requests by disk size";
    out.draw(
        "figure-2",
        "Writes dominate, because an object that is not in memory is seldom on disk.",
        figure(
            title,
            "512 MB of memory before the disk; LRU both",
            "disk size, GiB",
            "operations, millions",
            vec![writes, reads],
        ),
    );
    Ok(())
}
