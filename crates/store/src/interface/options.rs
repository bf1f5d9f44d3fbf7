//! Options of the engine, and of each store.

use std::time::Duration;

use foxy_policy::AdmissionRule;
use thiserror::Error;

/// Limits on what goes to disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionConfig {
    /// Bytes per second of new contents for all stores together; 0: no limit.
    pub write_budget: u64,
    /// The rule for objects that enter when the budget is spent.
    pub when_spent: AdmissionRule,
    /// Larger objects are not admitted when the budget is spent.
    pub size_max: u64,
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        Self {
            write_budget: 0,
            when_spent: AdmissionRule::default(),
            size_max: u64::MAX,
        }
    }
}

/// How the reads of a store are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReadMode {
    /// As the device turns out to be.
    #[default]
    Auto,
    /// Always sorted.
    Sorted,
    /// Always as they come.
    Direct,
}

/// Choices for the engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Bytes for everything the engine keeps in memory: RAM tier, index, pending objects.
    pub memory_bytes: u64,
    /// Bytes of objects that may wait to be written, over all stores (taken from `memory_bytes`).
    pub pending_bytes_max: u64,
    /// Locks that the RAM tier is divided by; rounded up to a power of two.
    pub shards: usize,
    /// Everything random follows from it. Draw it at random in production.
    pub seed: u64,
    /// Mixed into the places of keys in the index, so that nobody can choose keys that crowd one
    /// place; 0: not mixed, so that a run can be repeated. Draw it at random in production.
    pub index_secret: u64,
    /// Seed of the hashes of keys, if no store on disk says another; 0: none. Draw it at random in
    /// production, so that nobody can choose keys whose hashes agree.
    pub key_seed: u64,
    /// Payload of a fragment and largest object stored whole while there is no store, in bytes.
    pub fragment_bytes: u32,
    /// Limits on what goes to disks.
    pub admission: AdmissionConfig,
}

impl EngineConfig {
    /// The usual choices for so much memory.
    #[must_use]
    pub const fn new(memory_bytes: u64, seed: u64) -> Self {
        Self {
            memory_bytes,
            pending_bytes_max: pending(memory_bytes),
            shards: 64,
            seed,
            index_secret: 0,
            key_seed: 0,
            fragment_bytes: 250 << 10,
            admission: AdmissionConfig {
                write_budget: 0,
                when_spent: AdmissionRule::SecondUse,
                size_max: u64::MAX,
            },
        }
    }
}

/// Least bytes that may wait to be written, where half of the memory has them: with less, what is
/// gathered in locality buffers leaves no room to write used records again before their segment is
/// reused, and the disk's hit ratio falls.
const PENDING_MIN: u64 = 8 << 20;
const PENDING_MAX: u64 = 64 << 20;

/// A quarter of the memory, within bounds.
pub(crate) const fn pending(memory: u64) -> u64 {
    let least = if memory / 2 < PENDING_MIN {
        memory / 2
    } else {
        PENDING_MIN
    };
    match memory / 4 {
        quarter if quarter < least => least,
        quarter if quarter > PENDING_MAX => PENDING_MAX,
        quarter => quarter,
    }
}

/// Choices for one store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Segment length in bytes for a new store; `None`: 1/256 of the disk, 64 KiB to 32 MiB.
    pub segment_bytes: Option<u32>,
    /// Longest cluster in bytes for a new store.
    pub cluster_bytes: u32,
    /// Mean record length that summary slots are sized for.
    pub mean_object_bytes: u32,
    /// Locality buffers.
    pub buffers: u32,
    /// Bytes in each of them.
    pub buffer_bytes: u64,
    /// An object is on its way to disk at the latest so long after it was put.
    pub flush_age: Duration,
    /// Written clusters are made durable at the latest so long after they were written.
    pub sync_interval: Duration,
    /// A removal is on its way to disk at the latest so long after it was made.
    pub tombstone_delay: Duration,
    /// Bytes per second for clusters; `None`: unlimited.
    pub write_rate: Option<u64>,
    /// Bytes that reinsertion may write for each hundred bytes newly stored: 20 keeps the write
    /// amplification within 1.20. The default is where more gains nothing (docs/decisions/0031).
    pub reinsert_percent: u32,
    /// Removed keys that recovery remembers while it loads; beyond it the rest is not loaded.
    pub gone_max: usize,
    /// Formats the disk even if it holds something else. Destroys what is there.
    pub force_format: bool,
    /// Share of objects routed here, relative to other stores; `None`: the capacity in MiB.
    pub weight: Option<u32>,
    /// Identity of a new store; random from the engine's seed and the clock unless given.
    pub uuid: Option<[u8; 16]>,
    /// The order in which reads go to the disk.
    pub reads: ReadMode,
    /// Segments that one turn takes in while loading, unless they have a great many entries; the
    /// summaries of as many are read ahead.
    pub load_steps: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            segment_bytes: None,
            cluster_bytes: 512 << 10,
            mean_object_bytes: 2 << 10,
            buffers: 128,
            buffer_bytes: 64 << 10,
            flush_age: Duration::from_secs(1),
            sync_interval: Duration::from_secs(2),
            tombstone_delay: Duration::from_millis(50),
            write_rate: None,
            reinsert_percent: 20,
            gone_max: 4 << 20,
            force_format: false,
            weight: None,
            uuid: None,
            reads: ReadMode::Auto,
            load_steps: 64,
        }
    }
}

/// Why a store was not opened. The texts say what to do.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Not ours.
    #[error(
        "{disk}: holds another program's data; choose another path, or format it with --force-format (this destroys the data)"
    )]
    Foreign {
        /// The disk.
        disk: String,
    },
    /// Both superblocks are empty, but tables of a Foxy store lie behind them.
    #[error(
        "{disk}: its superblocks are empty although the tables of a Foxy store lie behind them: the beginning was wiped; check the device, or format it with --force-format (this empties the cache)"
    )]
    Wiped {
        /// The disk.
        disk: String,
    },
    /// Written by a later version of Foxy.
    #[error(
        "{disk}: was written by a newer Foxy (format {version}); use that version, or format it with --force-format (this empties the cache)"
    )]
    Newer {
        /// The disk.
        disk: String,
        /// Its format version.
        version: u16,
    },
    /// Written before the first release.
    #[error(
        "{disk}: was written by a Foxy from before the first release (format {version}), whose stores cannot be read any more; format it with --force-format (this empties the cache)"
    )]
    Older {
        /// The disk.
        disk: String,
        /// Its format version.
        version: u16,
    },
    /// Uses what this version does not know.
    #[error(
        "{disk}: uses extensions of the format ({extensions:#x}) that this Foxy does not know; use the newer version that wrote it, or format it with --force-format (this empties the cache)"
    )]
    Extended {
        /// The disk.
        disk: String,
        /// Their bits.
        extensions: u16,
    },
    /// Both superblocks are damaged.
    #[error(
        "{disk}: both superblocks are damaged ({problem}); check the device, or format it with --force-format (this empties the cache)"
    )]
    Damaged {
        /// The disk.
        disk: String,
        /// The damage to the superblocks.
        problem: String,
    },
    /// Too little room for a new store.
    #[error("{disk}: {bytes} bytes are too small for a store; give it at least {needed} bytes")]
    TooSmall {
        /// The disk.
        disk: String,
        /// Its length.
        bytes: u64,
        /// Bytes that would do.
        needed: u64,
    },
    /// Shorter than the store on it.
    #[error(
        "{disk}: is {bytes} bytes long, but the store on it needs {needed}; it was cut short: restore its size, or format it with --force-format (this empties the cache)"
    )]
    CutShort {
        /// The disk.
        disk: String,
        /// Its length.
        bytes: u64,
        /// Bytes that the store needs.
        needed: u64,
    },
    /// A choice out of range.
    #[error("{disk}: the store's {what} is out of range; correct the configuration")]
    Options {
        /// The disk.
        disk: String,
        /// The name of the option.
        what: &'static str,
    },
    /// The engine has as many stores as it can address.
    #[error("{disk}: too many stores, or more than 32 TiB in all; use fewer or smaller ones")]
    TooMany {
        /// The disk.
        disk: String,
    },
    /// This disk is open already.
    #[error("{disk}: is the same store as one that is open already; name each store once")]
    Twice {
        /// The disk.
        disk: String,
    },
    /// The device failed.
    #[error("{disk}: cannot {doing}: {source}; check the device, or run without this store")]
    Io {
        /// The disk.
        disk: String,
        /// The step.
        doing: &'static str,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl OpenError {
    /// True if the disk is at fault: the contents are lost or cannot be read, and no setting
    /// corrects that.
    #[must_use]
    pub const fn is_of_the_disk(&self) -> bool {
        matches!(
            self,
            Self::Wiped { .. } | Self::Damaged { .. } | Self::CutShort { .. } | Self::Io { .. }
        )
    }
}
