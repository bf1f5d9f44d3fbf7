//! Options of the engine, and of each store.

use std::time::Duration;

use foxy_policy::AdmissionRule;
use thiserror::Error;

/// The limits for the objects that are written to disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionConfig {
    /// Bytes per second of new contents for all stores together; 0: no limit.
    pub write_budget: u64,
    /// The rule for objects that arrive when the budget is spent.
    pub when_spent: AdmissionRule,
    /// When the budget is spent, objects with more than this number of bytes are not admitted.
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

/// The order of the reads of a store. Sorted reads are sent in the order of their positions on the disk, and
/// direct reads in the order in which they arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReadMode {
    /// Reads are sorted or direct; the engine chooses by the measured reads of the device.
    #[default]
    Auto,
    /// Reads are always sorted.
    Sorted,
    /// Reads are always direct.
    Direct,
}

/// Options of the engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Bytes for everything that the engine keeps in memory: RAM tier, index, pending objects.
    pub memory_bytes: u64,
    /// Maximum number of bytes of all objects that wait to be written, over all stores. These bytes are a
    /// part of `memory_bytes`.
    pub pending_bytes_max: u64,
    /// The number of shards of the RAM tier, each with its own lock. It is rounded up to a power of two;
    /// with little memory the engine makes fewer shards.
    pub shards: usize,
    /// The seed of all random choices. Draw it at random in production.
    pub seed: u64,
    /// A secret that is mixed into the hashes by which the index chooses buckets. So an attacker cannot
    /// choose keys that fill one bucket. With 0 nothing is mixed in, so that a run can be repeated. Draw it
    /// at random in production.
    pub index_secret: u64,
    /// Seed of the hashes of keys. A store records its seed on its disk. So if the first opened store already
    /// has contents, its seed is used instead. After a call of
    /// [`Engine::compare_memberships`](crate::Engine::compare_memberships), the seed of the first trusted
    /// store is used. With 0 the hashes have no seed. Draw it at random in production, so that an attacker
    /// cannot choose keys with equal hashes.
    pub key_seed: u64,
    /// The length in bytes of a fragment's payload, and of the largest object that is stored whole. It is
    /// used only while there is no store.
    pub fragment_bytes: u32,
    /// The limits for the objects that are written to disks.
    pub admission: AdmissionConfig,
}

impl EngineConfig {
    /// Returns the usual options for an engine with `memory_bytes` bytes of memory.
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

/// The least number of bytes that [`pending`] returns. (If half of the memory is less, [`pending`] returns
/// that half.) With fewer pending bytes, the objects in locality buffers (which collect the objects of a
/// group before they are written) would leave no memory for used records, which are written again before
/// their segment is reused. The disk's hit ratio would fall.
const PENDING_MIN: u64 = 8 << 20;
const PENDING_MAX: u64 = 64 << 20;

/// Returns the number of bytes that may wait to be written if the engine has `memory` bytes. This is a
/// quarter of the memory, but at least [`PENDING_MIN`] and at most [`PENDING_MAX`]. If half of the memory is
/// less than [`PENDING_MIN`], it is half of the memory.
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

/// Options of one store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Segment length in bytes for a new store. `None`: 1/256 of the disk, but at least 64 KiB and at
    /// most 32 MiB.
    pub segment_bytes: Option<u32>,
    /// Maximum length of a cluster in bytes, for a new store. A cluster contains records and removals, and is
    /// written with one write.
    pub cluster_bytes: u32,
    /// Mean record length in bytes. From it the size of the slots is calculated; a slot lists the records of
    /// one segment.
    pub mean_object_bytes: u32,
    /// Number of locality buffers. Each buffer collects the objects of one group before they are written.
    pub buffers: u32,
    /// Bytes in each locality buffer.
    pub buffer_bytes: u64,
    /// Longest time from the put of an object until its write begins.
    pub flush_age: Duration,
    /// Longest time from the write of a cluster until it is made durable.
    pub sync_interval: Duration,
    /// Longest time from a removal until its write begins.
    pub tombstone_delay: Duration,
    /// Bytes per second for clusters; `None`: unlimited.
    pub write_rate: Option<u64>,
    /// Reinsertion writes used records again before their segment is reused. This is the number of bytes that
    /// it may write for each hundred newly stored bytes: 20 keeps the write amplification within 1.20. Values
    /// above the default bring no gain (docs/decisions/0031).
    pub reinsert_percent: u32,
    /// Maximum number of removed keys that recovery remembers while it loads. If more keys are removed
    /// meanwhile, the segments that are not loaded yet count as lost.
    pub removed_keys_max: usize,
    /// Formats the disk even if it contains something else. This destroys the present contents.
    pub force_format: bool,
    /// Share of new objects that go to this store, relative to the other stores; `None`: the capacity
    /// in MiB.
    pub weight: Option<u32>,
    /// Identity of a new store. Without a value, the engine makes a random identity from its seed and
    /// the clock.
    pub uuid: Option<[u8; 16]>,
    /// The order in which reads are sent to the disk.
    pub reads: ReadMode,
    /// Maximum number of segments that the writer loads in one call of
    /// [`Writer::turn`](crate::Writer::turn). If the segments have very many entries, one call loads fewer.
    /// The summaries of the segments for the next two calls are read ahead.
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
            removed_keys_max: 4 << 20,
            force_format: false,
            weight: None,
            uuid: None,
            reads: ReadMode::Auto,
            load_steps: 64,
        }
    }
}

/// The reason why a store was not opened. The texts state what the operator can do.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The disk contains the data of another program.
    #[error(
        "{disk}: holds another program's data; choose another path, or format it with --force-format (this destroys the data)"
    )]
    Foreign {
        /// The name of the disk.
        disk: String,
    },
    /// Both superblocks are empty, but the tables of a Foxy store follow them.
    #[error(
        "{disk}: its superblocks are empty although the tables of a Foxy store lie behind them: the beginning was wiped; check the device, or format it with --force-format (this empties the cache)"
    )]
    Wiped {
        /// The name of the disk.
        disk: String,
    },
    /// The store was written by a later version of Foxy.
    #[error(
        "{disk}: was written by a newer Foxy (format {version}); use that version, or format it with --force-format (this empties the cache)"
    )]
    Newer {
        /// The name of the disk.
        disk: String,
        /// The format version of the store.
        version: u16,
    },
    /// The store was written before the first release.
    #[error(
        "{disk}: was written by a Foxy from before the first release (format {version}), whose stores cannot be read any more; format it with --force-format (this empties the cache)"
    )]
    Older {
        /// The name of the disk.
        disk: String,
        /// The format version of the store.
        version: u16,
    },
    /// The store uses extensions of the format that this version does not know.
    #[error(
        "{disk}: uses extensions of the format ({extensions:#x}) that this Foxy does not know; use the newer version that wrote it, or format it with --force-format (this empties the cache)"
    )]
    Extended {
        /// The name of the disk.
        disk: String,
        /// The bits of the unknown extensions.
        extensions: u16,
    },
    /// Both superblocks are damaged.
    #[error(
        "{disk}: both superblocks are damaged ({problem}); check the device, or format it with --force-format (this empties the cache)"
    )]
    Damaged {
        /// The name of the disk.
        disk: String,
        /// The damage to the superblocks.
        problem: String,
    },
    /// The disk is too small for a new store.
    #[error("{disk}: {bytes} bytes are too small for a store; give it at least {needed} bytes")]
    TooSmall {
        /// The name of the disk.
        disk: String,
        /// The length of the disk, in bytes.
        bytes: u64,
        /// A sufficient length, in bytes.
        needed: u64,
    },
    /// The disk is shorter than the store on it.
    #[error(
        "{disk}: is {bytes} bytes long, but the store on it needs {needed}; it was cut short: restore its size, or format it with --force-format (this empties the cache)"
    )]
    CutShort {
        /// The name of the disk.
        disk: String,
        /// The length of the disk, in bytes.
        bytes: u64,
        /// The bytes that the store needs.
        needed: u64,
    },
    /// An option is out of its range.
    #[error("{disk}: the store's {what} is out of range; correct the configuration")]
    Options {
        /// The name of the disk.
        disk: String,
        /// The name of the option.
        what: &'static str,
    },
    /// The engine already has the maximum number of stores that it can address.
    #[error("{disk}: too many stores, or more than 32 TiB in all; use fewer or smaller ones")]
    TooMany {
        /// The name of the disk.
        disk: String,
    },
    /// The store on this disk is already open.
    #[error("{disk}: is the same store as one that is open already; name each store once")]
    Twice {
        /// The name of the disk.
        disk: String,
    },
    /// The device failed.
    #[error("{disk}: cannot {doing}: {source}; check the device, or run without this store")]
    Io {
        /// The name of the disk.
        disk: String,
        /// The step that failed.
        doing: &'static str,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

impl OpenError {
    /// True if the disk is at fault: the contents are lost or cannot be read, and no change of settings
    /// corrects that.
    #[must_use]
    pub const fn is_of_the_disk(&self) -> bool {
        matches!(
            self,
            Self::Wiped { .. } | Self::Damaged { .. } | Self::CutShort { .. } | Self::Io { .. }
        )
    }
}
