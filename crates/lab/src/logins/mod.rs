//! Users who log in, measured from outside. There are five parts: the cost of a login that Foxy has already
//! checked, a flood of wrong passwords, the shares of many users without a limit, their shares under one
//! common limit, and quotas of single users.

mod cost;
mod cpu;
mod fixture;
mod flood;
mod shares;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::kit::{self, beside};
use fixture::Fixture;

/// Measure logins, quotas and fairness. Exit code 1 if a request fails, a user is locked out, a
/// quota is exceeded, or shares are unfair; times are printed and not judged
#[derive(Clone, Debug, clap::Args)]
pub struct Logins {
    /// Foxy program to measure; default: the `foxy` in the folder of this program
    #[arg(long, value_name = "PATH")]
    foxy: Option<PathBuf>,
    /// Duration of the flood and of each measurement of shares, in seconds
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
    /// Duration of the measurement of quotas, in seconds
    #[arg(long, value_name = "N", default_value_t = 60)]
    quota_seconds: u64,
    /// Number of requests of each kind in the measurement of the cost
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    requests: u64,
    /// Number of connections that send the flood
    #[arg(long, value_name = "N", default_value_t = 16)]
    connections: usize,
}

/// A line of the result.
#[derive(Clone, Debug)]
struct Row {
    name: &'static str,
    measured: String,
    wanted: &'static str,
    /// True if the goal is met. `None`: the result is not judged, for example because it depends on the
    /// machine.
    met: Option<bool>,
}

impl Row {
    fn judged(name: &'static str, measured: String, wanted: &'static str, met: bool) -> Self {
        Self {
            name,
            measured,
            wanted,
            met: Some(met),
        }
    }

    const fn shown(name: &'static str, measured: String, wanted: &'static str) -> Self {
        Self {
            name,
            measured,
            wanted,
            met: None,
        }
    }
}

impl Logins {
    /// Measures, prints the results and judges them.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        kit::exit(self.measure())
    }

    fn measure(&self) -> Result<bool, String> {
        let program = self.foxy.clone().unwrap_or_else(beside);
        let length = Duration::from_secs(self.seconds.max(1));
        let quota = Duration::from_secs(self.quota_seconds.max(1));
        let runtime = kit::runtime()?;
        let mut good = true;
        runtime.block_on(async {
            let fixture = Fixture::start(&program, "").await?;
            good &= print("known logins", &cost::run(&fixture, self.requests).await?);
            let rows = flood::run(&fixture, self.connections, length).await?;
            good &= print("a flood of wrong passwords", &rows);
            good &= print(
                "50 users, as fast as Foxy answers",
                &shares::of_requests(&fixture, length).await?,
            );
            drop(fixture);
            let fixture = Fixture::start(&program, shares::SITE).await?;
            good &= print(
                "50 users under one limit of bytes",
                &shares::of_bytes(&fixture, length).await?,
            );
            drop(fixture);
            let fixture = Fixture::start(&program, shares::QUOTA).await?;
            good &= print("quotas of a user", &shares::quotas(&fixture, quota).await?);
            Ok(good)
        })
    }
}

/// Prints one part of the results. Returns true if every goal of the part is met.
fn print(part: &str, rows: &[Row]) -> bool {
    println!("{part}");
    for row in rows {
        let met = match row.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "not judged",
        };
        println!(
            "  {:<38} {:<46} {:<26} {met}",
            row.name, row.measured, row.wanted
        );
    }
    println!();
    rows.iter().all(|row| row.met != Some(false))
}
