//! A queue's descriptor, polled by the tokio runtime of the thread that owns the queue.
//!
//! This code is in this crate because registration of a descriptor with tokio needs a promise
//! (`unsafe`), and only this crate may use `unsafe`.

use crate::Queue;
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Reports when a queue may have completions.
///
/// Keep it beside its queue and drop both together, because it contains a duplicate of the queue's
/// descriptor, which stays open until this value is dropped.
#[derive(Debug)]
pub struct Readiness(AsyncFd<OwnedFd>);

impl Readiness {
    /// Watches `queue`.
    ///
    /// # Errors
    /// `Unsupported` if the queue has no descriptor, otherwise the error of the system.
    ///
    /// # Panics
    /// If called outside a tokio runtime with I/O enabled.
    pub fn of(queue: &dyn Queue) -> io::Result<Self> {
        let fd = queue
            .event_fd()
            .ok_or(io::ErrorKind::Unsupported)?
            .try_clone_to_owned()?;
        // SAFETY: the runtime requires a descriptor that stays open and unchanged as long as the registration
        // exists. The OwnedFd that is moved into the registration meets this requirement; `Readiness` never
        // returns it to a caller.
        let registered = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
        Ok(Self(registered?))
    }

    /// Waits until `reap` may return something. Call `reap` next, and wait again if it returns
    /// nothing. This is cancel safe: no wake-up is lost if the future is dropped.
    ///
    /// # Errors
    /// If the runtime shuts down.
    pub async fn ready(&self) -> io::Result<()> {
        // The flag is cleared before the caller reaps, so that a completion that arrives meanwhile
        // makes the descriptor ready again.
        self.0.readable().await?.clear_ready();
        Ok(())
    }

    /// As [`ready`](Self::ready), for code that implements a poll function itself.
    ///
    /// # Errors
    /// If the runtime shuts down.
    pub fn poll_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let guard = std::task::ready!(self.0.poll_read_ready(context));
        Poll::Ready(guard.map(|mut guard| guard.clear_ready()))
    }
}
