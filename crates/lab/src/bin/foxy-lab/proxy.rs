//! `foxy-lab bench proxy`: the unchanged front end of Foxy with another cache behind it. This cache is a
//! published layout (a way to place objects on disk, from a paper) on real files.
//!
//! `--layout stream-packetizer` with LRU-TH and water marks is the cache that the papers about Foxy describe.
//! `--layout squid` keeps one file for each URL. `--layout store` is Foxy's own store with the same amount of
//! memory and disk. A layout keeps no contents (see [`foxy_sim::live`]): the bytes to send are in memory.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use foxy::Parts;
use foxy::cli::{ServeArgs, serve};
use foxy_base::{ByteSize, KeyHash};
use foxy_proxy::{Asked, StandIn};
use foxy_sim::layout::{Calls, LayoutSpec};
use foxy_sim::levels::{LevelsConfig, PolicyKind, Watermarks};
use foxy_sim::live::{Found, Live, Worked};
use foxy_sim::run::{Backend, RunConfig, RunError};
use tokio::sync::oneshot;

/// Name of the layout that means Foxy's own store.
const OWN: &str = "store";
/// The exit code for wrong usage.
const USAGE: u8 = 2;

/// The layout, its size, and the options of the product's front end.
#[derive(Clone, Debug, Args)]
pub(crate) struct BenchProxyArgs {
    /// Options of the proxy; stores and memory are set by the options below
    #[command(flatten)]
    serve: ServeArgs,
    /// simple, squid, multiple-dirs, buddy[:BLOCKS], stream, stream-packetizer, loc[:B], or `store` (Foxy's
    /// own store)
    #[arg(long, default_value = "stream-packetizer")]
    layout: String,
    /// Folder for the files or the store; use a file system that holds nothing else
    #[arg(long)]
    dir: PathBuf,
    /// Size of the memory level
    #[arg(long, default_value = "256MiB")]
    ram: ByteSize,
    /// Total size of the objects on disk; a layout keeps no contents, so they are held in additional memory
    /// of this size
    #[arg(long, default_value = "2GiB")]
    disk: ByteSize,
    #[arg(help = PolicyKind::CHOICES)]
    #[arg(long, default_value = "lru")]
    ram_policy: PolicyKind,
    /// Replacement policy of the disk; the choices are those of `--ram-policy`
    #[arg(long, default_value = "lru-th:128KiB")]
    disk_policy: PolicyKind,
    /// Water marks of the disk, as fractions of its size
    #[arg(long, default_value = "0.90:0.95")]
    watermarks: Watermarks,
}

pub(super) fn run(args: &BenchProxyArgs) -> ExitCode {
    if !args.serve.store.is_empty() || args.serve.memory.is_some() {
        return wrong("--store and --memory are set by --dir, --disk and --ram");
    }
    if args.layout == OWN {
        return serve(&own(args), Parts::system());
    }
    let config = match config(args) {
        Ok(config) => config,
        Err(problem) => return wrong(&problem),
    };
    let live = match Live::start(&config) {
        Ok(live) => Arc::new(live),
        Err(RunError::Config(problem)) => return wrong(&problem),
        Err(error) => return failed(error),
    };
    let parts = Parts {
        stand_in: Some(Arc::new(Published(Arc::clone(&live)))),
        ..Parts::system()
    };
    let code = serve(&without_store(args), parts);
    match live.finish() {
        Ok(worked) => {
            say(&args.layout, &worked);
            code
        }
        Err(error) => failed(error),
    }
}

fn wrong(problem: &str) -> ExitCode {
    eprintln!("foxy: {problem}");
    ExitCode::from(USAGE)
}

fn failed(error: impl std::fmt::Display) -> ExitCode {
    eprintln!("foxy: {error}");
    ExitCode::FAILURE
}

/// Options for Foxy's own store of the requested size in the folder.
fn own(args: &BenchProxyArgs) -> ServeArgs {
    let store = args.dir.join("store");
    ServeArgs {
        store: vec![store.to_string_lossy().into_owned()],
        store_size: vec![args.disk.to_string()],
        memory: Some(args.ram.to_string()),
        ..args.serve.clone()
    }
}

/// Options without a store, and with enough memory for all contents and their heads.
fn without_store(args: &BenchProxyArgs) -> ServeArgs {
    const REST: u64 = 256 << 20;
    let contents = args.ram.bytes().saturating_add(args.disk.bytes());
    let memory = contents.saturating_add(contents / 2).saturating_add(REST);
    ServeArgs {
        store: vec!["off".into()],
        memory: Some(memory.to_string()),
        ..args.serve.clone()
    }
}

fn config(args: &BenchProxyArgs) -> Result<RunConfig, String> {
    let layout: LayoutSpec = args
        .layout
        .parse()
        .map_err(|error| format!("{error}; or {OWN}"))?;
    Ok(RunConfig {
        levels: LevelsConfig {
            ram: args.ram.bytes(),
            ram_policy: args.ram_policy,
            disk: args.disk.bytes(),
            disk_policy: args.disk_policy,
            watermarks: Some(args.watermarks),
        },
        // The files of the layout are real, so they are written by calls of `write`.
        calls: Calls::Write,
        backend: Backend {
            dir: Some(args.dir.clone()),
            ..Backend::default()
        },
        ..RunConfig::published(layout)
    })
}

/// Prints the result in readable form.
fn say(layout: &str, worked: &Worked) {
    let (levels, files) = (&worked.levels, &worked.layout);
    eprintln!(
        "{layout}: {} requests, {} answered from memory, {} from disk; {} URL-writes, {} \
         URL-deletes; {} read() and {} write() calls; the device did {} reads and {} writes; {} \
         writes refused, {} objects missing",
        levels.requests,
        levels.ram_hits,
        levels.disk_hits,
        files.writes,
        files.deletes,
        files.read_calls,
        files.write_calls,
        worked.device.0,
        worked.device.1,
        worked.refused,
        worked.missing,
    );
}

/// The cache that the papers describe, with one of their layouts. It takes the place of Foxy's store.
#[derive(Debug)]
struct Published(Arc<Live>);

/// Returns a number for the server to which this group of objects belongs. A layout distinguishes servers by
/// these numbers.
const fn server(group: u64) -> u32 {
    (group ^ (group >> 32)) as u32
}

impl StandIn for Published {
    fn ask(&self, key: KeyHash, group: u64, bytes: u64) -> Asked {
        let (told, done) = oneshot::channel();
        let tell = Box::new(move |ok| {
            // If the client has disconnected, nobody receives this result.
            let _gone = told.send(ok);
        });
        match self.0.ask(number(key), bytes, server(group), tell) {
            Found::Memory => Asked::Memory,
            Found::Disk => Asked::Disk(done),
            Found::Nowhere => Asked::Miss,
        }
    }

    fn keep(&self, key: KeyHash, group: u64, bytes: u64) {
        self.0.keep(number(key), bytes, server(group));
    }
}

/// Returns half of the hash. 64 bits are enough to distinguish the objects of a measurement.
const fn number(key: KeyHash) -> u64 {
    key.0 as u64
}
