//! The three scenarios that use one store. S3: misses that are stored. S2: hits on disk of the objects that
//! S3 stored. S5: restarts with these objects.

use std::path::PathBuf;

use foxy_base::{Clock, MonoTime, SystemClock};

use super::super::host::{DeviceCounts, pause, sync};
use super::super::lengths::text;
use super::super::load::Run;
use super::super::results::Row;
use super::super::servers::{Kind, Server, Shape};
use super::{Keep, LIMIT, Scenario, restart};

/// A server with a full store.
pub(super) struct Filled {
    pub(super) server: Server,
    /// Path of the record with the stored objects and their times.
    pub(super) record: PathBuf,
    /// Time when the server was first started.
    pub(super) begun: MonoTime,
    pub(super) clock: SystemClock,
}

pub(super) fn run(
    run: &Run,
    kind: Kind,
    scenarios: &[Scenario],
    keep: Keep<'_>,
) -> Result<(), String> {
    let server = Server::new(run, kind, &Shape::on_disk(run, "disk"))?;
    let clock = SystemClock::default();
    let mut filled = Filled {
        record: run.host.scratch.join(format!("{kind}.record")),
        begun: clock.mono(),
        clock,
        server,
    };
    filled.server.start()?;
    // S3 always runs, because it fills the store. If S3 was not requested, or if its row exists already
    // (`--resume`), the row is dropped.
    let row = misses(run, &mut filled)?;
    if scenarios.contains(&Scenario::S3) {
        keep(row)?;
    } else if let Some(problem) = row.problems.first() {
        return Err(format!("filling the store: {problem}"));
    }
    if scenarios.contains(&Scenario::S2) {
        keep(hits(run, &mut filled)?)?;
    }
    if scenarios.contains(&Scenario::S5) {
        keep(restart::run(run, &mut filled)?)?;
    }
    filled.server.discard();
    Ok(())
}

/// Runs S3.
fn misses(run: &Run, filled: &mut Filled) -> Result<Row, String> {
    let server = &filled.server;
    let mut row = Row::new("s3", server.kind);
    let empty = server.memory();
    sync();
    let before = run.host.device();
    let objects = run.lengths.objects.to_string();
    let (limit, record) = (
        text(run.lengths.fill_limit),
        filled.record.to_string_lossy(),
    );
    let report = run.load(
        server,
        &[
            "--workload",
            "scan",
            "--objects",
            &objects,
            "--sizes",
            "exp:8000",
            "--connections",
            "100",
            "--duration",
            &limit,
            "--record",
            &record,
        ],
    )?;
    let full = server.memory();
    // The proxy gets time to write the objects that are still in its buffers.
    pause(run.lengths.warm_up * 3);
    sync();
    let after = run.host.device();
    row.take("all", &report);
    written(
        &mut row,
        &before,
        &after,
        report["bytes"].as_f64().unwrap_or(0.0),
    );
    let stored = row.get("all answers").unwrap_or(0.0).max(1.0);
    row.set("memory empty MB", empty as f64 / 1e6);
    row.set("memory full MB", full as f64 / 1e6);
    row.set("resident MB", server.resident() as f64 / 1e6);
    row.set("B/object", full.saturating_sub(empty) as f64 / stored);
    if matches!(server.kind, Kind::Foxy)
        && let Some(bytes) = super::super::servers::foxy_index_bytes(server)
    {
        row.set("index B/object", bytes / stored);
    }
    if stored + 0.5 < run.lengths.objects as f64 {
        row.note(format!(
            "stored {stored:.0} objects before the time was over"
        ));
    }
    Ok(row)
}

fn written(row: &mut Row, before: &DeviceCounts, after: &DeviceCounts, bodies: f64) {
    let bytes = after.written.saturating_sub(before.written) as f64;
    let writes = after.writes.saturating_sub(before.writes) as f64;
    let answers = row.get("all answers").unwrap_or(0.0).max(1.0);
    row.set("write amplification", bytes / bodies.max(1.0));
    row.set("writes per 1000", writes * 1000.0 / answers);
    row.set("KB per write", bytes / 1000.0 / writes.max(1.0));
}

/// Runs S2.
fn hits(run: &Run, filled: &mut Filled) -> Result<Row, String> {
    let server = &filled.server;
    let mut row = Row::new("s2", server.kind);
    sync();
    server.group.limit(Some(LIMIT))?;
    run.host.drop_caches()?;
    let objects = run.lengths.objects.to_string();
    let same = ["--objects", objects.as_str(), "--sizes", "exp:8000"];
    let (closed, open, warm_up) = (
        text(run.lengths.closed),
        text(run.lengths.open),
        text(run.lengths.warm_up),
    );
    // Reads are counted for the whole device. Bytes are counted only for the proxy's processes.
    let before = (run.host.device().reads, server.group.bytes_read());
    let args = [
        "--workload",
        "scan",
        "--order",
        "7",
        "--connections",
        "32",
        "--duration",
        &closed,
    ];
    let report = run.load(server, &[&same[..], &args].concat())?;
    let after = (run.host.device().reads, server.group.bytes_read());
    row.take("closed", &report);
    let hit_ratio = row.get("closed hit ratio").unwrap_or(0.0);
    let hits = (row.get("closed answers").unwrap_or(0.0) * hit_ratio).max(1.0);
    row.set("reads per hit", (after.0 - before.0) as f64 / hits);
    row.set("KB per hit", (after.1 - before.1) as f64 / 1000.0 / hits);
    let args = [
        "--workload",
        "popular",
        "--alpha",
        "0",
        "--rate",
        "500",
        "--connections",
        "32",
        "--warm-up",
        &warm_up,
        "--duration",
        &open,
    ];
    row.take("open", &run.load(server, &[&same[..], &args].concat())?);
    row.set("resident MB", server.resident() as f64 / 1e6);
    server.group.limit(None)?;
    Ok(row)
}
