//! Results of cache systems as a table.

use super::{SystemConfig, SystemResult};
use crate::report::{Align, Table};

/// A table with a row for each run.
#[must_use]
pub fn systems_table(configs: &[SystemConfig], results: &[SystemResult]) -> Table {
    let left = ("system", Align::Left);
    let columns = [
        "memory MiB",
        "disk MiB",
        "hit %",
        "byte hit %",
        "of memory %",
        "read ms",
        "write ms",
        "I/Os per request",
        "I/O ms",
        "hours",
        "requests/s",
        "prefetch hit %",
        "tables MiB",
        "stopped",
    ];
    let columns: Vec<_> = std::iter::once(left)
        .chain(columns.map(|c| (c, Align::Right)))
        .collect();
    let mut table = Table::new(&columns);
    for (config, r) in configs.iter().zip(results) {
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        let stopped = if r.stopped {
            format!("at {}", r.requests)
        } else {
            "-".into()
        };
        table.row([
            config.label(),
            (config.ram >> 20).to_string(),
            (config.disk >> 20).to_string(),
            percent(r.hit_ratio),
            percent(r.byte_hit_ratio),
            percent(r.ram_share),
            format!("{:.2}", r.read_ms),
            format!("{:.2}", r.write_ms),
            format!("{:.3}", r.ios_per_request),
            format!("{:.2}", r.io_ms),
            format!("{:.2}", r.seconds / 3600.0),
            format!("{:.0}", r.requests_per_s),
            percent(r.prefetch_hit_ratio),
            format!("{:.1}", r.table_bytes as f64 / f64::from(1 << 20)),
            stopped,
        ]);
    }
    table
}
