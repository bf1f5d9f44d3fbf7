//! `disks`: runs the same operations through every layout on real file systems of this machine.
//!
//! For each file system, an image file is made, formatted, mounted on a loop device, and used. Afterwards it
//! is unmounted and removed, even if a run fails. This requires root and the tools of the file systems.

mod memory_limit;
mod mounted;

use std::path::PathBuf;

use foxy_base::ByteSize;

use super::OutputFormat;
use crate::{
    layout::{Calls, LayoutSpec},
    levels::LevelsConfig,
    report::{Align, Table},
    run::{Backend, OpStream, RunConfig, RunError, RunResult, run_ops},
};
use memory_limit::MemoryLimit;
use mounted::{FsName, Mounted};

/// Arguments of `disks`.
#[derive(Clone, Debug, clap::Args)]
pub struct DisksArgs {
    /// File systems to create: ext4, xfs
    #[arg(long, value_delimiter = ',', default_value = "ext4,xfs")]
    fs: Vec<FsName>,
    /// Folder for the images, on the disk to be measured; the images need three times the space of --disk
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Capacity for objects on disk, in bytes
    #[arg(long, default_value = "1GiB")]
    disk: ByteSize,
    /// Size of the memory level before the disk
    #[arg(long, default_value = "64MiB")]
    ram: ByteSize,
    /// Limit on the memory of this process and its part of the page cache; 0: no limit. Without a limit, the
    /// page cache would be measured instead of the disk. The limit is a control group, which requires root
    #[arg(long, default_value = "256MiB")]
    memory: ByteSize,
    /// Number of disk operations, which come from the generated DEC stream
    #[arg(long, default_value_t = 100_000)]
    ops: u64,
    /// Number of times that everything is measured; the table contains the median
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=99))]
    rounds: u64,
    /// Layouts to run
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "squid,simple,multiple-dirs,buddy,stream,stream-packetizer,lazy-reads,loc:128,lazy-reads-loc:128"
    )]
    layout: Vec<LayoutSpec>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    form: OutputFormat,
}

#[derive(serde::Serialize)]
struct Row {
    fs: &'static str,
    result: RunResult,
}

impl DisksArgs {
    pub(super) fn text(&self) -> Result<String, RunError> {
        let config = |layout, dir: Option<PathBuf>| RunConfig {
            levels: LevelsConfig::lru(self.ram.bytes(), self.disk.bytes()),
            ops: self.ops,
            calls: Calls::Write,
            backend: Backend {
                dir,
                ..Backend::default()
            },
            ..RunConfig::published(layout)
        };
        let ops = OpStream::make(&config(LayoutSpec::Stream, None))?;
        let _limit = match self.memory.bytes() {
            0 => None,
            bytes => Some(MemoryLimit::new(bytes)?),
        };
        let mut rows = Vec::new();
        let all = self.rounds * (self.fs.len() * self.layout.len()) as u64;
        let mut stopped = false;
        'rounds: for _ in 0..self.rounds {
            for fs in &self.fs {
                let mounted = Mounted::new(*fs, &self.dir, 3 * self.disk.bytes())?;
                for layout in &self.layout {
                    let config = config(*layout, Some(mounted.point.clone()));
                    let result = match run_ops(&config, &ops) {
                        Err(RunError::Stopped) => {
                            stopped = true;
                            break 'rounds;
                        }
                        done => done?,
                    };
                    let row = Row {
                        fs: fs.name(),
                        result,
                    };
                    tell(rows.len() as u64 + 1, all, &row);
                    rows.push(row);
                }
            }
        }
        if stopped {
            eprintln!("stopped: {} of {all} runs are finished", rows.len());
        }
        let rows = medians(rows);
        self.form.print(&table(&rows), &rows)
    }
}

fn tell(number: u64, all: u64, row: &Row) {
    let (layout, r) = (&row.result.layout, &row.result);
    eprintln!(
        "{number} of {all}: {} {layout}: {:.0} operations/s, {:.0} s",
        row.fs, r.ops_per_s, r.seconds
    );
}

/// Returns one row for each file system and layout: the row of the round whose operations per second are the
/// median.
fn medians(rows: Vec<Row>) -> Vec<Row> {
    let mut groups: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        let like = |group: &&mut Vec<Row>| {
            let first = group.first();
            first.is_some_and(|r| (r.fs, &r.result.layout) == (row.fs, &row.result.layout))
        };
        match groups.iter_mut().find(like) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    let middle = |mut group: Vec<Row>| {
        group.sort_by(|a, b| a.result.ops_per_s.total_cmp(&b.result.ops_per_s));
        group.swap_remove(group.len() / 2)
    };
    groups.into_iter().map(middle).collect()
}

/// A table of all rows. One column shows each layout's speed as a multiple of the speed of the first layout
/// on the same file system. By default the first layout is `squid`, which stores each object in a separate
/// file.
fn table(rows: &[Row]) -> Table {
    let first = rows.first().map_or("the first", |row| &row.result.layout);
    let times = format!("times {first}");
    let mut table = Table::new(&[
        ("file system", Align::Left),
        ("layout", Align::Left),
        ("ops/s", Align::Right),
        (times.as_str(), Align::Right),
        ("MB/s", Align::Right),
        ("device I/Os per op", Align::Right),
        ("KB per op", Align::Right),
        ("per object byte", Align::Right),
        ("CPU us per op", Align::Right),
    ]);
    for row in rows {
        let r = &row.result;
        let first = rows.iter().find(|other| other.fs == row.fs);
        let first = first.map_or(r.ops_per_s, |f| f.result.ops_per_s);
        table.row([
            row.fs.to_owned(),
            r.layout.clone(),
            format!("{:.0}", r.ops_per_s),
            format!("{:.1}", r.ops_per_s / first),
            format!("{:.1}", r.mb_per_s),
            format!("{:.2}", r.device_ios_per_op),
            format!("{:.1}", device_kb_per_op(r)),
            format!("{:.2}", r.device_bytes_per_byte),
            format!("{:.0}", r.cpu_us_per_op),
        ]);
    }
    table
}

/// Bytes read from and written to the device per operation, in units of 1,000 bytes.
fn device_kb_per_op(r: &RunResult) -> f64 {
    if r.ops_per_s > 0.0 {
        1e3 * r.mb_per_s * r.device_bytes_per_byte / r.ops_per_s
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_layout_is_the_measure() {
        let row = |fs, ops_per_s| {
            let result = RunResult {
                ops_per_s,
                ..RunResult::default()
            };
            Row { fs, result }
        };
        let text = table(&[row("ext4", 100.0), row("ext4", 250.0), row("xfs", 50.0)]).csv();
        let times: Vec<_> = text.lines().skip(1).map(|l| l.split(',').nth(3)).collect();
        assert_eq!(times, [Some("1.0"), Some("2.5"), Some("1.0")]);
    }

    #[test]
    fn of_rounds_the_middle_one_is_shown() {
        let row = |layout: &str, ops_per_s| {
            let result = RunResult {
                layout: layout.into(),
                ops_per_s,
                ..RunResult::default()
            };
            Row { fs: "xfs", result }
        };
        let rows = [
            ("a", 30.0),
            ("b", 5.0),
            ("a", 10.0),
            ("b", 7.0),
            ("a", 20.0),
            ("b", 6.0),
        ];
        let rows = medians(rows.map(|(layout, ops)| row(layout, ops)).into());
        let shown: Vec<_> = rows.iter().map(|r| r.result.ops_per_s as u64).collect();
        assert_eq!(shown, [20, 6]);
    }
}
