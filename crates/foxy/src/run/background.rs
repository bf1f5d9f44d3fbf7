//! A thread that runs until another thread stops it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::StartError;

/// A running thread that is not a worker.
#[derive(Debug)]
pub(super) struct Background {
    name: &'static str,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Background {
    /// Starts the thread `foxy-NAME`. `run` must end when its receiver is disconnected.
    pub(super) fn start(
        name: &'static str,
        run: impl FnOnce(&Receiver<()>) + Send + 'static,
    ) -> Result<Self, StartError> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("foxy-{name}"))
            .spawn(move || run(&stopped))
            .map_err(|source| StartError::Thread { what: name, source })?;
        Ok(Self { name, stop, thread })
    }

    /// Ends the thread, and waits for its end.
    pub(super) fn stop(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("the thread foxy-{} ended badly", self.name);
        }
    }
}
