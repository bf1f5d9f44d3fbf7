//! S4: the Polygraph mix of the Foxy paper, and S6: the same mix at rising offered load.

use std::time::Duration;

use serde_json::Value;

use super::super::lengths::text;
use super::super::load::{Run, number};
use super::super::results::Cell;
use super::super::servers::{Kind, Server};
use super::LIMIT;

/// Document hit ratio 0.4, Zipf 0.6, exponential sizes of mean 5 KB, 20 origins.
const MIX: [&str; 10] = [
    "--workload",
    "polygraph",
    "--recurrence",
    "0.4",
    "--alpha",
    "0.6",
    "--sizes",
    "exp:5000",
    "--servers",
    "20",
];
/// The origin waits so long before it answers.
const DELAY: &str = "&l=100";

fn started(run: &Run, kind: Kind, label: &str) -> Result<Server, String> {
    let mut server = Server::new(&run.host, &run.foxy, kind, label, run.origin.port, false)?;
    server.group.limit(Some(LIMIT))?;
    server.start()?;
    Ok(server)
}

/// S4. Each part has a seed of its own, so that no object of one is a hit in the next.
pub(super) fn run(run: &Run, kind: Kind) -> Result<Cell, String> {
    let server = started(run, kind, "s4")?;
    let mut cell = Cell::new("s4", kind);
    let closed = text(run.lengths.closed);
    let parts: [(&str, &str, &str, Duration); 3] = [
        ("0 ms", "100", "", run.lengths.warm_up),
        ("100 ms", "100", DELAY, run.lengths.warm_up),
        ("1000 conns", "1000", DELAY, run.lengths.warm_up * 2),
    ];
    for (seed, (part, connections, knobs, warm_up)) in parts.into_iter().enumerate() {
        let (seed, warm_up) = ((seed + 1).to_string(), text(warm_up));
        let mut args = MIX.to_vec();
        args.extend([
            "--connections",
            connections,
            "--warm-up",
            &warm_up,
            "--duration",
            &closed,
            "--seed",
            &seed,
            "--knobs",
            knobs,
        ]);
        cell.take(part, &run.load(&server, &args)?);
    }
    cell.set("memory MB", server.memory() as f64 / 1e6);
    cell.set("resident MB", server.resident() as f64 / 1e6);
    server.discard();
    Ok(cell)
}

/// S6. Ends at the second load in a row that is not carried.
pub(super) fn sweep(run: &Run, kind: Kind) -> Result<Cell, String> {
    let server = started(run, kind, "s6")?;
    let mut cell = Cell::new("s6", kind);
    let (mut behind, mut best) = (0, 0.0f64);
    for (at, offered) in run.lengths.sweep.iter().enumerate() {
        // Enough for what waits for the origin and a queue as long; a proxy that cannot even
        // accept more is saturated already.
        let connections = (100 + offered / 4).min(3000).to_string();
        let (rate, seed) = (offered.to_string(), (100 + at).to_string());
        let (warm_up, step) = (text(run.lengths.warm_up), text(run.lengths.sweep_step));
        let mut args = MIX.to_vec();
        args.extend([
            "--rate",
            &rate,
            "--connections",
            &connections,
            "--warm-up",
            &warm_up,
            "--duration",
            &step,
            "--seed",
            &seed,
            "--knobs",
            DELAY,
        ]);
        let report = run.load(&server, &args)?;
        let part = format!("{offered}");
        if number(&report, &["answers"]).unwrap_or(0.0) < 1.0 && at > 0 {
            cell.note(format!("no answers at {offered}/s in time"));
            break;
        }
        cell.take(&part, &report);
        cell.set(&format!("{part} response ms"), mean(&report));
        let origin = number(&report, &["origin", "bytes"]).unwrap_or(0.0);
        let bytes = number(&report, &["bytes"]).unwrap_or(0.0).max(1.0);
        cell.set(&format!("{part} origin share"), origin / bytes);
        let carried = cell.get(&format!("{part} rate")).unwrap_or(0.0);
        best = best.max(carried);
        behind = if carried < 0.92 * f64::from(*offered) {
            behind + 1
        } else {
            0
        };
        if behind == 2 {
            break;
        }
    }
    cell.set("saturation", best);
    server.discard();
    Ok(cell)
}

/// Mean response time of hits and misses together, ms.
fn mean(report: &Value) -> f64 {
    let get = |group: &str, what: &str| number(report, &[group, what]).unwrap_or(0.0);
    let groups = ["hits", "misses", "unknown"];
    let count: f64 = groups.iter().map(|g| get(g, "count")).sum();
    let total: f64 = groups
        .iter()
        .map(|g| get(g, "count") * get(g, "mean"))
        .sum();
    total / count.max(1.0) / 1000.0
}
