//! Bounds of memory. Loads fill every queue of Foxy. The measurement reports the peak of resident memory and
//! socket buffers, and how well Foxy serves other, well-behaved clients during the loads.

mod clients;
mod conn;
mod fixture;
mod greedy;
mod group;
mod load;
mod loads;
mod memory;
mod objects;
mod origin;
mod report;
mod row;
mod run;
mod soak;
mod sockets;
mod subject;
mod tally;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use foxy_base::ByteSize;
use serde_json::{Value, json};

use crate::kit::{self, beside, raise_files, room_for_files};
use load::{LOADS, Scale};
use run::{Backend, Bench, filled};
use subject::{Limit, Setup};

pub use load::Load;
pub use soak::Soak;

/// Number of open files that the largest load needs. Clients and origin are both in this process.
const FILES: u64 = 19_500;
/// Smallest size of the store in a full run, in bytes.
const STORE: u64 = 4 << 30;
/// Smallest size of the store in a short run, in bytes.
const QUICK_STORE: u64 = 512 << 20;
/// Number of objects in the store of a short run.
const QUICK_OBJECTS: u64 = 5_000;

/// Measure memory under loads that fill every queue. Exit code 1 if the sum of resident memory and socket
/// buffers exceeds the budget by more than 10 %, or a request of a well-behaved client fails
#[derive(Clone, Debug, clap::Args)]
pub struct Bounds {
    /// Memory budgets to measure
    #[arg(
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        default_value = "128MiB"
    )]
    pub memory: Vec<ByteSize>,
    /// Measure Foxy with its default settings in control groups with these limits, in place of budgets.
    /// Needs root
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    pub groups: Vec<ByteSize>,
    /// Run only these loads
    #[arg(long, value_name = "LOAD", value_delimiter = ',')]
    pub only: Vec<Load>,
    /// Number of objects in the store of `restart` and `purge`
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub objects: u64,
    /// Duration of each load, in seconds
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub seconds: u64,
    /// Use a tenth of the clients, for 1.5 s; leave out `restart`
    #[arg(long)]
    pub quick: bool,
    /// Foxy program to measure; default: the `foxy` in the folder of this program
    #[arg(long, value_name = "PATH")]
    pub foxy: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Results of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Every line of the report as JSON.
    pub rows: Vec<Value>,
    /// Descriptions of the limits that were not kept.
    pub broken: Vec<String>,
}

impl Bounds {
    /// Measures, prints the report and judges it.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        kit::exit(self.measure().map(|report| {
            if self.json {
                println!("{}", json!({"rows": report.rows, "broken": report.broken}));
            } else {
                for broken in &report.broken {
                    println!("BROKEN {broken}");
                }
            }
            report.broken.is_empty()
        }))
    }

    /// Runs the measurement. Prints every line of the report as soon as it is complete, unless JSON is
    /// requested.
    ///
    /// # Errors
    /// An error if Foxy does not start, or if the machine lacks a resource or right that the measurement
    /// needs.
    pub fn measure(&self) -> Result<Report, String> {
        let scale = self.scale();
        let loads = self.loads();
        if !self.quick {
            raise_files(FILES)?;
            room_for_files(FILES);
        }
        let limits: Vec<_> = match self.groups.is_empty() {
            true => self.memory.iter().copied().map(Limit::Budget).collect(),
            false => self.groups.iter().copied().map(Limit::Group).collect(),
        };
        let count = match self.quick {
            true => self.objects.min(QUICK_OBJECTS),
            false => self.objects,
        };
        let least = if self.quick { QUICK_STORE } else { STORE };
        let backend = Backend::start()?;
        let setup = Setup {
            program: self.foxy.clone().unwrap_or_else(beside),
            origin: backend.port,
            store: ByteSize(least.max(count.saturating_mul(objects::ON_DISK))),
        };
        let objects = match loads.iter().any(|load| load.needs_objects()) {
            true => Some(filled(&backend, &setup, count)?),
            false => None,
        };
        let bench = Bench {
            backend,
            setup,
            scale,
            objects,
        };
        let mut report = Report::default();
        for limit in limits {
            if !self.json {
                report::print_title(&limit.name());
            }
            for load in &loads {
                let row = bench.row(*load, limit)?;
                if !self.json {
                    report::print_row(&row);
                }
                let place = |broken| format!("{}: {broken}", limit.name());
                report.broken.extend(row.broken().into_iter().map(place));
                report.rows.push(report::row_json(&row));
            }
        }
        Ok(report)
    }

    fn scale(&self) -> Scale {
        match self.quick {
            true => Scale {
                time: Duration::from_millis(1500),
                divisor: 10,
                after: Duration::from_secs(1),
            },
            false => Scale {
                time: Duration::from_secs(self.seconds),
                divisor: 1,
                after: Duration::from_secs(3),
            },
        }
    }

    fn loads(&self) -> Vec<Load> {
        let chosen = |load: &Load| self.only.is_empty() || self.only.contains(load);
        let mut loads: Vec<_> = LOADS.into_iter().filter(chosen).collect();
        if self.quick && loads.contains(&Load::Restart) {
            eprintln!("foxy-lab: restart is left out: --quick has too few objects for it");
            loads.retain(|load| *load != Load::Restart);
        }
        loads
    }
}
