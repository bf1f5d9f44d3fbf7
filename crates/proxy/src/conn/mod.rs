//! One client connection: read a request, answer it, again until one side has enough.
//!
//! Hits are answered right here from the connection's own buffers. Everything that takes longer
//! gets an owned copy of the request and a future of its own on the heap.

mod answer;
mod finish;
pub(crate) mod follow;
mod local_answers;
pub(crate) mod pass;
pub(crate) mod rest;
mod stream;
mod tunnel;

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use foxy_http1::{FieldSlots, HeadScanner, RequestHead, RequestParts};

use crate::local::Local;
use crate::net::{Io, ReadBuf, Ticks, Transport};
use crate::reply::{Scratch, send_page};
use crate::route::Refusal;
use crate::{Event, Outcome, Role};

pub(crate) use answer::Shown;
pub(crate) use finish::Finish;

/// A client connection.
#[derive(Debug)]
pub(crate) struct Conn<T> {
    pub(crate) local: Rc<Local>,
    pub(crate) io: Io<T>,
    pub(crate) buf: ReadBuf,
    pub(crate) slots: FieldSlots,
    scanner: HeadScanner,
    pub(crate) scratch: Scratch,
    pub(crate) client: SocketAddr,
    pub(crate) role: Rc<Role>,
    counted: (u64, u64),
}

/// Why there is no next request.
enum NoRequest {
    /// The client is done, or was silent for too long.
    Closed,
    /// It sent something that is answered with an error.
    Refused(Refusal),
}

impl<T: Transport> Conn<T> {
    pub(crate) fn new(local: Rc<Local>, transport: T, client: SocketAddr, role: Rc<Role>) -> Self {
        Self {
            io: Io::new(transport, &local.sweep),
            buf: ReadBuf::new(),
            slots: FieldSlots::new(),
            scanner: HeadScanner::new(),
            scratch: Scratch::default(),
            counted: (0, 0),
            local,
            client,
            role,
        }
    }

    /// Serves the connection to its end.
    pub(crate) async fn serve(mut self) {
        loop {
            let keep = match self.next_request().await {
                Ok(parts) => self.answer(parts).await,
                Err(NoRequest::Closed) => break,
                Err(NoRequest::Refused(refusal)) => {
                    self.refuse(refusal).await;
                    false
                }
            };
            self.count_bytes();
            if !keep {
                self.linger().await;
                break;
            }
        }
        self.count_bytes();
    }

    /// Whether the connection may be kept after this request, as far as the request says.
    pub(crate) fn may_keep(&self, parts: &RequestParts) -> bool {
        parts.persistent() && !self.local.proxy.is_shutting_down()
    }

    async fn next_request(&mut self) -> Result<RequestParts, NoRequest> {
        let mut head_deadline: Option<Ticks> = None;
        loop {
            let parsed = RequestHead::parse(
                self.buf.filled(),
                &mut self.scanner,
                &mut self.slots,
                &self.local.limits,
            );
            match parsed {
                Ok(Some(head)) => return Ok(head.parts()),
                Ok(None) => {}
                Err(reject) => return Err(NoRequest::Refused(reject.into())),
            }
            let idle = self.buf.is_empty();
            let patience = &self.local.patience;
            let deadline = if idle {
                self.buf.release();
                self.io.deadline(patience.idle)
            } else {
                *head_deadline.get_or_insert_with(|| self.io.deadline(patience.head))
            };
            let max = self.local.limits.head_bytes + 1;
            self.io.set_idle(idle);
            let read = self.buf.fill(&self.io, max, deadline).await;
            self.io.set_idle(false);
            match read {
                Ok(0) => return Err(NoRequest::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut && !idle => {
                    self.local.count(Event::Timeouts);
                    return Err(NoRequest::Refused(Refusal {
                        status: 408,
                        reason: "head-timeout",
                    }));
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

    /// Answers what could not be parsed.
    async fn refuse(&mut self, refusal: Refusal) {
        let started = self.local.mono();
        let sent = send_page(
            &self.local,
            &self.io,
            &mut self.scratch,
            refusal,
            None,
            false,
        )
        .await;
        let finish = Finish {
            outcome: Outcome::BadRequest,
            reason: refusal.reason,
            status: refusal.status,
            body: sent.unwrap_or(0),
            ..Finish::default()
        };
        self.finished(None, started, &finish);
    }

    /// Ends the connection so that the last answer arrives: says that nothing follows, and takes
    /// what the client still sends for a moment. Closing with unread bytes would reset it.
    async fn linger(&mut self) {
        self.io.transport().shutdown_write();
        let deadline = self.io.deadline(self.local.patience.linger);
        let mut budget = 256 << 10;
        loop {
            self.buf.clear();
            match self.buf.fill(&self.io, 16 << 10, deadline).await {
                Ok(n) if n > 0 && budget > n => budget -= n,
                _ => return,
            }
        }
    }

    /// Adds the bytes since the last call to the counters.
    fn count_bytes(&mut self) {
        let now = (self.io.received(), self.io.sent());
        let counters = self.local.counters();
        counters.add(Event::BytesIn, now.0 - self.counted.0);
        counters.add(Event::BytesOut, now.1 - self.counted.1);
        self.counted = now;
    }
}
