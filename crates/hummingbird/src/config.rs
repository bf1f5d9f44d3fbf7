//! Settings of the library (sections 4 and 4.4 of the Hummingbird paper: cluster size, memory, lifetimes,
//! disks).

use std::path::PathBuf;
use std::time::Duration;

use foxy_base::hash64;
use foxy_store::{EngineConfig, StoreOptions};

use crate::Error;

/// A file or block device that holds files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskPath {
    /// Path of the file or device. A file is created if it is missing.
    pub path: PathBuf,
    /// Number of bytes that are used. `None` means the complete device, or the complete existing file.
    pub bytes: Option<u64>,
}

/// Settings that are chosen when the library is opened. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The disks. Files are spread over them (section 4: "size and name of the disks").
    pub disks: Vec<DiskPath>,
    /// Memory for everything: contents of files, files that wait for their cluster, and the index. The
    /// contents of [`crate::File`]s that a caller keeps need memory in addition.
    pub memory_bytes: u64,
    /// Bytes of a cluster. The files of a cluster lie side by side on the disk and are read together (section
    /// 4.3: "the size of a cluster is tunable"). The best size in the paper is 64 KB.
    pub cluster_bytes: u32,
    /// Longest time from the writing of a file until it is packed into a cluster (section 4.3: "as
    /// late as possible"). A crash loses files that are not packed.
    pub pack_age: Duration,
    /// Longest time from the writing of a cluster until the cluster is durable.
    pub sync_interval: Duration,
    /// Effect of a hint whose second file is already in a cluster. If true, the second file is written once
    /// more, beside the first file of the hint (section 4.3: "it can still be added to the current cluster if
    /// the file is in memory"). If false, the hint is too late.
    pub replicas: bool,
    /// Time from the writing of a file until the file is no longer found (section 4.5). `None` means no
    /// limit.
    pub file_lifetime: Option<Duration>,
    /// A file is no longer found when this time has passed since the writing of the last file of its cluster
    /// (section 4.5). The library does not know when the last file was written. It assumes that the last file
    /// was written [`Config::pack_age`] after the file itself. `None` means no limit.
    pub cluster_lifetime: Option<Duration>,
    /// If true, a disk is formatted even if it contains other data. This destroys the data.
    pub force_format: bool,
}

/// Least memory, in bytes, that is enough for all parts of the library.
const MEMORY_MIN: u64 = 4 << 20;

impl Config {
    /// The default settings for one disk of which `bytes` bytes are used.
    #[must_use]
    pub fn on(path: impl Into<PathBuf>, bytes: u64) -> Self {
        let path = path.into();
        Self {
            disks: vec![DiskPath {
                path,
                bytes: Some(bytes),
            }],
            memory_bytes: 256 << 20,
            cluster_bytes: 64 << 10,
            pack_age: Duration::from_secs(10),
            sync_interval: Duration::from_secs(2),
            replicas: true,
            file_lifetime: None,
            cluster_lifetime: None,
            force_format: false,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let out = |what, why| Err(Error::Config { what, why });
        if self.memory_bytes < MEMORY_MIN {
            return out("memory_bytes", "4 MiB at least");
        }
        if !(4 << 10..=256 << 10).contains(&self.cluster_bytes) {
            return out("cluster_bytes", "4 KiB to 256 KiB");
        }
        Ok(())
    }

    pub(crate) fn engine(&self, seed: u64) -> EngineConfig {
        EngineConfig {
            index_secret: hash64(seed, b"index"),
            ..EngineConfig::new(self.memory_bytes, seed)
        }
    }

    pub(crate) fn store(&self) -> StoreOptions {
        // Locality buffers, which collect the files of clusters, may use an eighth of the memory for data
        // that waits to be written. The rest of this memory is for clusters that are being written.
        let waiting = EngineConfig::new(self.memory_bytes, 0).pending_bytes_max;
        let buffers = waiting / 8 / u64::from(self.cluster_bytes);
        StoreOptions {
            buffers: u32::try_from(buffers.clamp(4, 4096)).unwrap_or(4096),
            buffer_bytes: u64::from(self.cluster_bytes),
            flush_age: self.pack_age,
            sync_interval: self.sync_interval,
            force_format: self.force_format,
            ..StoreOptions::default()
        }
    }
}
