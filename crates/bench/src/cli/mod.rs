//! Command line of the load tools: `origin`, `load`, `expect`, `floor`, `resolver`, `together`, `ranges`.

mod expect;
mod floor;
mod load;
mod object;
mod origin;
mod ranges;
mod resolver;
mod together;
mod workload;

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::Clock;

pub use expect::ExpectArgs;
pub use floor::FloorArgs;
pub use load::LoadArgs;
pub use object::ObjectArgs;
pub use origin::OriginArgs;
pub use ranges::RangesArgs;
pub use resolver::ResolverArgs;
pub use together::TogetherArgs;
pub use workload::{SizesArg, WorkloadArgs};

use crate::load::Report;
use crate::store::StoreCommand;

/// The load tools.
#[derive(Debug, clap::Subcommand)]
pub enum BenchCommand {
    /// Run a deterministic origin server
    Origin(OriginArgs),
    /// Request objects of the origin, directly or through a proxy; check the answers and measure their
    /// times
    Load(Box<LoadArgs>),
    /// After a restart: request the objects that an earlier load recorded, and report how many are still
    /// hits
    Expect(ExpectArgs),
    /// Measure only the storage engine, and compare it with fio, file systems and another engine
    #[command(subcommand)]
    Store(StoreCommand),
    /// Run the simplest possible server, which shows the kernel's CPU time per answer
    Floor(FloorArgs),
    /// Run a name server that is slow, fails or answers nonsense, in phases
    Resolver(ResolverArgs),
    /// Let many clients request one object at the same moment
    Together(TogetherArgs),
    /// Read at random positions of one large object by range requests
    Ranges(RangesArgs),
}

impl BenchCommand {
    /// Runs the tool to its end. Exit code 0: all answers were correct; 1: wrong or missing answers; 2: the
    /// tool could not run.
    #[must_use]
    pub fn run(&self, clock: &Arc<dyn Clock>) -> ExitCode {
        let result = match self {
            Self::Origin(args) => args.run(clock).map(|()| true),
            Self::Load(args) => args.run(clock),
            Self::Expect(args) => args.run(clock),
            Self::Store(command) => command.run(clock),
            Self::Floor(args) => args.run(clock).map(|()| true),
            Self::Resolver(args) => args.run(clock).map(|()| true),
            Self::Together(args) => args.run(clock),
            Self::Ranges(args) => args.run(),
        };
        match result {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(2)
            }
        }
    }
}

/// Prints a report as text, or as JSON to standard output (`-`) or a file.
fn print(report: &Report, extra: &serde_json::Value, json: Option<&Path>) -> io::Result<()> {
    let Some(path) = json else {
        println!("{report}");
        return Ok(());
    };
    let mut value = serde_json::to_value(report)?;
    if let (Some(into), Some(from)) = (value.as_object_mut(), extra.as_object()) {
        into.extend(from.clone());
    }
    let text = serde_json::to_string_pretty(&value)?;
    if path.as_os_str() == "-" {
        println!("{text}");
        Ok(())
    } else {
        println!("{report}");
        std::fs::write(path, text + "\n")
    }
}

/// Parses a time such as `10s` for clap.
fn time(text: &str) -> Result<Duration, String> {
    crate::parse_time(text).ok_or_else(|| format!("`{text}` is not a time; write 500ms, 10s or 2m"))
}

fn invalid(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text.into())
}
