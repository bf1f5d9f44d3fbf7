//! Checkpoints: a caller can wait until all data that was written is durable (section 4.6 of the Hummingbird
//! paper).

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use foxy_store::{Durable, SyncTicket};

use crate::{Error, Hummingbird};

/// A checkpoint: it covers all files that were written or deleted before it began. Dropping this value does
/// not cancel the checkpoint.
#[derive(Clone, Debug)]
pub struct Checkpoint(SyncTicket);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Checkpoint {
    /// True if the checkpoint has ended, successfully or not.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.is_done()
    }

    /// Waits for the end of the checkpoint.
    ///
    /// # Errors
    /// Returns [`Error::NotDurable`] if a disk refuses writes, or if the daemons of a disk ended before they
    /// had written everything.
    pub fn wait(self) -> Result<(), Error> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut ticket = pin!(self.0);
        loop {
            match ticket.as_mut().poll(&mut context) {
                Poll::Ready(Durable::Yes) => return Ok(()),
                Poll::Ready(Durable::Failed) => return Err(Error::NotDurable),
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl Hummingbird {
    /// Begins to pack all waiting files into clusters, and to make these files and all deletions durable
    /// (section 4.5: the pack daemon "can be synchronously called"; section 4.6: the log of changes). The
    /// call returns immediately; [`Checkpoint::wait`] waits for the end.
    pub fn begin_checkpoint(&self) -> Checkpoint {
        Checkpoint(self.inner.engine.sync())
    }

    /// Begins a checkpoint and waits for its end. Do not call this function on the thread that calls
    /// [`crate::Driver::turn`], because the checkpoint would never end.
    ///
    /// # Errors
    /// Returns [`Error::NotDurable`] if a disk refuses writes, or if the daemons of a disk ended before they
    /// had written everything.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.begin_checkpoint().wait()
    }
}
