//! Measurements of mirrors of registries: with many long documents at the same time, with the packages of one
//! installation, with a slow link to the registry, and with one large layer of an image that several clients
//! pull.
//!
//! This program also runs the registries. Without code of the product, it makes the documents that a mirror
//! must send.

mod client;
mod document;
mod fixture;
mod images;
mod link;
mod packuments;
mod pull;
mod registry;
mod relay;
mod replay;
mod report;
mod verdaccio;

use std::path::PathBuf;
use std::process::ExitCode;

use foxy_base::ByteSize;

use crate::kit::{self, beside};

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Measurement {
    /// 20 packuments of 32 MiB are requested at once; times and memory are measured
    Packuments,
    /// 1,000 packages of one installation are requested repeatedly from Foxy and from verdaccio, on one core
    Replay,
    /// 200 packages come from a registry behind a slow link
    Relay,
    /// Four clients pull one large layer of an image
    Pull,
}

/// Measure mirrors of registries. Exit code 1 if a body is wrong, long documents take more than 64 MiB, or
/// an artefact is fetched twice
#[derive(Clone, Debug, clap::Args)]
pub struct Mirrors {
    /// Foxy program to measure; default: the `foxy` in the folder of this program
    #[arg(long, value_name = "PATH")]
    foxy: Option<PathBuf>,
    /// Measurements to run; default: all
    #[arg(long, value_name = "ROW", value_enum, value_delimiter = ',')]
    only: Vec<Measurement>,
    /// Measure with fewer and smaller packages
    #[arg(long)]
    quick: bool,
    /// Seed of the random packages and documents
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Length of the layer; default: 2GB, and 200MB with `--quick`
    #[arg(long, value_name = "SIZE")]
    layer: Option<ByteSize>,
    /// Folder in which npm has installed verdaccio; default: npm installs it into a temporary folder
    #[arg(long, value_name = "FOLDER")]
    verdaccio: Option<PathBuf>,
}

impl Mirrors {
    /// Measures, prints the results and judges them.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        kit::exit(self.measure())
    }

    fn measure(&self) -> Result<bool, String> {
        let runtime = kit::runtime()?;
        let mut good = true;
        for measurement in [
            Measurement::Packuments,
            Measurement::Replay,
            Measurement::Relay,
            Measurement::Pull,
        ] {
            if !self.only.is_empty() && !self.only.contains(&measurement) {
                continue;
            }
            let folder = kit::folder()?;
            let folder = folder.path();
            let report = runtime.block_on(async {
                match measurement {
                    Measurement::Packuments => packuments::measure(self, folder).await,
                    Measurement::Replay => replay::measure(self, folder).await,
                    Measurement::Relay => link::measure(self, folder).await,
                    Measurement::Pull => pull::measure(self, folder).await,
                }
            })?;
            print!("{report}");
            good &= report.is_good();
        }
        Ok(good)
    }

    fn program(&self) -> PathBuf {
        let named = self.foxy.clone().unwrap_or_else(beside);
        // Foxy is started in another folder, so the path must be absolute.
        named.canonicalize().unwrap_or(named)
    }
}

/// Configuration of a mirror for npm. The mirror requests its documents again after the time `fresh`.
fn npm(registry: &str, name: &str, fresh: &str) -> String {
    format!(
        "[[mirror]]\npreset = \"npm\"\nname = \"{name}\"\nupstream = \"{registry}\"\nfresh = \"{fresh}\"\n"
    )
}
