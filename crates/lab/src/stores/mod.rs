//! Measurements of a Foxy with several stores, from outside: its start when one of two stores is bad, its use
//! of several disks, and the space that small objects occupy.
//!
//! The disks are loop devices. The kernel limits their reads or writes (control groups, version 1), so that
//! the disk limits the result, and not the processor. Loop devices and control groups need root. Without
//! root, each part that needs a loop device reports that it was not measured.

mod fixture;
mod load;
mod origin;
mod small;
mod speeds;
mod starts;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::kit::{self, beside};

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Time to the first answer when one of two stores is bad
    Starts,
    /// Read rate of two disks compared with one disk
    Reads,
    /// Bytes written to each of four disks of different speed
    Shares,
    /// Bytes that small objects occupy on the device
    Small,
}

/// Measure the start of Foxy when one of two stores is bad, the use of several disks, and the space for small
/// objects. Exit code 1 if the first answer after a start takes longer than 0.3 s, two disks read less than
/// 1.9 times as much as one disk, a disk gets less than 75 % of the bytes that it can write, or the smallest
/// objects occupy more than 1.1 times their bytes
#[derive(Clone, Debug, clap::Args)]
pub struct Stores {
    /// Foxy program to measure; default: the `foxy` in the folder of this program
    #[arg(long, value_name = "PATH")]
    foxy: Option<PathBuf>,
    /// Parts to measure; default: all
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Duration of each measurement of disks, in seconds
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
    /// Number of starts of each kind
    #[arg(long, value_name = "N", default_value_t = 5)]
    starts: usize,
}

impl Stores {
    /// Measures, prints the results and judges them.
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
