//! The thread that searches all stored contents after a purge (sweep). It also drains a store that will be
//! taken out: it moves the used objects of this store to the other stores. When neither a sweep nor a drain
//! is needed, it reads all contents to find damaged records (scrub). It reads at bounded rates, so that it
//! does not delay requests. It also checks for changed addresses of the machine and for changed certificates.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use foxy_base::{Clock, MonoTime};
use foxy_store::{Drain, DrainStep, Engine, Scrub, ScrubStep, Sweep, SweepStep};

use super::StartError;
use super::background::Background;
use super::certificates::Certificates;
use super::local::AddressRefresh;
use crate::config::ScrubConfig;

/// Bytes that are read from disks per second. Even the slowest disks can read more per second.
const RATE: u64 = 64 << 20;
/// Time between two checks for purges.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Pause before the next step of a sweep or drain, if this step must wait for the writers of the stores. The
/// writers first make removals durable, or write moved records.
const WAIT: Duration = Duration::from_millis(20);

/// Factor by which the pauses of the scrub are lengthened while requests read from disks.
const YIELD: u32 = 4;

/// Starts the thread. If it ends during a sweep, that sweep begins again after the next start.
pub(super) fn start(
    engine: &Arc<Engine>,
    clock: &Arc<dyn Clock>,
    scrub: ScrubConfig,
    (mut addresses, mut certificates): (AddressRefresh, Certificates),
) -> Result<Background, StartError> {
    let engine = Arc::clone(engine);
    let mut scrubbing = Scrubbing {
        config: scrub,
        clock: Arc::clone(clock),
        pass: None,
        began: None,
        next: MonoTime(0),
    };
    Background::start("sweep", move |stopped| {
        let outside = (&mut addresses, &mut certificates);
        run(&engine, &mut scrubbing, outside, stopped);
    })
}

/// The state of the scrub: its current pass over all contents, and the time of its next step.
struct Scrubbing {
    config: ScrubConfig,
    clock: Arc<dyn Clock>,
    pass: Option<Scrub>,
    /// The beginning of the last pass.
    began: Option<MonoTime>,
    /// The time of the next step.
    next: MonoTime,
}

impl Scrubbing {
    /// Continues a pass, or begins a new pass when it is due. Returns the time for which the thread may
    /// pause. This is at most `POLL_INTERVAL`, so that a purge does not wait longer.
    fn step(&mut self, engine: &Arc<Engine>) -> Duration {
        let now = self.clock.mono();
        if self.config.rate == 0 || now < self.next {
            let left = self.next.since(now).max(Duration::from_millis(1));
            return if self.config.rate == 0 {
                POLL_INTERVAL
            } else {
                left.min(POLL_INTERVAL)
            };
        }
        let due = self.began.is_none_or(|b| now.since(b) >= self.config.every);
        if self.pass.is_none() && due {
            self.pass = engine.scrub();
            if self.pass.is_some() {
                self.began = Some(now);
            }
        }
        let Some(pass) = &mut self.pass else {
            return POLL_INTERVAL;
        };
        match pass.step() {
            ScrubStep::Done => {
                self.pass = None;
                POLL_INTERVAL
            }
            ScrubStep::Read { bytes, busy } => {
                let pause = Duration::from_secs_f64(bytes as f64 / self.config.rate as f64);
                self.next = now + pause * if busy { YIELD } else { 1 };
                Duration::from_millis(1)
            }
        }
    }
}

/// Continues or begins a drain. Returns the time to pause after that; `None`: no store drains.
fn drain_step(engine: &Arc<Engine>, drain: &mut Option<Drain>) -> Option<Duration> {
    if drain.is_none() {
        *drain = engine.begin_drain();
    }
    match drain.as_mut()?.step() {
        DrainStep::Read(bytes) => Some(Duration::from_nanos(bytes * 1_000_000_000 / RATE)),
        DrainStep::Wait => Some(WAIT),
        DrainStep::Done => {
            *drain = None;
            Some(Duration::ZERO)
        }
    }
}

fn run(
    engine: &Arc<Engine>,
    scrubbing: &mut Scrubbing,
    (addresses, certificates): (&mut AddressRefresh, &mut Certificates),
    stopped: &Receiver<()>,
) {
    let mut sweep: Option<Sweep> = None;
    let mut drain: Option<Drain> = None;
    loop {
        addresses.step(scrubbing.clock.mono());
        certificates.step(&*scrubbing.clock);
        let pause = match &mut sweep {
            None => {
                sweep = engine.purges().sweep();
                if sweep.is_some() {
                    Duration::ZERO
                } else if let Some(pause) = drain_step(engine, &mut drain) {
                    pause
                } else {
                    scrubbing.step(engine)
                }
            }
            Some(running) => match running.step() {
                SweepStep::Read(bytes) => Duration::from_nanos(bytes * 1_000_000_000 / RATE),
                SweepStep::Wait => WAIT,
                SweepStep::Done => {
                    sweep = None;
                    Duration::ZERO
                }
            },
        };
        if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}
