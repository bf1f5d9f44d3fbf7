//! Reloads of a running Foxy: under load with long downloads, with broken files, while fetches run, and
//! with many sites.
//!
//! This module uses no code of the proxy. The seed determines the configuration of each reload.

mod broken;
mod downloads;
mod fixture;
#[cfg(feature = "tls")]
mod many;
mod phases;
mod races;
mod settings;

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::kit::{self, beside};

/// Measure reloads: under load with long downloads, with broken files, while fetches run, and with many
/// sites. Exit code 1 if a request fails, a body is truncated, a hit is lost, a broken file changes
/// something, an answer was made under rules that no longer allow it, or a reload with many sites takes too
/// long
#[derive(Clone, Debug, clap::Args)]
pub struct Reloads {
    /// Foxy program to measure; default: the `foxy` in the folder of this program
    #[arg(long, value_name = "PATH")]
    pub foxy: Option<PathBuf>,
    /// Seed of the changes and of the load
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of reloads under load
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub reloads: u32,
    /// Requests per second during the reloads; 0: as many as possible
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub rate: u32,
    /// Number of downloads that begin before the first reload and end after the last reload
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub downloads: u32,
    /// Number of files with a mistake
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub broken: u32,
    /// Pause between two reloads, in milliseconds
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub pause: u64,
    /// Number of sites in the largest configuration
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub sites: u32,
}

/// Result of a measurement.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Lines with results.
    pub results: Vec<String>,
    /// Descriptions of the conditions that were not met.
    pub faults: Vec<String>,
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.results {
            writeln!(f, "{line}")?;
        }
        for fault in &self.faults {
            writeln!(f, "BROKEN: {fault}")?;
        }
        Ok(())
    }
}

impl Findings {
    fn result(&mut self, line: String) {
        self.results.push(line);
    }

    fn fault(&mut self, text: impl Into<String>) {
        self.faults.push(text.into());
    }

    fn expect(&mut self, holds: bool, text: impl FnOnce() -> String) {
        if !holds {
            self.faults.push(text());
        }
    }
}

impl Reloads {
    /// Measures, prints the results and judges them.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        kit::exit(self.measure().map(|findings| {
            print!("{findings}");
            findings.faults.is_empty()
        }))
    }

    /// Runs all parts.
    ///
    /// # Errors
    /// An error if Foxy or an origin cannot be started, or if the admin address does not answer.
    pub fn measure(&self) -> Result<Findings, String> {
        let program = self.foxy.clone().unwrap_or_else(beside);
        let runtime = kit::runtime()?;
        let mut findings = Findings::default();
        for part in Part::ALL {
            let folder = kit::folder()?;
            let folder = folder.path();
            runtime.block_on(async {
                match part {
                    Part::Load => phases::run(self, &program, folder, &mut findings).await,
                    Part::Races => races::run(&program, folder, &mut findings).await,
                    #[cfg(feature = "tls")]
                    Part::Many => many::run(self, &program, folder, &mut findings).await,
                }
            })?;
        }
        Ok(findings)
    }
}

/// The parts of the measurement. Each part starts its own Foxy.
#[derive(Clone, Copy)]
enum Part {
    Load,
    Races,
    #[cfg(feature = "tls")]
    Many,
}

impl Part {
    const ALL: &'static [Self] = &[
        Self::Load,
        Self::Races,
        #[cfg(feature = "tls")]
        Self::Many,
    ];
}
