//! Results of runs as text: aligned tables, CSV and JSON.

mod table;

pub use table::{Align, Table};

use crate::run::RunResult;

/// A size as text, such as `1.5 GiB`.
pub(crate) fn readable(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(value < 99.95 && value.fract() > 0.04);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A table of runs with the usual columns.
#[must_use]
pub fn runs_table(results: &[RunResult]) -> Table {
    let mut table = Table::new(&[
        ("layout", Align::Left),
        ("drive", Align::Left),
        ("fs", Align::Left),
        ("ops/s", Align::Right),
        ("gets/s", Align::Right),
        ("seconds", Align::Right),
        ("MB/s", Align::Right),
        ("of seq. %", Align::Right),
        ("I/Os per op", Align::Right),
        ("bytes x", Align::Right),
        ("CPU us", Align::Right),
        ("meta %", Align::Right),
        ("busy %", Align::Right),
        ("seek %", Align::Right),
        ("in use %", Align::Right),
        ("free piece KB", Align::Right),
        ("next %", Align::Right),
        ("<=10 %", Align::Right),
        ("refused", Align::Right),
    ]);
    for r in results {
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        table.row([
            r.layout.clone(),
            r.drive.clone(),
            r.fs.clone(),
            format!("{:.1}", r.ops_per_s),
            format!("{:.1}", r.gets_per_s),
            format!("{:.0}", r.seconds),
            format!("{:.2}", r.mb_per_s),
            percent(r.of_sequential),
            format!("{:.3}", r.device_ios_per_op),
            format!("{:.2}", r.device_bytes_per_byte),
            format!("{:.1}", r.cpu_us_per_op),
            percent(r.metadata_share),
            percent(r.busy),
            percent(r.seeking),
            percent(r.utilisation),
            format!("{:.1}", r.free_chunk / 1e3),
            percent(r.read_next),
            percent(r.read_within_10),
            r.refused.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_a_row_and_every_column_a_value() {
        let runs = vec![
            RunResult {
                layout: "stream".into(),
                ops_per_s: 295.04,
                ..Default::default()
            };
            2
        ];
        let csv = runs_table(&runs).csv();
        let lines: Vec<_> = csv.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("stream,,,295.0,"));
        assert!(lines.iter().all(|l| l.split(',').count() == 19));
    }

    #[test]
    fn sizes_read_well() {
        let texts = [1 << 20, 3 << 29, 900, 5 << 40].map(readable);
        assert_eq!(texts, ["1 MiB", "1.5 GiB", "900 B", "5 TiB"]);
    }
}
