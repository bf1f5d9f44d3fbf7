//! The command line of the simulator: `run`, `sweep`, `reproduce`, `size`, `files`, `disks`.
//!
//! `foxy-lab` offers [`SimCommand`] as `foxy-lab sim`. Tables go to standard output, progress to standard
//! error. Exit codes: 0 success, 1 an error at run time, 2 wrong usage, 130 stopped by Ctrl-C (results that
//! were finished until then are printed and kept).

mod disks;
mod files;
mod parameters;
mod reproduce;
mod run;
mod size;
mod stopping;
mod systems;

pub use files::FilesArgs;

use std::{fmt::Write as _, io::Write as _, path::PathBuf, process::ExitCode};

use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    report::Table,
    run::{RunError, RunResult, stopped},
};

/// Simulates caches, the papers' systems and their disks.
#[derive(Debug, clap::Subcommand)]
pub enum SimCommand {
    /// Run one configuration: a workload through cache levels and a layout on a modelled drive
    Run(run::RunArgs),
    /// Run every combination of comma-separated values, in parallel
    Sweep(run::SweepArgs),
    /// Repeat the published experiments and show published and simulated values side by side
    Reproduce(reproduce::ReproduceArgs),
    /// Predict the effect of more memory, more disk or another policy on your own access log
    Size(size::SizeArgs),
    /// Measure the cost of creating and deleting files (HBENCH lat_fs), on modelled or real file systems
    Files(FilesArgs),
    /// Run the same operations through every layout on ext4 and XFS of this machine (needs root)
    Disks(disks::DisksArgs),
}

impl SimCommand {
    /// Runs the command.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        stopping::watch();
        match self.text().and_then(|text| show(&text)) {
            Ok(()) if stopped() => ExitCode::from(stopping::CODE),
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                if let RunError::Partly { text, .. } = &error {
                    // If printing fails too, only the first error is reported.
                    let _ = show(text);
                }
                eprintln!("error: {error}");
                ExitCode::from(match error {
                    RunError::Config(_) => 2,
                    RunError::Stopped => stopping::CODE,
                    _ => 1,
                })
            }
        }
    }

    /// Runs the command and returns the text to print.
    ///
    /// # Errors
    /// Returns an error if parameters are wrong or the work fails.
    pub fn text(&self) -> Result<String, RunError> {
        match self {
            Self::Run(args) => args.text(),
            Self::Sweep(args) => args.text(),
            Self::Reproduce(args) => args.text(),
            Self::Size(args) => args.text(),
            Self::Files(args) => args.text(),
            Self::Disks(args) => args.text(),
        }
    }
}

/// Prints results. A reader that closes the pipe early (`| head`) is no error; a full disk is an error.
fn show(text: &str) -> Result<(), RunError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|source| RunError::Output {
            path: "standard output".into(),
            source,
        }),
    }
}

/// Format of the results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// Aligned columns
    #[default]
    Table,
    /// Comma-separated values
    Csv,
    /// All results, for programs
    Json,
}

impl OutputFormat {
    fn print<T: serde::Serialize>(self, table: &Table, all: &T) -> Result<String, RunError> {
        Ok(match self {
            Self::Table => table.to_string(),
            Self::Csv => table.csv(),
            Self::Json => {
                let json = serde_json::to_string_pretty(all);
                json.map_err(|error| RunError::Config(error.to_string()))? + "\n"
            }
        })
    }
}

/// A progress bar of `steps` steps; hidden if standard error is not a terminal.
fn bar(steps: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

/// Number of threads to use; by default the number that this machine runs in parallel.
fn threads(wanted: Option<usize>) -> usize {
    wanted.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Returns the results, followed by the names of the figure files. If the files could not be written, the
/// error contains the results, so that the results are still printed.
fn with_files(
    text: String,
    files: Result<impl IntoIterator<Item = PathBuf>, RunError>,
) -> Result<String, RunError> {
    match files {
        Ok(files) => Ok(text + &saved(&files.into_iter().collect::<Vec<_>>())),
        Err(error) => Err(RunError::Partly {
            text,
            error: Box::new(error),
            note: "",
        }),
    }
}

fn saved(files: &[PathBuf]) -> String {
    files.iter().fold(String::new(), |mut text, file| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "wrote {}", file.display());
        text
    })
}

/// Details of a single run that the table does not contain.
fn details(result: &RunResult) -> String {
    let mut text = String::new();
    let rows = [
        ("requests", result.gets.to_string()),
        (
            "answered from memory",
            format!("{:.2} %", 100.0 * result.ram_hit_ratio),
        ),
        (
            "answered from disk",
            format!("{:.2} %", 100.0 * result.disk_hit_ratio),
        ),
        (
            "URL-reads, -writes, -deletes",
            format!("{}, {}, {}", result.reads, result.writes, result.deletes),
        ),
        (
            "device reads, writes",
            format!("{}, {}", result.device_reads, result.device_writes),
        ),
        (
            "device bytes per object byte",
            format!("{:.2}", result.device_bytes_per_byte),
        ),
        (
            "sequential write",
            format!("{:.2} MB/s", result.sequential_mb_per_s),
        ),
        (
            "pieces per object",
            format!("{:.3}", result.pieces_per_object),
        ),
        (
            "pages read for small writes",
            result.read_modify_writes.to_string(),
        ),
    ];
    for (name, value) in rows {
        let _ = writeln!(text, "{name:<30} {value}");
    }
    text
}

#[cfg(test)]
mod tests;
