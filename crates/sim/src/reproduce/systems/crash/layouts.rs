//! Contents of BUDDY and of the STREAM family after a crash. Their tables are only in memory.
//!
//! The papers compare three methods (WebCoSM, section 4). The first method writes the tables to disk every
//! few minutes (a checkpoint). The second method stores name and size beside each object and scans the disk
//! after a crash. The third method recovers nothing. A run is stopped at random operations. An object is
//! recovered if the method finds it at its position. A checkpoint may contain an entry of an object that was
//! deleted after the checkpoint. Such an entry leads to bytes of another object, and only a name stored
//! beside each object would reveal this.

use std::collections::HashMap;

use foxy_base::Rng;

use super::super::{Conditions, Section};
use crate::{
    layout::{Layout, LayoutSpec, Place},
    levels::{DiskOpKind, ratio},
    model::SimTime,
    report::{Align, Table},
    reproduce::claim::digits,
    run::{OpStream, RunConfig, RunError},
};

const LAYOUTS: [LayoutSpec; 3] = [
    LayoutSpec::Buddy(256),
    LayoutSpec::Packetizer,
    LayoutSpec::LazyLoc(128),
];
/// Times between checkpoints, in minutes.
const EVERY: [f64; 3] = [1.0, 5.0, 15.0];
/// Bytes of a table entry: hash of the name, size, place.
const ENTRY: u64 = 32;
/// Bytes of name and size that are stored beside an object.
const BESIDE: u64 = 64;
const OPS: u64 = 400_000;
const CRASHES: usize = 3;

/// Sums over the crashes with one method.
#[derive(Clone, Copy, Default)]
struct Outcome {
    live: u64,
    back: u64,
    wrong: u64,
    seconds: f64,
    extra: u64,
    written: u64,
}

pub(super) fn all(conditions: &Conditions, out: &mut Section) -> Result<(), RunError> {
    let mut table = Table::new(&[
        ("layout", Align::Left),
        ("way", Align::Left),
        ("objects back, %", Align::Right),
        ("lead to other bytes, %", Align::Right),
        ("seconds", Align::Right),
        ("written for it, % of all", Align::Right),
    ]);
    let config = |layout| conditions.config(layout, 1.0, OPS);
    let ops = OpStream::make(&config(LayoutSpec::Packetizer))?;
    let mut rng = Rng::new(conditions.seed).fork("layouts");
    let mut points: Vec<usize> = (0..CRASHES)
        .map(|_| ops.ops.len() / 2 + rng.below(ops.ops.len() as u64 / 2) as usize)
        .collect();
    points.sort_unstable();
    for layout in LAYOUTS {
        let config = config(layout);
        let sums = one(&config, &ops, &points)?;
        let every = EVERY.map(|minutes| format!("a checkpoint every {minutes} min"));
        let names = every
            .iter()
            .map(String::as_str)
            .chain(["name and size, scan", "nothing"]);
        for (name, sum) in names.zip(sums) {
            table.row([
                layout.to_string(),
                name.to_owned(),
                digits(100.0 * ratio(sum.back, sum.live)),
                digits(100.0 * ratio(sum.wrong, sum.live)),
                digits(sum.seconds / CRASHES as f64),
                digits(100.0 * ratio(sum.extra, sum.written)),
            ]);
        }
    }
    out.tables.push(("After a crash: layouts".into(), table));
    out.note(
        "Layouts",
        "A checkpoint restores the objects that existed when it was made and still exist. The writes after \
         the checkpoint are lost. The checkpoint's entries of objects that were deleted later point to bytes \
         of other objects. Without the name beside each object, such an entry would cause a wrong answer. A \
         scan reads the complete file once, at the sequential rate. It finds all objects that were written \
         from the buffers. Nobody published values for this.",
    );
    Ok(())
}

/// A checkpoint. For each object, it contains the number of the operation that wrote the object.
type Known = HashMap<u64, u32>;

/// Sums for each method, in the order of the table.
fn one(config: &RunConfig, ops: &OpStream, points: &[usize]) -> Result<Vec<Outcome>, RunError> {
    let mut layout = config.build(&ops.ops)?;
    let sequential = config.backend.sequential()?;
    let mut sums = vec![Outcome::default(); EVERY.len() + 2];
    let mut live = Known::new();
    let mut kept: Vec<(SimTime, Known, u64)> = EVERY
        .iter()
        .map(|m| (SimTime::from_secs(60.0 * m), Known::new(), 0))
        .collect();
    let (mut written, mut objects) = (0, 0);
    for (number, op) in ops.ops.iter().enumerate() {
        // If there is no space, the layout refuses the object, and the object is not added to `live`.
        let done = layout.apply(op).is_ok();
        match op.kind {
            DiskOpKind::Write if done => {
                live.insert(op.object, number as u32);
                written += op.size;
                objects += 1;
            }
            DiskOpKind::Delete => {
                live.remove(&op.object);
            }
            _ => {}
        }
        for ((due, known, bytes), minutes) in kept.iter_mut().zip(EVERY) {
            if layout.now() >= *due {
                known.clone_from(&live);
                known.retain(|object, _| on_disk(&*layout, *object));
                *bytes += ENTRY * known.len() as u64;
                *due = layout.now() + SimTime::from_secs(60.0 * minutes);
            }
        }
        if points.contains(&number) {
            let there = live.keys().filter(|o| on_disk(&*layout, **o)).count() as u64;
            for (sum, (_, known, bytes)) in sums.iter_mut().zip(&kept) {
                let back = known.iter().filter(|(o, w)| live.get(o) == Some(w)).count() as u64;
                sum.back += back;
                sum.wrong += known.len() as u64 - back;
                sum.seconds += (known.len() as u64 * ENTRY) as f64 / sequential;
                sum.extra += bytes;
            }
            let scan = &mut sums[EVERY.len()];
            scan.back += there;
            scan.seconds += config.file_bytes() as f64 / sequential;
            scan.extra += objects * BESIDE;
            for sum in &mut sums {
                sum.live += live.len() as u64;
                sum.written += written;
            }
        }
    }
    Ok(sums)
}

fn on_disk(layout: &dyn Layout, object: u64) -> bool {
    matches!(
        layout.place(object),
        Some(Place::Shared { .. } | Place::Own { .. })
    )
}
