//! Two levels of exact LRU: memory before disk. The papers on Foxy (USITS'99 and later) produce disk
//! operations with such levels, and compare disk layouts with these operations. The counts show the work of
//! the disk.

use crate::{Access, ByteLru};

/// A memory level before a disk level. An object that misses both levels is fetched and enters both. An
/// object that hits on disk enters memory too.
#[derive(Debug)]
pub struct Cascade {
    memory: ByteLru,
    disk: ByteLru,
    report: CascadeReport,
}

/// The counts of the cascade (the two levels, one after the other).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CascadeReport {
    /// Number of requests.
    pub requests: u64,
    /// Number of requests answered from memory.
    pub memory_hits: u64,
    /// Number of requests answered from disk. Each of them is a disk read.
    pub disk_hits: u64,
    /// Number of requests that were fetched. Each of them is a disk write, unless the object is larger than
    /// the disk level.
    pub misses: u64,
    /// Number of objects that left the disk, including replaced versions.
    pub deletes: u64,
}

impl Cascade {
    /// Creates empty levels of `memory` and `disk` bytes.
    #[must_use]
    pub fn new(memory: u64, disk: u64) -> Self {
        Self {
            memory: ByteLru::new(memory),
            disk: ByteLru::new(disk),
            report: CascadeReport::default(),
        }
    }

    /// Counts one request.
    pub fn add(&mut self, object: u64, size: u64) {
        let report = &mut self.report;
        report.requests += 1;
        if self.memory.access(object, size) == Access::Hit {
            report.memory_hits += 1;
            return;
        }
        match self
            .disk
            .access_with(object, size, |_, _| report.deletes += 1)
        {
            Access::Hit => report.disk_hits += 1,
            Access::Miss => report.misses += 1,
            Access::Changed => {
                report.misses += 1;
                report.deletes += 1;
            }
        }
    }

    /// The counts so far.
    #[must_use]
    pub const fn report(&self) -> CascadeReport {
        self.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_by_hand() {
        let mut cascade = Cascade::new(10, 25);
        for (object, size) in [(1, 10), (1, 10), (2, 10), (1, 10), (3, 10), (2, 10), (3, 9)] {
            cascade.add(object, size);
        }
        // Results in the order of the requests: object 1 misses. Object 1 hits in memory. Object 2 misses.
        // Object 1 hits on disk. Object 3 misses, and object 2 is deleted. Object 2 misses, and object 1 is
        // deleted. Object 3 has a different size, so it misses, and its old version is deleted.
        let r = cascade.report();
        assert_eq!(
            (r.requests, r.memory_hits, r.disk_hits, r.misses, r.deletes),
            (7, 1, 1, 5, 3)
        );
    }
}
