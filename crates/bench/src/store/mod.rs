//! `bench store`: measures only the storage engine, without HTTP. Other programs are measured on the same
//! disk for comparison.
//!
//! Every result that depends on the machine is reported together with a result of fio, of a file system or of
//! another engine. Both results are measured in the same run, on the same disk. If possible, the pattern, the
//! length and the number of operations at a time are also the same.

mod files;
mod fio;
mod harness;
mod index;
mod library;
mod mixed;
mod one_file;
mod operations;
mod read;
mod reader;
mod recover;
mod report;
mod stores;
mod system;
mod throttle;
mod trace;
mod write;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ByteSize, Clock};

pub use recover::VictimArgs;
pub use report::{Goal, Row, Section};
pub use system::Loop;
pub use throttle::{Limit, Throttle};
pub use trace::ReplayArgs;

/// Kind of measurement.
#[derive(Debug, clap::Subcommand)]
pub enum StoreCommand {
    /// Memory per object and lookup times, up to 50 million objects
    Index(StoreArgs),
    /// Disk hits of 8 KiB objects, compared with fio's random reads
    Read(StoreArgs),
    /// Disk hits while 200 MB/s are admitted
    Mixed(StoreArgs),
    /// Admission without limit, compared with fio's sequential writes; bytes written per byte stored
    Write(StoreArgs),
    /// Kill a process with a full store and measure which objects the next process has, and when it has them
    Recover(StoreArgs),
    /// A stream of requests, compared with another cache engine with equal memory and disk
    Trace(StoreArgs),
    /// One stream of reads, writes and deletions, compared with one file per object on ext4 and XFS
    Files(StoreArgs),
    /// A proxy's calls through the library Hummingbird, compared with RocksDB, SQLite and files (needs
    /// root)
    Library(StoreArgs),
    /// One store compared with two stores of half the size, each on a device as slow as a rotating disk
    /// (needs root)
    Stores(StoreArgs),
    /// All these measurements
    All(StoreArgs),
    /// The process that `recover` kills
    #[command(hide = true)]
    Victim(VictimArgs),
    /// The process that `trace` measures
    #[command(hide = true)]
    Replay(ReplayArgs),
}

/// Options of every measurement.
#[derive(Debug, clap::Args)]
pub struct StoreArgs {
    /// Folder for stores, on the disk to be measured; the stores are deleted afterwards
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
    /// Size of a store
    #[arg(long, default_value = "3GiB", value_name = "SIZE")]
    pub size: ByteSize,
    /// Measure with smaller amounts: this shows that the measurements work, but results are rough
    #[arg(long)]
    pub quick: bool,
    /// Number of objects (index: 50 million; recover: 1 million)
    #[arg(long, value_name = "N", value_parser = count)]
    pub objects: Option<u64>,
    /// Number of requests (trace: 10 million; files: 300,000; library: 1 million)
    #[arg(long, value_name = "N", value_parser = count)]
    pub requests: Option<u64>,
    /// Program of the peer engine for `trace`; the program for `library` is in the same folder (default:
    /// the programs that `cargo build --release --manifest-path bench/store-peers/Cargo.toml` has built)
    #[arg(long, value_name = "PROGRAM")]
    pub peers: Option<PathBuf>,
    /// Also write all results as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the figures into this folder (SVG and PNG)
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
}

/// Parses a number such as `300000`, `300k` or `10M`.
fn count(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1000),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    let number = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    number
        .filter(|n| *n > 0)
        .ok_or_else(|| format!("`{text}` is not a count; write 300000, 300k or 10M"))
}

/// State shared by the measurements.
struct Context<'a> {
    folder: &'a Path,
    size: u64,
    quick: bool,
    objects: Option<u64>,
    requests: Option<u64>,
    peers: Option<PathBuf>,
    clock: &'a Arc<dyn Clock>,
}

impl Context<'_> {
    fn quick_or<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
    /// Number of runs of a measurement and of its reference measurement.
    fn runs(&self) -> u64 {
        self.quick_or(1, 2)
    }
    fn run_time(&self) -> Duration {
        Duration::from_secs(self.quick_or(1, 4))
    }
}

type Measurement = fn(&Context<'_>) -> io::Result<Vec<Section>>;

/// Measurements in the order in which they run. The index is first, because the process must not have used
/// much memory before the index's memory is measured.
const ALL: &[(&str, Measurement)] = &[
    ("index", index::index),
    ("read", read::read),
    ("mixed", mixed::mixed),
    ("write", write::write),
    ("recover", recover::recover),
    ("trace", trace::trace),
    ("files", files::files),
    ("library", library::library),
    ("stores", stores::stores),
];

impl StoreCommand {
    /// Runs the measurement and prints its results. Returns false if something could not be measured at all.
    ///
    /// # Errors
    /// Returned if the folder cannot be written, or if the disk fails.
    pub fn run(&self, clock: &Arc<dyn Clock>) -> io::Result<bool> {
        let (name, args) = match self {
            Self::Victim(args) => return recover::victim(args, clock).map(|()| true),
            Self::Replay(args) => return trace::replay(args, clock).map(|()| true),
            Self::Index(args) => ("index", args),
            Self::Read(args) => ("read", args),
            Self::Mixed(args) => ("mixed", args),
            Self::Write(args) => ("write", args),
            Self::Recover(args) => ("recover", args),
            Self::Trace(args) => ("trace", args),
            Self::Files(args) => ("files", args),
            Self::Library(args) => ("library", args),
            Self::Stores(args) => ("stores", args),
            Self::All(args) => ("all", args),
        };
        args.measure(name, clock)
    }
}

impl StoreArgs {
    fn measure(&self, name: &str, clock: &Arc<dyn Clock>) -> io::Result<bool> {
        std::fs::create_dir_all(&self.dir)?;
        let small = ByteSize::mib(768).bytes();
        let context = Context {
            folder: &self.dir,
            size: if self.quick {
                self.size.bytes().min(small)
            } else {
                self.size.bytes()
            },
            quick: self.quick,
            objects: self.objects,
            requests: self.requests,
            peers: self.peers.clone().or_else(built_peers),
            clock,
        };
        let (mut sections, mut complete) = (Vec::new(), true);
        for (_, run) in ALL.iter().filter(|(n, _)| name == "all" || *n == name) {
            match run(&context) {
                Ok(more) => {
                    for section in more {
                        println!("{}", section.table());
                        if let Some(folder) = &self.figures {
                            section.draw(folder)?;
                        }
                        sections.push(section);
                    }
                }
                Err(error) if name == "all" => {
                    eprintln!("error: {error}");
                    complete = false;
                }
                Err(error) => return Err(error),
            }
        }
        if sections.len() > 1 {
            println!("{}", report::summary(&sections));
        }
        if let Some(path) = &self.json {
            let text = serde_json::to_string_pretty(&sections)? + "\n";
            if path.as_os_str() == "-" {
                print!("{text}");
            } else {
                std::fs::write(path, text)?;
            }
        }
        Ok(complete)
    }
}

/// Fills a store once with bodies of this many bytes. Returns the number of stored objects.
fn fill(harness: &harness::Harness, bytes: usize) -> u64 {
    let capacity = harness.disk.len();
    let mut number = 0;
    // Stops before the store is full, because a full store overwrites its oldest objects.
    while harness.used_bytes() < capacity / 100 * 92 {
        for _ in 0..512 {
            harness.put(number, bytes);
            number += 1;
        }
    }
    harness.sync();
    number
}

/// Path of the program with the peer engine foyer (bench/store-peers), if it was built.
fn built_peers() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| "bench/store-peers/target".into());
    Some(target.join("release/foxy-store-peers")).filter(|program| program.is_file())
}

/// The arguments of this process up to the word `store`. With them, this program can start itself with
/// another command of `bench store`.
fn own_command() -> Vec<String> {
    let mut before: Vec<String> = std::env::args().skip(1).collect();
    let store = before
        .iter()
        .position(|a| a == "store")
        .map_or(0, |n| n + 1);
    before.truncate(store);
    before
}
