//! The structures that the C header `hummingbird.h` defines. Order and types of the members are the same as
//! in the header.

use std::ffi::c_char;
use std::time::Duration;

use foxy_hummingbird::{Config, Statistics};

/// The C structure `hummingbird_disk`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DiskOfC {
    pub(crate) path: *const c_char,
    pub(crate) bytes: u64,
}

/// The C structure `hummingbird_config`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConfigOfC {
    pub(crate) struct_bytes: u64,
    memory_bytes: u64,
    cluster_bytes: u32,
    pack_age_ms: u32,
    sync_interval_ms: u32,
    replicas: u32,
    file_lifetime_ms: u64,
    cluster_lifetime_ms: u64,
    force_format: u32,
    reserved: u32,
}

/// The C structure `hummingbird_statistics`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct StatisticsOfC {
    writes: u64,
    write_waits: u64,
    memory_only: u64,
    deletes: u64,
    memory_hits: u64,
    disk_hits: u64,
    misses: u64,
    hints_taken: u64,
    hints_late: u64,
    replicas: u64,
    prefetched: u64,
    prefetch_hits: u64,
    stored_bytes: u64,
    device_bytes: u64,
    device_writes: u64,
    disk_files: u64,
    read_now: u64,
    memory_bytes: u64,
    waiting_bytes: u64,
    recovering: u64,
    failed_disks: u64,
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn short(span: Duration) -> u32 {
    u32::try_from(millis(span)).unwrap_or(u32::MAX)
}

impl ConfigOfC {
    /// The default settings.
    pub(crate) fn usual() -> Self {
        let usual = Config::on("", 0);
        Self {
            struct_bytes: size_of::<Self>() as u64,
            memory_bytes: usual.memory_bytes,
            cluster_bytes: usual.cluster_bytes,
            pack_age_ms: short(usual.pack_age),
            sync_interval_ms: short(usual.sync_interval),
            replicas: usual.replicas.into(),
            file_lifetime_ms: usual.file_lifetime.map_or(0, millis),
            cluster_lifetime_ms: usual.cluster_lifetime.map_or(0, millis),
            force_format: usual.force_format.into(),
            reserved: 0,
        }
    }

    /// Converts these settings to settings of the library. The list of disks in the result is empty.
    pub(crate) fn config(&self) -> Config {
        let life = |ms: u64| (ms > 0).then(|| Duration::from_millis(ms));
        Config {
            disks: Vec::new(),
            memory_bytes: self.memory_bytes,
            cluster_bytes: self.cluster_bytes,
            pack_age: Duration::from_millis(self.pack_age_ms.into()),
            sync_interval: Duration::from_millis(self.sync_interval_ms.into()),
            replicas: self.replicas != 0,
            file_lifetime: life(self.file_lifetime_ms),
            cluster_lifetime: life(self.cluster_lifetime_ms),
            force_format: self.force_format != 0,
        }
    }
}

impl From<Statistics> for StatisticsOfC {
    fn from(s: Statistics) -> Self {
        Self {
            writes: s.writes,
            write_waits: s.write_waits,
            memory_only: s.memory_only,
            deletes: s.deletes,
            memory_hits: s.memory_hits,
            disk_hits: s.disk_hits,
            misses: s.misses,
            hints_taken: s.hints_taken,
            hints_late: s.hints_late,
            replicas: s.replicas,
            prefetched: s.prefetched,
            prefetch_hits: s.prefetch_hits,
            stored_bytes: s.stored_bytes,
            device_bytes: s.device_bytes,
            device_writes: s.device_writes,
            disk_files: s.disk_files,
            read_now: s.read_now,
            memory_bytes: s.memory_bytes,
            waiting_bytes: s.waiting_bytes,
            recovering: s.recovering.into(),
            failed_disks: s.failed_disks,
        }
    }
}
