//! Memory of the measured process, sampled while a load runs.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use super::sockets::{Sockets, Sum};

/// Time between two samples.
const INTERVAL: Duration = Duration::from_millis(100);

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// Resident (VmRSS).
    pub(super) resident: u64,
    /// Most that was resident since the last [`forget_peak`] (VmHWM).
    pub(super) peak: u64,
    /// Resident and not of a file.
    pub(super) anonymous: u64,
    /// Resident pages of files: program code, for the most part.
    pub(super) files: u64,
}

impl Memory {
    /// Reads /proc; `None` if the process has ended.
    pub(super) fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kib << 10)
        };
        Some(Self {
            resident: field("VmRSS:")?,
            peak: field("VmHWM:")?,
            anonymous: field("RssAnon:")?,
            files: field("RssFile:")?,
        })
    }
}

/// Makes the kernel forget the peak of a process, so that the next peak belongs to the next load.
pub(super) fn forget_peak(pid: u32) {
    // A kernel that does not know this keeps the older peak, which is reported too high.
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

/// Largest figures of a measurement, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peaks {
    /// Resident memory.
    pub(super) resident: u64,
    /// Kernel memory of sockets.
    pub(super) sockets: u64,
    /// Resident memory and sockets at the same time.
    pub(super) sum: u64,
    /// At that time: the process, and its part that is not of files.
    pub(super) memory: Memory,
    /// At that time: the sockets.
    pub(super) open: Sum,
    /// Samples that were taken.
    pub(super) samples: u64,
}

impl Peaks {
    /// Adds a sample. `grown`: the peak of the process rose since the sample before, so that it
    /// was reached in the time between the two.
    fn add(&mut self, memory: Memory, sockets: Sum, grown: bool) {
        let resident = if grown { memory.peak } else { memory.resident };
        self.samples += 1;
        self.resident = self.resident.max(memory.peak);
        self.sockets = self.sockets.max(sockets.bytes);
        if resident + sockets.bytes > self.sum {
            self.sum = resident + sockets.bytes;
            self.memory = memory;
            self.open = sockets;
        }
    }
}

/// A thread that samples.
#[derive(Debug)]
pub(super) struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Peaks>,
}

impl Sampler {
    /// Samples the process `pid`.
    pub(super) fn start(pid: u32, mut sockets: Sockets) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let (mut peaks, mut before) = (Peaks::default(), 0);
            loop {
                let last = stopped.load(Ordering::Relaxed);
                let Some(memory) = Memory::of(pid) else {
                    return peaks;
                };
                let sum = sockets.sum().unwrap_or_default();
                peaks.add(memory, sum, memory.peak > before);
                before = memory.peak;
                if last {
                    return peaks;
                }
                sleep(INTERVAL);
            }
        });
        Self { stop, thread }
    }

    /// Takes a last sample and ends.
    pub(super) fn stop(self) -> Peaks {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_read() {
        let memory = Memory::of(std::process::id()).unwrap();
        assert!(memory.resident > 100_000 && memory.peak >= memory.anonymous);
        assert!(Memory::parse("State:\tZ (zombie)\n").is_none());
    }

    #[test]
    fn a_peak_between_two_samples_counts() {
        let mut peaks = Peaks::default();
        let memory = Memory {
            resident: 10,
            peak: 50,
            ..Memory::default()
        };
        peaks.add(memory, Sum { count: 1, bytes: 5 }, true);
        peaks.add(memory, Sum { count: 1, bytes: 7 }, false);
        assert_eq!((peaks.sum, peaks.resident, peaks.sockets), (55, 50, 7));
    }
}
