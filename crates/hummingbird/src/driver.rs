//! The daemons of a disk (section 4.5 of the Hummingbird paper), and the threads that run them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use foxy_store::{WakeHandle, Writer};

use crate::Error;

/// The daemons of one disk: packing, freeing of memory and disk space, recovery of older files. A program
/// that opens the library by [`crate::Hummingbird::on_disks`] calls [`Driver::turn`] on its own thread; other
/// programs do not need a driver. If a driver is dropped without [`Driver::finish`], the effect is that of a
/// crash.
#[derive(Debug)]
pub struct Driver(Writer);

impl Driver {
    pub(crate) const fn new(writer: Writer) -> Self {
        Self(writer)
    }

    /// Does all pending work without waiting for the disk. Returns the time until there is further work;
    /// `None` means that further work comes only from a call of the library or from the end of a disk
    /// operation.
    pub fn turn(&mut self) -> Option<Duration> {
        let turn = self.0.turn();
        if turn.busy {
            Some(Duration::ZERO)
        } else {
            turn.wait
        }
    }

    /// True if no file waits to be packed, no disk operation is under way, and everything is recovered and
    /// durable.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    /// Writes everything, so that the next start has nothing to scan. Returns false if `at_most` was too
    /// short or the disk refuses writes.
    pub fn finish(mut self, at_most: Duration) -> bool {
        self.0.drain(at_most)
    }
}

/// Longest time that closing takes.
const CLOSE_MAX: Duration = Duration::from_secs(20);

/// Threads that run the daemons of all disks.
#[derive(Debug)]
pub(crate) struct Threads {
    stop: Arc<AtomicBool>,
    threads: Vec<(WakeHandle, JoinHandle<bool>)>,
}

impl Threads {
    pub(crate) fn start(writers: Vec<Writer>) -> Result<Self, Error> {
        let mut started = Self {
            stop: Arc::default(),
            threads: Vec::new(),
        };
        for mut writer in writers {
            let stop = Arc::clone(&started.stop);
            let wake = writer.wake_handle();
            let thread = std::thread::Builder::new().name("hummingbird".into());
            let thread = thread.spawn(move || {
                while !stop.load(Ordering::Acquire) {
                    let turn = writer.turn();
                    writer.park(turn);
                }
                writer.drain(CLOSE_MAX)
            });
            started.threads.push((wake, thread.map_err(Error::Thread)?));
        }
        Ok(started)
    }

    /// Ends all threads; true if everything was written. A second call does nothing.
    pub(crate) fn end(&mut self) -> bool {
        self.stop.store(true, Ordering::Release);
        self.threads.iter().for_each(|(wake, _)| wake.wake());
        let ended = self.threads.drain(..);
        // The code waits for all threads, even if the first one reports a failure.
        ended.fold(true, |all, (_, thread)| {
            thread.join().unwrap_or(false) && all
        })
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}
