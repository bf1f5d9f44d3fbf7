//! The thread that sweeps after purges: at a bounded rate, off every request's way.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use foxy_store::{Engine, Sweep, SweepStep};

use super::StartError;

/// Bytes read from disks in a second: a part of what the slowest disks give.
const RATE: u64 = 64 << 20;
/// How often it looks for purges.
const LOOK: Duration = Duration::from_millis(200);
/// How often it looks whether removals are durable.
const WAIT: Duration = Duration::from_millis(20);

/// The running thread.
#[derive(Debug)]
pub(super) struct Sweeper {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Sweeper {
    /// Starts it.
    pub(super) fn start(engine: &Arc<Engine>) -> Result<Self, StartError> {
        let (stop, stopped) = channel();
        let engine = Arc::clone(engine);
        let thread = std::thread::Builder::new()
            .name("foxy-sweep".to_owned())
            .spawn(move || run(&engine, &stopped))
            .map_err(|source| StartError::Thread {
                what: "sweep",
                source,
            })?;
        Ok(Self { stop, thread })
    }

    /// Ends it; a sweep under way is begun anew after the next start.
    pub(super) fn stop(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("the sweeping thread ended badly");
        }
    }
}

fn run(engine: &Arc<Engine>, stopped: &Receiver<()>) {
    let mut sweep: Option<Sweep> = None;
    loop {
        let pause = match &mut sweep {
            None => {
                sweep = engine.sweep();
                if sweep.is_some() {
                    Duration::ZERO
                } else {
                    LOOK
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
