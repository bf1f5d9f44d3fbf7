//! A real partition, loop device or preallocated file, for cache systems that use a disk without a file
//! system.
//!
//! Requests bypass the page cache and use whole blocks: a request that begins or ends within a block is
//! extended to whole blocks, as on a raw device. All written bytes are a fixed pattern. The simulated systems
//! remember which object they wrote at which position, and do not use the bytes that they read. The time of
//! device requests is real. If the process computes or sleeps, only its simulated clock advances, and no real
//! time passes. Writes to the device make no progress during this simulated time, so the process later waits
//! longer for them.

use std::{fmt, path::Path, time::Duration};

use foxy_base::{Clock as _, SystemClock};
use foxy_disk::{BufPool, Disk, FileDisk, Op as DiskOp, OpenOptions, Queue};

use crate::model::{Device, DriveStats, Op, SimTime};

/// Maximum number of requests under way.
const DEPTH: u32 = 256;
/// Pattern of written data. A device is refused if one of its checked bytes is neither zero nor this pattern.
const PATTERN: u8 = 0x5a;
/// Number of bytes at the beginning of the device that are checked for foreign data.
const LOOKED_AT: u64 = 1 << 20;
/// Longest wait for the kernel before the queue is polled again.
const POLL_TIMEOUT: Duration = Duration::from_secs(1);
/// Bit that is set in a request's token if the process waits for the request. The other bits are the
/// request's length in bytes.
const ASKED: u64 = 1 << 63;

/// A real device used by one process, for [`Raw::on`](crate::model::Raw::on).
pub struct Partition {
    disk: FileDisk,
    queue: Box<dyn Queue>,
    buffers: BufPool,
    clock: SystemClock,
    /// Byte address of the end of the last request.
    head: u64,
    /// Bytes of requests under way that the process waits for.
    asked: u64,
    /// Bytes of writes under way that the process does not wait for.
    behind: u64,
    /// True if the device returned an error.
    failed: bool,
    stats: DriveStats,
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Partition").field(&self.disk).finish()
    }
}

impl Partition {
    /// Opens `bytes` bytes of a device or file. A missing file is created.
    ///
    /// # Errors
    /// Returns an error text if the device or file cannot be opened or created, is too short, or contains
    /// foreign data.
    pub fn open(path: &Path, bytes: u64) -> Result<Self, String> {
        let there = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
        let old = path.metadata().is_ok_and(|m| m.is_file() && m.len() > 0);
        let options = OpenOptions {
            // A file with contents is never extended. If it is too short, it is refused below.
            create_len: (!old).then_some(bytes),
            ..OpenOptions::default()
        };
        let disk = FileDisk::open(path, &options).map_err(|e| e.to_string())?;
        let mut start = vec![0; LOOKED_AT.min(disk.len()) as usize];
        disk.read_at(0, &mut start).map_err(|e| there(&e))?;
        if start.iter().any(|byte| *byte != 0 && *byte != PATTERN) {
            let text = "holds something, which would be overwritten; name a new file, or a device \
                        whose first MiB is empty";
            return Err(there(&text));
        }
        if disk.len() < bytes {
            let text = format!("has {} bytes, needed are {bytes}", disk.len());
            return Err(there(&text));
        }
        let queue = disk.open_queue(DEPTH).map_err(|e| there(&e))?;
        Ok(Self {
            disk,
            queue,
            buffers: BufPool::new(DEPTH as usize),
            clock: SystemClock::default(),
            head: 0,
            asked: 0,
            behind: 0,
            failed: false,
            stats: DriveStats::default(),
        })
    }

    fn timed(&mut self, work: impl FnOnce(&mut Self)) -> SimTime {
        let begun = self.clock.mono();
        work(self);
        let took = self.clock.mono().since(begun).as_nanos();
        let took = SimTime::from_nanos(u64::try_from(took).unwrap_or(u64::MAX));
        self.stats.busy += took;
        took
    }

    fn submit(&mut self, op: Op, at: u64, len: u64, asked: u64) {
        let block = u64::from(self.disk.block_bytes());
        let from = at / block * block;
        let end = (at + len).next_multiple_of(block).min(self.disk.len());
        let Some(bytes) = end.checked_sub(from).filter(|bytes| *bytes > 0) else {
            return;
        };
        self.head = end;
        match asked {
            ASKED => self.asked += bytes,
            _ => self.behind += bytes,
        }
        let len = bytes as usize;
        let mut buffer = self.buffers.take(len);
        self.queue.submit(match op {
            Op::Read => {
                self.stats.reads += 1;
                self.stats.read_bytes += bytes;
                DiskOp::read(bytes | asked, from, len, buffer)
            }
            Op::Write => {
                self.stats.writes += 1;
                self.stats.written_bytes += bytes;
                buffer.set_len(len);
                buffer.fill(PATTERN);
                DiskOp::write(bytes | asked, from, len, buffer)
            }
        });
    }

    /// Collects finished requests until `enough` is true, or until the device has failed.
    fn poll_until(&mut self, enough: impl Fn(&Self) -> bool) {
        let mut done = Vec::new();
        while !enough(self) && !self.failed {
            self.failed |= self.queue.wait(POLL_TIMEOUT).is_err();
            self.queue.reap(&mut done);
            for completion in done.drain(..) {
                let bytes = completion.token & !ASKED;
                match completion.token & ASKED {
                    ASKED => self.asked -= bytes,
                    _ => self.behind -= bytes,
                }
                self.failed |= completion.result.is_err();
            }
        }
    }
}

impl Device for Partition {
    fn head(&self) -> u64 {
        self.head
    }

    fn stats(&self) -> &DriveStats {
        &self.stats
    }

    fn has_failed(&self) -> bool {
        self.failed
    }

    fn wait(&mut self, op: Op, ranges: &[(u64, u64)]) -> SimTime {
        self.timed(|partition| {
            for (at, len) in ranges {
                partition.submit(op, *at, *len, ASKED);
            }
            partition.poll_until(|p| p.asked == 0);
        })
    }

    fn begin(&mut self, at: u64, len: u64) {
        self.submit(Op::Write, at, len, 0);
        self.failed |= self.queue.flush_submissions().is_err();
    }

    fn wait_below(&mut self, bytes: u64) -> SimTime {
        self.timed(|partition| partition.poll_until(|p| p.behind <= bytes))
    }

    fn flush(&mut self) -> SimTime {
        self.timed(|partition| {
            partition.poll_until(|p| p.behind == 0);
            partition.failed |= partition.disk.flush().is_err();
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_done_and_counted_in_whole_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("partition");
        let mut partition = Partition::open(&path, 1 << 20).unwrap();
        assert!(partition.wait(Op::Write, &[(8192, 4096)]) > SimTime::ZERO);
        assert_eq!(partition.head(), 12288);
        partition.begin(65536, 65536);
        partition.begin(131072, 65536);
        let _took = partition.wait(Op::Read, &[(100, 10), (9000, 100)]);
        let _took = partition.wait_below(0);
        let _took = partition.flush();
        let stats = partition.stats();
        assert_eq!((stats.reads, stats.writes), (2, 3));
        assert_eq!(stats.written_bytes, 4096 + 2 * 65536);
        let block = u64::from(partition.disk.block_bytes());
        assert_eq!(stats.read_bytes, 2 * block);
        assert!(!partition.has_failed());
        drop(partition);
        let bytes = std::fs::read(&path).unwrap();
        let written = bytes.iter().filter(|b| **b == PATTERN).count() as u64;
        assert_eq!((bytes.len(), written), (1 << 20, 4096 + 2 * 65536));
        // The file of an earlier run can be opened again, but a file with contents is not extended.
        let longer = Partition::open(&path, 2 << 20).unwrap_err();
        assert!(longer.contains("needed are 2097152"), "{longer}");
        assert!(Partition::open(&path, 1 << 20).is_ok());
    }

    #[test]
    fn what_holds_something_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letters");
        let mut text = vec![0; 100_000];
        text[50_000] = b'!';
        std::fs::write(&path, &text).unwrap();
        let error = Partition::open(&path, 1 << 20).unwrap_err();
        assert!(error.contains("letters: holds something"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), text);
    }
}
