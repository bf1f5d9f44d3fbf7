//! S4: the mix of hits and misses that the benchmark Polygraph generates in the Foxy paper.

use std::time::Duration;

use super::super::lengths::text;
use super::super::load::Run;
use super::super::results::Row;
use super::super::servers::{Kind, Server, Shape};
use super::LIMIT;

/// Document hit ratio 0.4, Zipf exponent 0.6, exponential sizes with mean 5 KB, 20 origins.
pub(super) const MIX: [&str; 10] = [
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
/// The origin waits for 100 ms before it answers.
pub(super) const DELAY: &str = "&l=100";

pub(super) fn started(run: &Run, kind: Kind, label: &str) -> Result<Server, String> {
    let mut server = Server::new(run, kind, &Shape::new(run, label))?;
    server.group.limit(Some(LIMIT))?;
    server.start()?;
    Ok(server)
}

/// Runs S4. Each part has its own seed, so that no object of one part is a hit in the next part.
pub(super) fn run(run: &Run, kind: Kind) -> Result<Row, String> {
    let server = started(run, kind, "s4")?;
    let mut row = Row::new("s4", kind);
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
        row.take(part, &run.load(&server, &args)?);
    }
    row.set("memory MB", server.memory() as f64 / 1e6);
    row.set("resident MB", server.resident() as f64 / 1e6);
    server.discard();
    Ok(row)
}
