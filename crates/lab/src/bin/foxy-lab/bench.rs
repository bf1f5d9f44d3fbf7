//! `foxy-lab bench`: the load tools, including the tools that need the simulator or the product.

use std::process::ExitCode;
use std::sync::Arc;

use foxy_base::{Clock, SystemClock};
use foxy_sim::cli::{FilesArgs, SimCommand};

use super::proxy::{self, BenchProxyArgs};

/// A load tool.
#[derive(Debug, clap::Subcommand)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one of it, for a moment"
)]
pub(crate) enum BenchCommand {
    /// Tools that need neither the simulator nor the product
    #[command(flatten)]
    Tool(foxy_bench::cli::BenchCommand),
    /// Cost of creating and deleting files (HBENCH lat_fs), on modelled or real file systems
    Files(FilesArgs),
    /// Run the proxy over a published layout on real files, or over Foxy's own store
    Proxy(Box<BenchProxyArgs>),
}

impl BenchCommand {
    /// Runs the tool.
    pub(crate) fn run(self) -> ExitCode {
        // The product makes the same call at its start. Without the call, code that is not in memory yet
        // would slow down a measured start.
        foxy::cli::read_ahead();
        match self {
            Self::Tool(command) => {
                let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
                command.run(&clock)
            }
            Self::Files(args) => SimCommand::Files(args).run(),
            Self::Proxy(args) => proxy::run(&args),
        }
    }
}
