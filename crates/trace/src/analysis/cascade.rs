//! Two levels of exact LRU, memory then disk, as the Foxy papers feed their layouts: what the
//! disk is asked to do.

use crate::{Access, ByteLru};

/// Memory before disk. An object that misses both is fetched and goes to both; a disk hit goes
/// to memory too.
#[derive(Debug)]
pub struct Cascade {
    memory: ByteLru,
    disk: ByteLru,
    report: CascadeReport,
}

/// Exact counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CascadeReport {
    /// Requests.
    pub requests: u64,
    /// Answered from memory.
    pub memory_hits: u64,
    /// Answered from disk: reads.
    pub disk_hits: u64,
    /// Fetched: writes.
    pub misses: u64,
    /// Objects that left the disk, replaced versions included.
    pub deletes: u64,
}

impl Cascade {
    /// Empty levels of this many bytes.
    #[must_use]
    pub fn new(memory: u64, disk: u64) -> Self {
        Self {
            memory: ByteLru::new(memory),
            disk: ByteLru::new(disk),
            report: CascadeReport::default(),
        }
    }

    /// One request.
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
        // 1: miss, memory hit; 2: miss; 1: disk hit; 3: miss, deletes 2; 2: miss, deletes 1;
        // 3 changed: miss, delete.
        let r = cascade.report();
        assert_eq!(
            (r.requests, r.memory_hits, r.disk_hits, r.misses, r.deletes),
            (7, 1, 1, 5, 3)
        );
    }
}
