//! Several stores, from outside: starts with one bad store of two, and disks of different speed.
//!
//! Disks are loop devices whose reads or writes the kernel limits (control groups, version 1): the disk
//! is the limit then, and not the processor. Both need root; without it those parts say so.

mod load;
mod origin;
mod scene;
mod small;
mod speeds;
mod starts;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::kit::{self, beside};

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// First answer with one bad store of two
    Starts,
    /// Reads of two disks against those of one
    Reads,
    /// Bytes written to four disks of different speed
    Shares,
    /// Bytes that small objects take on the device
    Small,
}

/// Measure starts with one bad store of two, and several disks. Exit code 1 if a first answer takes
/// longer than 0.3 s, two disks read less than 1.9 times what one does, or a disk gets less than it can take
#[derive(Clone, Debug, clap::Args)]
pub struct Stores {
    /// The Foxy to measure; default: the one beside this program
    #[arg(long, value_name = "PATH")]
    foxy: Option<PathBuf>,
    /// Parts to measure; default: all
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Length of each measurement of disks
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
    /// Starts of each kind
    #[arg(long, value_name = "N", default_value_t = 5)]
    starts: usize,
}

impl Stores {
    /// Measures, prints and judges.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        kit::exit(self.measure())
    }

    fn measure(&self) -> Result<bool, String> {
        let program = self.foxy.clone().unwrap_or_else(beside);
        let runtime = kit::runtime()?;
        let mut good = true;
        for part in [Part::Starts, Part::Reads, Part::Shares, Part::Small] {
            if !self.only.is_empty() && !self.only.contains(&part) {
                continue;
            }
            let folder = kit::folder()?;
            let folder = folder.path();
            good &= match part {
                Part::Starts => runtime.block_on(starts::measure(&program, folder, self.starts))?,
                Part::Reads => runtime.block_on(speeds::reads(&program, folder, self.seconds))?,
                Part::Small => runtime.block_on(small::measure(&program, folder))?,
                Part::Shares => runtime.block_on(speeds::shares(&program, folder, self.seconds))?,
            };
        }
        Ok(good)
    }
}
