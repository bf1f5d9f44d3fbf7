//! A queue's descriptor, polled by the tokio runtime of the thread that owns the queue.
//!
//! It is here because registering a descriptor with tokio needs a promise (`unsafe`) that only
//! this crate may give.

use crate::Queue;
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Tells when a queue may have completions.
///
/// Keep it beside its queue and drop both together: it holds a duplicate of the descriptor, which
/// keeps a ring alive.
#[derive(Debug)]
pub struct Readiness(AsyncFd<OwnedFd>);

impl Readiness {
    /// Watches `queue`.
    ///
    /// # Errors
    /// `Unsupported` if the queue has no descriptor, otherwise what the system says.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub fn of(queue: &dyn Queue) -> io::Result<Self> {
        let fd = queue
            .event_fd()
            .ok_or(io::ErrorKind::Unsupported)?
            .try_clone_to_owned()?;
        // SAFETY: the runtime asks for a descriptor that stays open and the same as long as the
        // registration. The OwnedFd that is moved into the registration is such a descriptor;
        // `Readiness` never hands it out.
        let registered = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
        Ok(Self(registered?))
    }

    /// Waits until `reap` may find something; call that next, and wait again if it does not.
    /// Cancel safe: nothing is lost if the future is dropped.
    ///
    /// # Errors
    /// When the runtime shuts down.
    pub async fn ready(&self) -> io::Result<()> {
        // Cleared before the caller reaps, so that a completion that arrives meanwhile makes the
        // descriptor ready again.
        self.0.readable().await?.clear_ready();
        Ok(())
    }

    /// As [`ready`](Self::ready), for one task's own polling.
    ///
    /// # Errors
    /// When the runtime shuts down.
    pub fn poll_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let guard = std::task::ready!(self.0.poll_read_ready(context));
        Poll::Ready(guard.map(|mut guard| guard.clear_ready()))
    }
}
