//! Reads the next request of a connection.

use std::io;

use foxy_http1::{RequestHead, RequestParts};

use super::Link;
use super::room::{
    ACTIVE_BYTES, HEAD_TRIES, IDLE_BYTES, LONG_HEAD, MEMORY, ROOM_PAUSE, head_bytes,
};
use crate::Event;
use crate::access::refusal::Refusal;
use crate::http::net::{Activity, Ticks, Transport};
use crate::http::reply::Scratch;
use crate::state::local::Local;

/// Reason why there is no next request.
#[derive(Debug)]
pub(crate) enum NoRequest {
    /// The client has closed the connection, or was silent for too long.
    Closed,
    /// The client has sent a request that is answered with an error.
    Refused(Refusal),
}

impl<T: Transport> Link<T> {
    /// Reads until the end of the next request head.
    ///
    /// # Errors
    /// Returns the reason why there is no request to answer.
    pub(crate) async fn next_request(&mut self, local: &Local) -> Result<RequestParts, NoRequest> {
        let (mut head_deadline, mut waits) = (None::<Ticks>, 0);
        loop {
            let idle = self.buf.is_empty();
            if !idle {
                let parsed = RequestHead::parse(
                    self.buf.filled(),
                    &mut self.scanner,
                    &mut self.slots,
                    &local.limits,
                );
                match parsed {
                    Ok(Some(head)) => {
                        self.io.set_activity(Activity::Work);
                        let parts = head.parts();
                        if head_deadline.is_some() {
                            self.memory.set(ACTIVE_BYTES);
                        }
                        return Ok(parts);
                    }
                    Ok(None) => {}
                    Err(reject) => return Err(NoRequest::Refused(reject.into())),
                }
            }
            let max = local.limits.head_bytes + 1;
            let read = if idle {
                self.first_bytes(local, max).await
            } else {
                let timeout = local.timeouts.head;
                let deadline = *head_deadline.get_or_insert_with(|| self.io.deadline(timeout));
                self.memory.set(head_bytes(&local.proxy.config.limits));
                let is_long = self.buf.filled().len() >= LONG_HEAD;
                match is_long && self.io.ledger().is_over() {
                    false => self.buf.fill(&self.io, max, deadline).await,
                    true => Err(io::ErrorKind::QuotaExceeded.into()),
                }
            };
            match read {
                Ok(0) => return Err(NoRequest::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut && !idle => {
                    local.count(Event::Timeouts);
                    return Err(NoRequest::Refused(Refusal {
                        status: 408,
                        reason: "head-timeout",
                    }));
                }
                Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
                    waits += 1;
                    tokio::time::sleep(ROOM_PAUSE).await;
                    if waits > HEAD_TRIES || self.io.is_doomed() {
                        return Err(NoRequest::Refused(MEMORY));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                    return Err(NoRequest::Refused(Refusal {
                        status: 431,
                        reason: "head-too-large",
                    }));
                }
                Err(_) => return Err(NoRequest::Closed),
            }
        }
    }

    /// Waits for the next request. A connection that stays idle frees its memory. A busy connection keeps its
    /// memory, so that a hit needs no allocation.
    async fn first_bytes(&mut self, local: &Local, max: usize) -> io::Result<usize> {
        let timeouts = &local.timeouts;
        let (soon, late) = (timeouts.rest.min(timeouts.idle), timeouts.idle);
        self.io.set_activity(Activity::Idle);
        self.buf.shorten();
        let deadline = self.io.deadline(soon);
        // Usually the next request has not arrived yet. So waiting first saves a read that finds nothing.
        let mut read = match self.io.readable(deadline).await {
            Ok(()) => self.buf.fill(&self.io, max, deadline).await,
            Err(error) => Err(error),
        };
        let timed_out = |read: &io::Result<usize>| {
            read.as_ref()
                .is_err_and(|error| error.kind() == io::ErrorKind::TimedOut)
        };
        if timed_out(&read) && soon < late {
            self.buf.release();
            self.scratch = Scratch::default();
            self.memory.set(IDLE_BYTES);
            let deadline = self.io.deadline(late);
            // The read below is tried even if the deadline has passed, because the request may have arrived
            // at the moment of the deadline.
            let _ = self.io.readable(deadline).await;
            read = self.buf.fill(&self.io, max, deadline).await;
        }
        self.io.set_activity(Activity::Head);
        self.memory.set(ACTIVE_BYTES);
        read
    }
}
