//! Memory of the measured process, sampled while a load runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use super::sockets::{Sockets, Sum};
use crate::kit::Memory;

/// Time between two samples.
pub(super) const OFTEN: Duration = Duration::from_millis(100);
/// Time between two samples, if the latency of other clients is the result of the load. For each sample the
/// kernel lists all sockets. This takes several milliseconds of a processor and delays the other threads.
pub(super) const RARELY: Duration = Duration::from_secs(1);

/// The greatest values that were measured while a load ran, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peaks {
    /// Resident memory.
    pub(super) resident: u64,
    /// Kernel memory of sockets.
    pub(super) sockets: u64,
    /// Greatest sum of resident memory and socket memory, taken at the same moment.
    pub(super) sum: u64,
    /// Memory of the process at the moment of the greatest sum.
    pub(super) memory: Memory,
    /// Sockets at the moment of the greatest sum.
    pub(super) open: Sum,
    /// Number of samples.
    pub(super) samples: u64,
}

impl Peaks {
    /// Adds a sample. `grown` is true if the process has reached a new peak since the previous sample. Then
    /// the peak is used in place of the resident memory at the moment of the sample.
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

/// A thread that takes samples.
#[derive(Debug)]
pub(super) struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Peaks>,
}

impl Sampler {
    /// Starts to sample the process `pid`, with this time between two samples.
    pub(super) fn start(pid: u32, mut sockets: Sockets, interval: Duration) -> Self {
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
                sleep(interval);
            }
        });
        Self { stop, thread }
    }

    /// Takes a last sample and ends the thread.
    pub(super) fn stop(self) -> Peaks {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
