//! The cache levels of the papers: memory, then disk. Their output is a list of disk operations.
//!
//! The rules are from section 3 of the USITS'99 paper and of its journal version. A request that is answered
//! from memory never reaches the disk level. A request that is answered from disk is a URL-read, and the
//! object enters memory too. A miss is fetched, enters memory and disk, and is a URL-write. The eviction of
//! an object from the disk is a URL-delete. The URL-deletes that free space for a new object precede its
//! URL-write. A new version of an object is a miss that first deletes the old version. Objects that the disk
//! policy refuses are not written.

mod config;
mod lru_pair;
mod op;
mod store;

pub use config::{LevelsConfig, Watermarks};
pub use foxy_policy::{AnyCache, PolicyKind};
pub use op::{DiskOp, DiskOpKind};

use foxy_trace::Request;
use serde::Serialize;
use store::Store;

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Answered from memory.
    RamHit,
    /// Answered from disk.
    DiskHit,
    /// Fetched for the first time, or again after an eviction.
    Miss,
    /// Fetched because another version was cached.
    Modified,
    /// The object is not cacheable, or it is not cached and its size is not known. No level answers or stores
    /// it.
    Bypass,
}

/// The counts of all requests that the levels have handled, and of the resulting disk operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LevelCounts {
    /// Number of requests. Bypassed requests do not count.
    pub requests: u64,
    /// Bytes of these requests.
    pub request_bytes: u64,
    /// Number of requests answered from memory.
    pub ram_hits: u64,
    /// Bytes answered from memory.
    pub ram_hit_bytes: u64,
    /// Number of requests answered from disk: URL-reads.
    pub disk_hits: u64,
    /// Bytes answered from disk.
    pub disk_hit_bytes: u64,
    /// Number of requests that were fetched, including new versions.
    pub misses: u64,
    /// Number of misses that replaced another version.
    pub modified: u64,
    /// URL-writes: misses that the disk level accepted.
    pub writes: u64,
    /// Bytes of URL-writes.
    pub write_bytes: u64,
    /// Number of URL-deletes.
    pub deletes: u64,
    /// Number of requests that reached no level.
    pub bypassed: u64,
}

impl LevelCounts {
    /// Number of disk operations.
    #[must_use]
    pub const fn disk_ops(&self) -> u64 {
        self.disk_hits + self.writes + self.deletes
    }

    /// Share of requests that hit in either level, 0 to 1.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        ratio(self.ram_hits + self.disk_hits, self.requests)
    }

    /// Share of bytes that hit in either level, 0 to 1.
    #[must_use]
    pub fn byte_hit_ratio(&self) -> f64 {
        ratio(self.ram_hit_bytes + self.disk_hit_bytes, self.request_bytes)
    }
}

/// `part / whole`; 0 if `whole` is 0.
#[must_use]
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Size, version and server of a cached object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    size: u64,
    version: u32,
    server: u32,
}

impl Stamp {
    const fn of(request: &Request) -> Self {
        Self {
            size: request.size,
            version: request.version,
            server: request.server,
        }
    }

    /// True if the request is for this version: the version numbers are equal, and the sizes are equal if the
    /// request contains a size.
    const fn is(self, request: &Request) -> bool {
        self.version == request.version && (request.size == 0 || self.size == request.size)
    }
}

/// The memory level and the disk level.
pub struct Levels {
    config: LevelsConfig,
    store: Store,
    counts: LevelCounts,
}

impl std::fmt::Debug for Levels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Levels")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Levels {
    /// Creates two empty levels.
    #[must_use]
    pub fn new(config: LevelsConfig) -> Self {
        Self {
            config,
            store: Store::new(&config),
            counts: LevelCounts::default(),
        }
    }

    /// Handles one request. The resulting disk operations are appended to `ops` in order.
    pub fn request(&mut self, request: &Request, ops: &mut Vec<DiskOp>) -> Outcome {
        let outcome = self.decide(request, ops);
        let counts = &mut self.counts;
        if outcome == Outcome::Bypass {
            counts.bypassed += 1;
            return outcome;
        }
        counts.requests += 1;
        counts.request_bytes += request.size;
        match outcome {
            Outcome::RamHit => {
                counts.ram_hits += 1;
                counts.ram_hit_bytes += request.size;
            }
            Outcome::DiskHit => {
                counts.disk_hits += 1;
                counts.disk_hit_bytes += request.size;
            }
            Outcome::Modified => {
                counts.misses += 1;
                counts.modified += 1;
            }
            Outcome::Miss | Outcome::Bypass => counts.misses += 1,
        }
        outcome
    }

    fn decide(&mut self, request: &Request, ops: &mut Vec<DiskOp>) -> Outcome {
        if !request.is_cacheable() {
            return Outcome::Bypass;
        }
        let before = ops.len();
        let outcome = self.store.request(request, ops);
        if matches!(outcome, Outcome::Miss | Outcome::Modified) {
            self.count_ops(&ops[before..]);
            let after = ops.len();
            self.sweep(ops);
            self.counts.deletes += (ops.len() - after) as u64;
        }
        outcome
    }

    /// Counts the disk operations of a miss.
    fn count_ops(&mut self, ops: &[DiskOp]) {
        for op in ops {
            match op.kind {
                DiskOpKind::Write => {
                    self.counts.writes += 1;
                    self.counts.write_bytes += op.size;
                }
                DiskOpKind::Delete => self.counts.deletes += 1,
                DiskOpKind::Read => {}
            }
        }
    }

    /// The replacement daemon: if the used share has reached the high mark, evicts objects down to the low
    /// mark.
    fn sweep(&mut self, ops: &mut Vec<DiskOp>) {
        let Some(marks) = self.config.watermarks else {
            return;
        };
        let capacity = self.config.disk as f64;
        if (self.disk_used() as f64) < marks.high * capacity {
            return;
        }
        while self.disk_used() as f64 > marks.low * capacity {
            let Some((object, stamp)) = self.store.evict() else {
                return;
            };
            ops.push(op(DiskOpKind::Delete, object, stamp));
        }
    }

    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> &LevelCounts {
        &self.counts
    }

    /// Bytes of the objects that are on disk.
    #[must_use]
    pub fn disk_used(&self) -> u64 {
        self.store.disk_used()
    }

    /// Objects that are on disk.
    #[must_use]
    pub fn disk_objects(&self) -> usize {
        self.store.disk_objects()
    }
}

const fn op(kind: DiskOpKind, object: u64, stamp: Stamp) -> DiskOp {
    DiskOp {
        kind,
        object,
        size: if stamp.size == 0 { 1 } else { stamp.size },
        server: stamp.server,
    }
}

#[cfg(test)]
mod tests;
