//! `files`: the cost of creating and deleting files (HBENCH-OS lat_fs), modelled and real.

use std::path::PathBuf;

use super::OutputFormat;
use crate::{
    model::{
        Files,
        fs::{DeleteOrder, LatFs, lat_fs},
    },
    report::{Align, Table},
    run::{Backend, FsKind, RealFiles, RunError},
};

/// Arguments of `files`.
#[derive(Clone, Debug, clap::Args)]
pub struct FilesArgs {
    /// Real folders, each on a file system to be measured; if not given, the modelled file
    /// systems are measured
    #[arg(long, value_delimiter = ',')]
    dir: Vec<PathBuf>,
    /// Number of files in a round
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    count: u64,
    /// Number of rounds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rounds: u64,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    form: OutputFormat,
}

#[derive(serde::Serialize)]
struct Row {
    files: String,
    order: &'static str,
    bytes: u64,
    create_ms: f64,
    create_deviation: f64,
    delete_ms: f64,
    delete_deviation: f64,
}

const KIB: [u64; 7] = [0, 1, 2, 4, 6, 8, 10];

impl FilesArgs {
    pub(super) fn text(&self) -> Result<String, RunError> {
        let mut rows = Vec::new();
        for (order, name) in [
            (DeleteOrder::Forward, "as created"),
            (DeleteOrder::Reverse, "reverse"),
        ] {
            for kib in KIB {
                for (files, times) in self.measure(kib << 10, order)? {
                    rows.push(Row {
                        files,
                        order: name,
                        bytes: times.bytes,
                        create_ms: times.create_ms,
                        create_deviation: times.create_deviation,
                        delete_ms: times.delete_ms,
                        delete_deviation: times.delete_deviation,
                    });
                }
            }
        }
        rows.sort_by(|a, b| (&a.files, a.order).cmp(&(&b.files, b.order)));
        self.form.print(&table(&rows), &rows)
    }

    /// Measures every folder of `dir`, or every modelled file system if `dir` is empty. Returns their names
    /// and times.
    fn measure(&self, bytes: u64, order: DeleteOrder) -> Result<Vec<(String, LatFs)>, RunError> {
        let mut all = Vec::new();
        for dir in &self.dir {
            let files = RealFiles::new(dir).map_err(|source| RunError::Output {
                path: dir.clone(),
                source,
            })?;
            all.push((dir.display().to_string(), self.round(files, bytes, order)?));
        }
        if self.dir.is_empty() {
            for fs in [
                FsKind::Ufs,
                FsKind::Ffs,
                FsKind::Async,
                FsKind::Soft,
                FsKind::Journal,
            ] {
                let backend = Backend {
                    fs,
                    ..Backend::default()
                };
                let times = self.round(backend.ufs()?, bytes, order)?;
                all.push((format!("{} on {}", fs, backend.drive), times));
            }
        }
        Ok(all)
    }

    fn round(
        &self,
        mut files: impl Files,
        bytes: u64,
        order: DeleteOrder,
    ) -> Result<LatFs, RunError> {
        let fs = |error| RunError::Layout(crate::layout::LayoutError::Fs(error));
        let dir = files.mkdir(files.root(), 1).map_err(fs)?;
        lat_fs(&mut files, dir, bytes, self.count, self.rounds, order).map_err(fs)
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        ("files", Align::Left),
        ("deleted", Align::Left),
        ("bytes", Align::Right),
        ("create ms", Align::Right),
        ("+-", Align::Right),
        ("delete ms", Align::Right),
        ("+-", Align::Right),
    ]);
    for row in rows {
        let ms = |v: f64| format!("{v:.3}");
        table.row([
            row.files.clone(),
            row.order.to_owned(),
            row.bytes.to_string(),
            ms(row.create_ms),
            ms(row.create_deviation),
            ms(row.delete_ms),
            ms(row.delete_deviation),
        ]);
    }
    table
}
