//! S1: hits in memory. 1000 objects of 4 KiB, Zipf exponent 0.6, all in memory.

use super::super::lengths::text;
use super::super::load::Run;
use super::super::results::Row;
use super::super::servers::{Kind, Server, Shape};

pub(super) fn run(run: &Run, kind: Kind) -> Result<Row, String> {
    let mut server = Server::new(run, kind, &Shape::new(run, "s1"))?;
    server.start()?;
    let mut row = Row::new("s1", kind);
    let objects: &[&str] = if kind == Kind::Floor {
        &["--objects", "1", "--servers", "1", "--sizes", "4KiB"]
    } else {
        &["--objects", "1000", "--sizes", "4KiB", "--alpha", "0.6"]
    };
    if kind != Kind::Floor {
        let all = [objects, &["--workload", "scan", "--requests", "1000"]].concat();
        // All objects are requested twice, because some servers keep an object in memory only after its
        // second request.
        for _ in 0..2 {
            run.load(&server, &all)?;
        }
    }
    let (warm_up, closed, open) = (
        text(run.lengths.warm_up),
        text(run.lengths.closed),
        text(run.lengths.open),
    );
    let args = [
        "--connections",
        "100",
        "--warm-up",
        &warm_up,
        "--duration",
        &closed,
    ];
    row.take("closed", &run.load(&server, &[objects, &args].concat())?);
    let args = [
        "--connections",
        "100",
        "--rate",
        "5000",
        "--warm-up",
        &warm_up,
        "--duration",
        &open,
    ];
    row.take("open", &run.load(&server, &[objects, &args].concat())?);
    row.set("memory MB", server.memory() as f64 / 1e6);
    row.set("resident MB", server.resident() as f64 / 1e6);
    server.discard();
    Ok(row)
}
