//! The parameters that `run` and `sweep` share. Many of them are lists, and there is a run for every
//! combination of values.

use foxy_base::ByteSize;

use crate::{
    layout::{Calls, LayoutSpec},
    levels::{LevelsConfig, PolicyKind, Watermarks},
    run::{Backend, FsKind, RunConfig, RunError, Workload},
};

/// Parameters of runs. Each list is one axis of a sweep; `run` needs a single value in each list.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Parameters {
    /// Source of requests: dec, dec-large, isp, nlanr, polygraph or zipf (with :REQUESTS), or an access log
    #[arg(long, default_value = "dec:4000000")]
    pub(super) workload: Workload,
    /// Seed of generated requests
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Number of disk operations after which a run stops; 0: at the end of the workload
    #[arg(long, default_value_t = 1_000_000)]
    pub(super) ops: u64,
    /// Size of the memory level before the disk
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "512MiB",
        allow_negative_numbers = true
    )]
    pub(super) ram: Vec<ByteSize>,
    /// Capacity for objects on disk, in bytes
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "2GiB",
        allow_negative_numbers = true
    )]
    pub(super) disk: Vec<ByteSize>,
    #[arg(help = PolicyKind::CHOICES)]
    #[arg(long, value_delimiter = ',', default_value = "lru")]
    pub(super) ram_policy: Vec<PolicyKind>,
    /// Replacement policy of the disk; values as for the memory
    #[arg(long, value_delimiter = ',', default_value = "lru")]
    pub(super) disk_policy: Vec<PolicyKind>,
    /// Low and high water mark of the disk as shares of its capacity, such as 0.90:0.95
    #[arg(long)]
    pub(super) watermarks: Option<Watermarks>,
    /// Layout of the disk: simple, squid, multiple-dirs, buddy[:BLOCKS], stream, stream-packetizer,
    /// lazy-reads[:N], loc[:B] or lazy-reads-loc[:B]
    #[arg(long, value_delimiter = ',', default_value = "stream-packetizer")]
    pub(super) layout: Vec<LayoutSpec>,
    /// Share of the STREAM family's file that objects may fill
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "0.71",
        allow_negative_numbers = true
    )]
    pub(super) utilisation: Vec<f64>,
    /// Page size of the packetizer
    #[arg(long, default_value = "8KiB")]
    pub(super) page: ByteSize,
    /// Size of a locality buffer
    #[arg(long, value_delimiter = ',', default_value = "64KiB")]
    pub(super) buffer: Vec<ByteSize>,
    /// Longest wait of a lazy read, in milliseconds
    #[arg(long, default_value_t = 500.0, allow_negative_numbers = true)]
    pub(super) timeout_ms: f64,
    /// Call that writes into a file that several objects share: mmap or write. If not given: mmap for the
    /// STREAM family on a modelled drive, write in all other cases
    #[arg(long)]
    pub(super) calls: Option<Calls>,
    /// State of the shared files before the first operation. If not given, the file of the STREAM family has
    /// its full size (there), and the files of BUDDY are empty (grow)
    #[arg(long, value_enum)]
    pub(super) files: Option<SharedFiles>,
    /// Name of a modelled drive
    #[arg(long, value_delimiter = ',', default_value = "st15150wc")]
    pub(super) drive: Vec<String>,
    /// File system: ufs (of Solaris), ffs, ffs-async, ffs-soft, journal or raw
    #[arg(long, value_delimiter = ',', default_value = "ufs")]
    pub(super) fs: Vec<FsKind>,
    /// Folder for real files instead of a modelled drive; it should be on a file system of its own
    #[arg(long)]
    pub(super) dir: Option<std::path::PathBuf>,
    /// Memory for file pages
    #[arg(long, default_value = "320MiB")]
    pub(super) page_cache: ByteSize,
}

/// State of the shared files (the files in which several objects are stored) before the first operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SharedFiles {
    /// The files have their full size and contents.
    There,
    /// The files are empty and grow as they are written.
    Grow,
}

impl Parameters {
    /// Returns every combination of the values. The layouts are the outermost loop.
    ///
    /// # Errors
    /// Returns an error if, in one of the combinations, a parameter is impossible, no drive has the given
    /// name, or the drive is too small.
    pub(super) fn configs(&self) -> Result<Vec<RunConfig>, RunError> {
        let mut configs = Vec::new();
        for layout in &self.layout {
            for utilisation in &self.utilisation {
                for buffer in &self.buffer {
                    for backend in self.backends() {
                        configs.extend(self.levels().into_iter().map(|levels| RunConfig {
                            workload: self.workload.clone(),
                            seed: self.seed,
                            levels,
                            ops: self.ops,
                            layout: *layout,
                            utilisation: *utilisation,
                            page: self.page.bytes(),
                            buffer: buffer.bytes(),
                            timeout_ms: self.timeout_ms,
                            file_exists: self.file_exists(*layout),
                            calls: self.calls_of(*layout),
                            backend: backend.clone(),
                        }));
                    }
                }
            }
        }
        for config in &configs {
            config.check()?;
            config.backend.check_room(config.levels.disk)?;
        }
        Ok(configs)
    }

    fn file_exists(&self, layout: LayoutSpec) -> bool {
        let given = self.files.map(|files| files == SharedFiles::There);
        given.unwrap_or_else(|| layout.is_stream())
    }

    fn calls_of(&self, layout: LayoutSpec) -> Calls {
        let usual = match self.dir {
            Some(_) => Calls::Write,
            None => RunConfig::calls(layout),
        };
        self.calls.unwrap_or(usual)
    }

    fn backends(&self) -> Vec<Backend> {
        let backend = |drive: &String, fs: &FsKind| Backend {
            drive: drive.clone(),
            fs: *fs,
            page_cache: self.page_cache.bytes(),
            dir: self.dir.clone(),
        };
        self.drive
            .iter()
            .flat_map(|d| self.fs.iter().map(move |f| backend(d, f)))
            .collect()
    }

    fn levels(&self) -> Vec<LevelsConfig> {
        let mut all = Vec::new();
        for ram in &self.ram {
            for ram_policy in &self.ram_policy {
                for disk in &self.disk {
                    all.extend(self.disk_policy.iter().map(|disk_policy| LevelsConfig {
                        ram: ram.bytes(),
                        ram_policy: *ram_policy,
                        disk: disk.bytes(),
                        disk_policy: *disk_policy,
                        watermarks: self.watermarks,
                    }));
                }
            }
        }
        all
    }
}
