//! `cargo xtask dist`: the files that users install. Everything is written to one folder. The same sources
//! and programs produce the same bytes.

mod archive;
mod contents;
mod deb;
mod image;
mod installed;
mod manuals;
mod program;
mod sizes;
mod third_party;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::report::{Outcome, Report};
use crate::workspace::{root, target_folder};

/// Artefacts to make.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Dist {
    /// Make manual pages and shell completions
    Manuals(DistArgs),
    /// Make a Debian package
    Deb(DistArgs),
    /// Make a container image (OCI layout in a tar file), without a container daemon
    Image(DistArgs),
    /// Print the size of each part of the program
    Sizes(DistArgs),
    /// Install, use, upgrade, remove and purge the package in a new Debian system (needs root)
    Installed(DistArgs),
}

/// Program to use, and folder for the results.
#[derive(Debug, Clone, Args)]
pub(crate) struct DistArgs {
    /// Release build of Foxy with symbols, in place of a new build
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Folder for the results [default: dist in cargo's target folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Revision of the package
    #[arg(long, value_name = "N", default_value_t = 1)]
    revision: u32,
}

impl DistArgs {
    fn folder(&self) -> Result<PathBuf, String> {
        let folder = match &self.out {
            Some(folder) => folder.clone(),
            None => target_folder()?.join("dist"),
        };
        std::fs::create_dir_all(&folder).map_err(|error| at(&folder, &error))?;
        Ok(folder)
    }
}

/// Runs one command.
pub(crate) fn run(report: &mut Report, what: &Dist) {
    let mut step = |name: &'static str, work: &dyn Fn() -> Result<(), String>| {
        report.step(name, || Outcome::single(work()));
    };
    match what {
        Dist::Manuals(args) => step("manuals", &|| manuals::write(&args.folder()?)),
        Dist::Deb(args) => step("Debian package", &|| {
            let file = deb::write(args)?;
            said(&file)
        }),
        Dist::Image(args) => step("container image", &|| {
            let file = image::write(args)?;
            said(&file)
        }),
        Dist::Sizes(args) => step("sizes", &|| sizes::print(args)),
        Dist::Installed(args) => installed::run(report, args),
    }
}

/// Prints a file's name, size and checksum.
fn said(file: &Path) -> Result<(), String> {
    let bytes = read(file)?;
    println!(
        "   {} ({} bytes, sha256 {})",
        file.display(),
        bytes.len(),
        archive::sha256(&bytes)
    );
    Ok(())
}

/// Version of the project.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Reads a file of the workspace.
fn source(path: &str) -> Result<Vec<u8>, String> {
    read(&root().join(path))
}

/// Reads a text file of the workspace.
fn text(path: &str) -> Result<String, String> {
    String::from_utf8(source(path)?).map_err(|_| format!("{path} is not UTF-8"))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| at(path, &error))
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
