//! The report of the memory measurement, as text and JSON.

use std::time::Duration;

use serde_json::{Value, json};

use super::row::{Row, mebibytes};
use super::tally::Tally;
use super::watch::Summary;

/// Prints the title of a table.
pub(super) fn print_title(title: &str) {
    println!("{title}   (sizes in MiB, times in ms)");
    println!(
        "  {:<12}{:>8}{:>9}{:>9}{:>9}{:>7}{:>15}{:>15}{:>8}{:>8}{:>8}{:>8}",
        "load",
        "budget",
        "resident",
        "sockets",
        "sum",
        "ratio",
        "beside failed",
        "own failed",
        "p50",
        "p99",
        "health",
        "after"
    );
}

/// Prints a line of the report, and the remarks about this line.
pub(super) fn print_row(row: &Row) {
    let size = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
    let time = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1000.0);
    let share = |tally: &Tally| format!("{}/{}", tally.failed(), tally.failed() + tally.right);
    println!(
        "  {:<12}{:>8}{:>9}{:>9}{:>9}{:>7.2}{:>15}{:>15}{:>8}{:>8}{:>8}{:>8}",
        row.name,
        size(row.budget),
        size(row.peaks.resident),
        size(row.peaks.sockets),
        size(row.peaks.sum),
        row.peaks.sum as f64 / row.budget.max(1) as f64,
        share(&row.watched.tally),
        row.own.as_ref().map_or_else(|| "-".to_owned(), share),
        time(row.watched.p50),
        time(row.watched.p99),
        time(row.health.max),
        size(row.after),
    );
    println!(
        "      before: resident {}, peak {}; at the peak: anonymous {}, files {}, {} sockets; {:.1} s",
        mebibytes(row.before),
        mebibytes(row.peak_before),
        mebibytes(row.peaks.memory.anonymous),
        mebibytes(row.peaks.memory.files),
        row.peaks.open.count,
        row.took.as_secs_f64(),
    );
    let own = row.own.iter().map(|tally| ("own clients", tally.text()));
    let parts = [
        ("held", row.others.text()),
        ("notes", row.notes.join(", ")),
        (
            "group",
            row.group_peak
                .map(|peak| format!("peak {}", mebibytes(peak)))
                .unwrap_or_default(),
        ),
    ];
    for (name, text) in own.chain(parts) {
        if !text.is_empty() {
            println!("      {name}: {text}");
        }
    }
    for broken in row.broken() {
        println!("      BROKEN {broken}");
    }
    if let Some(slow) = row.slow() {
        println!("      SLOW {slow}");
    }
}

fn tally_json(tally: &Tally) -> Value {
    let faults: serde_json::Map<_, _> = tally
        .faults
        .iter()
        .map(|(fault, count)| (fault.to_string(), json!(count)))
        .collect();
    json!({
        "right": tally.right, "failed": tally.failed(), "faults": faults, "text": tally.text(),
    })
}

fn summary_json(summary: &Summary) -> Value {
    let time = |time: Duration| json!(time.as_secs_f64() * 1000.0);
    json!({
        "requests": tally_json(&summary.tally), "p50_ms": time(summary.p50),
        "p99_ms": time(summary.p99), "max_ms": time(summary.max),
    })
}

/// A line of the report as JSON; sizes are in bytes.
pub(super) fn row_json(row: &Row) -> Value {
    let peaks = &row.peaks;
    json!({
        "load": row.name, "budget": row.budget, "grouped": row.grouped,
        "before": row.before, "peak_before": row.peak_before,
        "peak_resident": peaks.resident, "peak_sockets": peaks.sockets, "peak_sum": peaks.sum,
        "ratio": peaks.sum as f64 / row.budget.max(1) as f64,
        "at_peak": {
            "resident": peaks.memory.resident, "anonymous": peaks.memory.anonymous,
            "files": peaks.memory.files, "sockets": peaks.open.bytes,
            "socket_count": peaks.open.count,
        },
        "samples": peaks.samples, "after": row.after, "group_peak": row.group_peak,
        "beside": summary_json(&row.watched), "health": summary_json(&row.health),
        "own": row.own.as_ref().map(tally_json), "held": row.others.text(), "end": row.end,
        "seconds": row.took.as_secs_f64(), "notes": row.notes, "broken": row.broken(),
        "slow": row.slow(),
    })
}
