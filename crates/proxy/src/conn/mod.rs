//! One client connection: read a request, answer it, again until one side has enough.
//!
//! Hits are answered right here from the connection's own buffers. Everything that takes longer
//! gets an owned copy of the request and a future of its own on the heap.

mod admission;
mod answer;
mod artefacts;
mod failing;
mod finish;
mod follow;
mod hot;
mod images;
pub(crate) mod join;
mod large_hit;
mod local_answers;
mod mirror;
mod moved;
mod not_modified;
mod objects;
pub(crate) mod pass;
mod purge_method;
mod purger;
mod ranged;
pub(crate) mod rest;
mod secure;
mod site;
mod stream;
mod tunnel;

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foxy_http1::{FieldSlots, HeadScanner, RequestHead, RequestParts};
use foxy_tls::{Served, ServerTls};

use crate::asker::{Arrival, Asker};
use crate::gatekeeper::Counted;
use crate::ledger::{Entry, Pressure, Use};
use crate::local::Local;
use crate::net::{Doing, Io, ReadBuf, Ticks, Transport};
use crate::post::{Post, Posted};
use crate::reply::{Scratch, send_page};
use crate::rewriting::Recipient;
use crate::route::Refusal;
use crate::{Event, Outcome, Role, SiteTable};

use admission::Visiting;
pub(crate) use answer::past_the_cache;
pub(crate) use finish::Finish;
use finish::Noted;
pub(crate) use objects::lost;

/// How long a client that has closed its side is waited for while nothing can be sent to it. It may
/// have said all it wants to say, or be gone: nothing tells the two apart.
const CLOSED: Duration = Duration::from_secs(2);

/// Memory of a connection that waits for its next request, without its read buffer. An estimate.
const IDLE_BYTES: usize = 4 << 10;
/// Memory of a connection with a request, without its read buffer. An estimate; the fetch of a miss
/// has an entry for itself.
const ACTIVE_BYTES: usize = 5 << 10;

/// Memory of a connection whose head has not arrived whole: the kernel's receive queue too.
const HEAD_BYTES: usize = ACTIVE_BYTES + (16 << 10);

/// Bytes that one client's queue in the kernel takes if it does not read: the kernel fills the last
/// packet of the queue to this size whatever its limits say.
const QUEUE_BYTES: usize = 64 << 10;

/// Tries and pauses of a request that waits for memory that others give back: 5 s in all.
const ROOM_TRIES: u32 = 100;
/// Tries for the rest of a long head, 0.5 s in all: its client alone needs more than usual.
const HEAD_TRIES: u32 = 10;
const ROOM_PAUSE: Duration = Duration::from_millis(50);

/// Memory is still spent after connections that are not needed were closed.
pub(crate) const MEMORY: Refusal = Refusal {
    status: 503,
    reason: "memory-spent",
};

/// A client connection.
#[derive(Debug)]
pub(crate) struct Conn<T> {
    /// The settings for the present request.
    pub(crate) local: Rc<Local>,
    /// The settings of now, and the number of those that this connection has.
    post: Rc<Post>,
    settings: u64,
    pub(crate) io: Io<T>,
    pub(crate) buf: ReadBuf,
    pub(crate) slots: FieldSlots,
    scanner: HeadScanner,
    pub(crate) scratch: Scratch,
    pub(crate) client: Asker,
    /// The role of the present request.
    pub(crate) role: Rc<Role>,
    /// The role of requests for no mirror and no site.
    door_role: Rc<Role>,
    /// The sites of the listener, if there are several.
    sites: Option<Rc<Sites>>,
    /// The certificate that the client got.
    given: Option<Arc<Served>>,
    /// The certificate whose names alone the client may ask for.
    served: Option<Arc<Served>>,
    counted: (u64, u64),
    /// No request came yet.
    fresh: bool,
    noted: Noted,
    /// The rules for the present visit.
    visit: Option<Box<Visiting>>,
    /// The limits that count the present request.
    counted_by: Option<Rc<Counted>>,
    /// Entry of the connection, without its read buffer.
    memory: Entry,
    /// The last answer was cut: the connection ends by a reset.
    aborted: Cell<bool>,
}

/// The roles that the connections of a listener may ask for.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    /// The role of every request; for a listener of several sites, of one without a site.
    pub(crate) role: Rc<Role>,
    /// The sites, if there are several.
    pub(crate) sites: Option<Rc<Sites>>,
}

/// The sites of a listener.
#[derive(Debug)]
pub(crate) struct Sites {
    pub(crate) table: Arc<SiteTable>,
    /// Role and certificates, in the order of the table.
    pub(crate) roles: Vec<(Rc<Role>, Option<ServerTls>)>,
    /// The role of a request without a site.
    pub(crate) none: Rc<Role>,
}

/// Why there is no next request.
enum NoRequest {
    /// The client is done, or was silent for too long.
    Closed,
    /// It sent something that is answered with an error.
    Refused(Refusal),
}

impl<T: Transport> Conn<T> {
    pub(crate) fn new(post: &Rc<Post>, transport: T, peer: SocketAddr) -> Self {
        let Posted { local, door, .. } = post.current();
        let Door { role, sites } = door;
        let arrival = Arrival {
            secure: T::SECURE,
            connection: local.next_connection(),
            request: 0,
            certificate: None,
        };
        let client = Asker {
            arrival,
            ..Asker::new(&local.proxy.config.access, &role, peer)
        };
        let mut io = Io::new(transport, &local.sweep);
        io.set_closed(post.closed());
        if local.details {
            io.time_answers(&local.proxy.clock);
        }
        Self {
            io,
            noted: Noted::default(),
            visit: None,
            counted_by: None,
            buf: ReadBuf::new(),
            slots: FieldSlots::new(),
            scanner: HeadScanner::new(),
            scratch: Scratch::default(),
            counted: (0, 0),
            aborted: Cell::new(false),
            memory: local.proxy.ledger.take(Use::Connections, ACTIVE_BYTES),
            given: None,
            served: None,
            settings: post.number(),
            post: Rc::clone(post),
            fresh: true,
            local,
            client,
            door_role: Rc::clone(&role),
            role,
            sites,
        }
    }

    /// Sets the number that distinguishes the client from others; 0 if it is not counted.
    pub(crate) fn set_client(&self, client: u64) {
        self.io.set_client(client);
    }

    /// Serves the connection to its end.
    pub(crate) async fn serve(mut self) {
        loop {
            self.noted = Noted::default();
            let keep = match self.next_request().await {
                // A client may repeat a request that finds its idle connection closed.
                Ok(_) if self.post.is_closed() && !self.fresh => break,
                Ok(parts) => {
                    self.fresh = false;
                    self.renew();
                    self.answer(&parts).await
                }
                Err(NoRequest::Closed) => break,
                Err(NoRequest::Refused(refusal)) => {
                    self.refuse(refusal).await;
                    false
                }
            };
            self.count_bytes();
            if self.counted_by.take().is_some() {
                self.io.slow(None);
            }
            self.client.arrival.request += 1;
            if !keep {
                // After an orderly end a cut body could be taken for a whole one.
                if !self.aborted.get() {
                    self.linger().await;
                }
                break;
            }
        }
        self.count_bytes();
    }

    /// Takes the settings of now, for the request that has come.
    #[inline]
    fn renew(&mut self) {
        if self.settings != self.post.number() {
            self.take_settings();
        }
    }

    #[cold]
    fn take_settings(&mut self) {
        let Posted { local, door, .. } = self.post.current();
        self.settings = self.post.number();
        let access = &local.proxy.config.access;
        let client = Asker {
            arrival: self.client.arrival.clone(),
            ..Asker::new(access, &door.role, self.client.peer)
        };
        self.client = client.at(access, &door.role);
        self.visit = None;
        (self.role, self.sites) = (Rc::clone(&door.role), door.sites);
        self.door_role = door.role;
        self.local = local;
    }

    /// Sets the client of this request, if the peer is a trusted proxy.
    pub(crate) fn note_client(&mut self, parts: &RequestParts) {
        if self.client.trusted {
            let head = parts.head(self.buf.filled(), &self.slots);
            let access = &self.local.proxy.config.access;
            self.client = self.client.clone().of(access, &self.role, &head);
        }
    }

    /// Returns whether the connection may be kept after this request, as far as the request says.
    pub(crate) fn may_keep(&self, parts: &RequestParts) -> bool {
        parts.persistent() && !self.local.proxy.is_shutting_down() && !self.post.is_closed()
    }

    async fn next_request(&mut self) -> Result<RequestParts, NoRequest> {
        let (mut head_deadline, mut waits) = (None::<Ticks>, 0);
        loop {
            let idle = self.buf.is_empty();
            if !idle {
                let parsed = RequestHead::parse(
                    self.buf.filled(),
                    &mut self.scanner,
                    &mut self.slots,
                    &self.local.limits,
                );
                match parsed {
                    Ok(Some(head)) => {
                        self.io.set_doing(Doing::Work);
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
            let max = self.local.limits.head_bytes + 1;
            let read = if idle {
                self.first_bytes(max).await
            } else {
                let patience = self.local.patience.head;
                let deadline = *head_deadline.get_or_insert_with(|| self.io.deadline(patience));
                self.memory.set(HEAD_BYTES);
                self.buf.fill(&self.io, max, deadline).await
            };
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
                Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
                    waits += 1;
                    tokio::time::sleep(ROOM_PAUSE).await;
                    if waits > HEAD_TRIES {
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

    /// Waits for the next request. A connection that stays idle gives its memory back; one that
    /// does not keeps it, so that a hit allocates nothing.
    async fn first_bytes(&mut self, max: usize) -> io::Result<usize> {
        let patience = &self.local.patience;
        let (soon, late) = (patience.rest.min(patience.idle), patience.idle);
        self.io.set_doing(Doing::Idle);
        self.buf.shorten();
        let deadline = self.io.deadline(soon);
        // The next request is seldom there already: waiting first spares a look at the socket.
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
            // Also after the deadline: the request may have come together with it.
            let _ = self.io.readable(deadline).await;
            read = self.buf.fill(&self.io, max, deadline).await;
        }
        self.io.set_doing(Doing::Head);
        self.memory.set(ACTIVE_BYTES);
        read
    }

    /// A place for a body of `bytes` bytes in the send queues of the kernel, and for `held` bytes of
    /// it in memory. Short bodies need none, and get an empty entry. Waits for other clients to read
    /// their answers; those that have not read for long are closed. `None` after the patience for
    /// progress, or if this connection is closed for others.
    pub(crate) async fn queue(&self, bytes: u64, held: usize) -> Option<Entry> {
        let ledger = self.io.ledger();
        if bytes <= QUEUE_BYTES as u64 {
            return Some(ledger.empty(Use::Queues));
        }
        let deadline = self.io.deadline(self.local.patience.progress);
        let place = loop {
            let want = (QUEUE_BYTES + held).min(ledger.limit(Use::Queues));
            let place = ledger.reserve(Use::Queues, want);
            if place.is_some() {
                break place;
            }
            self.io.set_doing(Doing::Queued);
            self.local.shed_stalled();
            if self.io.is_doomed() || self.local.sweep.now() >= deadline {
                break None;
            }
            tokio::time::sleep(ROOM_PAUSE).await;
        };
        self.io.set_doing(Doing::Work);
        place
    }

    /// Waits until there is memory for more work, and closes connections for it that are not
    /// needed; false if that does not help in time.
    async fn has_room(&self) -> bool {
        let ledger = self.io.ledger();
        for _ in 0..ROOM_TRIES {
            if ledger.pressure() == Pressure::Spent {
                self.local.shed();
            }
            if !ledger.is_full() {
                return true;
            }
            tokio::time::sleep(ROOM_PAUSE).await;
        }
        self.local.count(Event::MemoryRefused);
        false
    }

    /// Answers what could not be parsed.
    async fn refuse(&mut self, refusal: Refusal) {
        let started = self.local.mono();
        let sent = send_page(
            &self.local,
            &self.io,
            &mut self.scratch,
            (refusal, Recipient::new(&self.role, &self.client)),
            None,
            false,
        )
        .await;
        let finish = Finish::refused(refusal, Outcome::BadRequest, false, sent);
        self.finished(None, started, &finish);
    }

    /// Ends the connection so that the last answer arrives: says that nothing follows, and takes
    /// what the client still sends for a moment. Closing with unread bytes would reset it. Where
    /// memory is spent, only what has arrived is taken.
    async fn linger(&mut self) {
        self.io.transport().shutdown_write();
        // Bounded by time alone: an upload that was refused early may be long.
        let deadline = match self.io.ledger().pressure() {
            Pressure::Spent => self.local.sweep.now(),
            _ => self.io.deadline(self.local.patience.linger),
        };
        self.buf.clear();
        while let Ok(1..) = self.buf.fill(&self.io, 16 << 10, deadline).await {
            self.buf.clear();
            // A client that sends without a pause must neither stay longer nor stop others.
            tokio::task::yield_now().await;
            if self.local.sweep.now() > deadline {
                break;
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
