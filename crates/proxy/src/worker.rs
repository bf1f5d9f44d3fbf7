//! One worker: a thread with its own runtime, listeners, pools and disk queues.

use std::io;
use std::sync::Arc;

use crate::{Listener, LogSink, Proxy};

/// What a worker is started with.
#[derive(Debug)]
pub struct Worker {
    /// What all workers share.
    pub proxy: Arc<Proxy>,
    /// This worker's number, from 0; chooses its counters.
    pub index: usize,
    /// Its listening sockets.
    pub listeners: Vec<Listener>,
    /// Where its finished requests go.
    pub log: Box<dyn LogSink>,
}

impl Worker {
    /// Serves on the calling thread until [`Proxy::shutdown`] and the end of what is in flight.
    ///
    /// # Errors
    /// Only what prevents the start: the runtime or a listener cannot be set up.
    pub fn run(self) -> io::Result<()> {
        Ok(())
    }
}
