//! One request and its answer on a connection to an origin.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use foxy_base::{Fields, MonoTime, rule, tokens};
use foxy_http1::{BodyReader, FieldSlots, HeadScanner, ResponseHead, ResponseParts, write};
use foxy_mirror::Digest;

use super::UpstreamError;
use super::connect::connect;
use super::pool::Pooled;
use crate::cache::owned_request::OwnedRequest;
use crate::http::destination::Destination;
use crate::http::net::{BodyError, Io, OriginStream, Piece, ReadBuf, Ticks, next_piece};
use crate::origin::origins::OutstandingRequest;
use crate::origin::screened::Held;
use crate::origin::timeouts::OriginTimeoutTicks;
use crate::state::ledger::Pressure;
use crate::state::local::Local;
use crate::{Event, Mirrored};

/// A connection to an origin, with its buffers.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) io: Rc<Io<OriginStream>>,
    pub(crate) buf: ReadBuf,
    pub(crate) slots: FieldSlots,
    scanner: HeadScanner,
    pub(crate) peer: SocketAddr,
    pub(crate) timeouts: OriginTimeoutTicks,
    /// Time limit for the answer. It starts with the first wait after a request.
    wait: Option<Wait>,
    /// Time at which the last request was sent. It is cleared when the answer begins.
    asked: Option<MonoTime>,
    /// The mirror of the last request, and the digest that the answer must have. `None` if the last request
    /// was not for a mirror.
    mirrored: Option<(Arc<Mirrored>, Option<Digest>)>,
    /// True if the body of the present answer is compressed by gzip although its head does not state this.
    coded: bool,
    /// The screened document that replaces the body of the present answer, if there is one.
    held: Option<Box<Held>>,
}

/// Largest number of interim answers to one request. A larger number is an error.
const INTERIM_MAX: u8 = 32;

/// Time limit for one answer. Interim answers do not extend it.
#[derive(Clone, Copy, Debug)]
struct Wait {
    deadline: Ticks,
    interims_left: u8,
}

/// An [`Upstream`] in use. When this value is dropped, the connection is closed. To keep the connection, the
/// caller uses [`give_back`](Self::give_back).
#[derive(Debug)]
pub(crate) struct Leased {
    pub(crate) up: Upstream,
    born: Ticks,
    /// True if the connection has carried other requests before. The origin may have closed such a connection
    /// since the last request.
    pub(crate) reused: bool,
    counted: (u64, u64),
    /// The request under way at an origin of a site, if the connection carries one.
    outstanding: Option<OutstandingRequest>,
    /// The destination of the connection, if it is not the destination of the request. This is the case if
    /// the connection goes through a parent, or to a server that a redirect has named.
    through: Option<Box<Destination>>,
}

impl Leased {
    /// Returns a connection to `to`. If `fresh` is false, the connection comes from the pool. If `fresh` is
    /// true, or if the pool has no connection to `to`, a new connection is opened.
    pub(crate) async fn get(
        local: &Local,
        to: &Destination,
        fresh: bool,
    ) -> Result<Self, UpstreamError> {
        while !fresh && let Some(pooled) = local.pool.take(to, local.sweep.now()) {
            let reached = rule!(
                "access: a kept connection to a denied address is not used",
                to.parent.is_some() || to.reach.has(pooled.connection.peer.ip()),
                true
            );
            if reached && let Some(leased) = Self::again(local, pooled) {
                return Ok(leased);
            }
        }
        let (stream, peer) = connect(&local.proxy, local.counters(), to).await?;
        let up = Upstream {
            io: Rc::new(Io::new(stream, &local.sweep)),
            buf: ReadBuf::new(),
            slots: FieldSlots::new(),
            scanner: HeadScanner::new(),
            peer,
            timeouts: OriginTimeoutTicks::of(local, &to.timeouts),
            wait: None,
            asked: None,
            mirrored: None,
            coded: false,
            held: None,
        };
        Ok(Self {
            up,
            born: local.sweep.now(),
            reused: false,
            counted: (0, 0),
            outstanding: None,
            through: None,
        })
    }

    /// Notes that the connection carries this request, which is under way at an origin of a site.
    pub(crate) fn of(&mut self, outstanding: OutstandingRequest) {
        self.outstanding = Some(outstanding);
    }

    /// Notes the destination of the connection, which is not the destination of the request. See the field
    /// `through`.
    pub(crate) fn by(mut self, to: Destination) -> Self {
        self.through = Some(Box::new(to));
        self
    }

    /// If the request is for a mirror, notes this mirror and the digest that the answer must have.
    pub(super) fn set_mirrored(&mut self, local: &Local, req: &OwnedRequest) {
        let part = req.role.mirrored();
        self.up.mirrored = part.map(|part| {
            let expected = part.expected(&local.proxy.expected, req.target());
            (Arc::clone(part), expected)
        });
    }

    /// Returns the request under way at an origin of a site, if the connection carries one.
    pub(crate) const fn outstanding(&self) -> Option<&OutstandingRequest> {
        self.outstanding.as_ref()
    }

    /// Prepares a pooled connection for use. Returns `None` if the origin has closed the connection, or has
    /// sent bytes although there was no request.
    fn again(local: &Local, pooled: Pooled<Upstream>) -> Option<Self> {
        let silent = pooled.connection.io.try_read(&mut [0]);
        if silent.is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock) {
            local.count(Event::UpstreamReused);
            let io = &pooled.connection.io;
            let counted = (io.received(), io.sent());
            return Some(Self {
                up: pooled.connection,
                born: pooled.born,
                reused: true,
                counted,
                outstanding: None,
                through: None,
            });
        }
        None
    }

    /// Gives the connection back to the pool. This is permitted only after a complete exchange.
    pub(crate) fn give_back(mut self, local: &Local, to: &Destination) {
        self.count(local);
        if !self.up.buf.is_empty() || local.proxy.is_shutting_down() {
            return;
        }
        // The empty buffers of a thousand idle connections need 16 MB. An idle connection frees its buffer
        // when memory is short, or after some time. A busy connection keeps its buffer, because it would
        // otherwise need a new buffer for each answer.
        if local.proxy.ledger.pressure() > Pressure::Low {
            self.up.rest();
        }
        self.up.wait = None;
        self.up.mirrored = None;
        self.up.held = None;
        let to = self
            .outstanding
            .as_ref()
            .and_then(OutstandingRequest::chosen)
            .unwrap_or(to);
        let through = self.through.take();
        let to = through.as_deref().unwrap_or(to);
        let pooled = Pooled {
            connection: self.up,
            born: self.born,
        };
        local.pool.put(to, pooled, local.sweep.now());
    }

    /// Adds to the counters the numbers of bytes that were received and sent since the last call of this
    /// function.
    pub(crate) fn count(&mut self, local: &Local) {
        let now = (self.up.io.received(), self.up.io.sent());
        let counters = local.counters();
        counters.add(Event::OriginBytesIn, now.0 - self.counted.0);
        counters.add(Event::OriginBytesOut, now.1 - self.counted.1);
        self.counted = now;
    }

    /// Sends the head of a request with a body to the origin `to`.
    pub(crate) async fn open_one(
        local: &Local,
        to: &Destination,
        request: &[u8],
    ) -> Result<Self, UpstreamError> {
        let mut leased = Self::get(local, to, false).await?;
        let timeout = leased.up.timeouts.progress;
        match leased.up.send(local, request, timeout).await {
            Err(UpstreamError::Closed) if leased.reused => {
                let mut leased = Self::get(local, to, true).await?;
                leased.up.send(local, request, timeout).await?;
                Ok(leased)
            }
            Err(error) => Err(error),
            Ok(()) => Ok(leased),
        }
    }

    /// Does the same as [`ask`](Self::ask), but the caller has already chosen the origin `to`.
    pub(crate) async fn ask_one(
        local: &Local,
        to: &Destination,
        request: &[u8],
        replay: bool,
    ) -> Result<(Self, ResponseParts), UpstreamError> {
        let mut leased = Self::get(local, to, false).await?;
        let timeout = leased.up.timeouts.progress;
        let mut first = leased.up.send(local, request, timeout).await;
        if first.is_ok() {
            match leased.up.next_head(local).await {
                Ok(head) => return Ok((leased, head)),
                Err(error) => first = Err(error),
            }
        }
        let dead = matches!(first, Err(UpstreamError::Closed)) && leased.up.buf.is_empty();
        if !(dead && leased.reused && replay) {
            return Err(first.err().unwrap_or(UpstreamError::Closed));
        }
        local.count(Event::UpstreamRetried);
        let mut leased = Self::get(local, to, true).await?;
        leased.up.send(local, request, timeout).await?;
        let head = leased.up.next_head(local).await?;
        Ok((leased, head))
    }
}

impl Upstream {
    /// Frees the read buffer, which the connection does not need until its next request.
    pub(crate) fn rest(&mut self) {
        self.buf.release();
    }

    /// Sends the head of a request.
    pub(crate) async fn send(
        &mut self,
        local: &Local,
        head: &[u8],
        timeout: Ticks,
    ) -> Result<(), UpstreamError> {
        self.asked = Some(local.mono());
        self.io
            .write(head, timeout)
            .await
            .map_err(|error| lost(&error))
    }

    /// Restarts the time limit for the answer. The caller does this while it still sends the body of the
    /// request.
    pub(crate) fn wait_on(&mut self) {
        let deadline = self.io.deadline(self.timeouts.first_byte);
        if let Some(wait) = &mut self.wait {
            wait.deadline = deadline;
        }
    }

    /// Reads until the head of the final answer. `first` is a head that was read already. `interim` receives
    /// the heads that come before the final head.
    pub(crate) async fn final_head(
        &mut self,
        local: &Local,
        first: ResponseParts,
        mut interim: impl FnMut(&ResponseHead<'_>),
    ) -> Result<ResponseParts, UpstreamError> {
        let mut parts = first;
        while parts.is_interim() {
            interim(&parts.head(self.buf.filled(), &self.slots));
            self.buf.consume(parts.len());
            parts = self.next_head(local).await?;
        }
        Ok(parts)
    }

    /// Reads the next head of an answer. This may be an interim head. Its bytes stay in the buffer until the
    /// caller consumes [`ResponseParts::len`] bytes. Cancel safe.
    pub(crate) async fn next_head(
        &mut self,
        local: &Local,
    ) -> Result<ResponseParts, UpstreamError> {
        let wait = *self.wait.get_or_insert_with(|| Wait {
            deadline: self.io.deadline(self.timeouts.first_byte),
            interims_left: INTERIM_MAX,
        });
        let deadline = wait.deadline;
        loop {
            let parsed = ResponseHead::parse(
                self.buf.filled(),
                &mut self.scanner,
                &mut self.slots,
                &local.limits,
            );
            match parsed {
                Ok(Some(head)) => {
                    let parts = head.parts();
                    self.count(parts)?;
                    self.note_answer(local, parts);
                    return self.seen(local, parts);
                }
                Ok(None) => {}
                Err(reject) => return Err(UpstreamError::BadResponse(reject.reason)),
            }
            let max = local.limits.head_bytes + 1;
            match self.buf.fill(&self.io, max, deadline).await {
                Ok(0) if self.buf.is_empty() => return Err(UpstreamError::Closed),
                Ok(0) => return Err(UpstreamError::BadResponse("head-truncated")),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Err(UpstreamError::FirstByteTimeout);
                }
                Err(error) => return Err(lost(&error)),
            }
        }
    }

    /// Returns the head in the buffer, in the form for the cache. If it is the head of a final answer from a
    /// mirror's upstream, this function changes it first.
    pub(super) fn seen(
        &mut self,
        local: &Local,
        parts: ResponseParts,
    ) -> Result<ResponseParts, UpstreamError> {
        match &self.mirrored {
            Some((part, expected)) if !parts.is_interim() => {
                let (part, expected) = (Arc::clone(part), *expected);
                self.of_mirror(local, parts, (&part, expected))
            }
            _ => Ok(parts),
        }
    }

    #[cold]
    fn of_mirror(
        &mut self,
        local: &Local,
        parts: ResponseParts,
        (part, expected): (&Mirrored, Option<Digest>),
    ) -> Result<ResponseParts, UpstreamError> {
        const CODING: UpstreamError = UpstreamError::BadResponse("document-coding");
        let head = parts.head(self.buf.filled(), &self.slots);
        self.coded = false;
        if part.is_document() && parts.status() == 200 {
            for coding in tokens(&head, "Content-Encoding") {
                let is = |name: &[u8]| coding.eq_ignore_ascii_case(name);
                match is(b"gzip") || is(b"x-gzip") {
                    true if !self.coded => self.coded = true,
                    _ if is(b"identity") => {}
                    _ => return Err(CODING),
                }
            }
        }
        let fields = (0..head.count()).map(|i| head.field(i));
        let answer = part.answer((parts.status(), None), expected, fields);
        self.answered_by(local, parts, &answer)
    }

    /// Replaces the head in the buffer by the head of a mirror's answer.
    pub(crate) fn answered_by(
        &mut self,
        local: &Local,
        parts: ResponseParts,
        answer: &foxy_mirror::Answer,
    ) -> Result<ResponseParts, UpstreamError> {
        if answer.unlisted.is_some() {
            local.count(Event::MirrorLeft);
        }
        let mut text = Vec::with_capacity(parts.len() + 128);
        write::status_line(&mut text, answer.status);
        text.extend_from_slice(&answer.lines);
        write::end(&mut text);
        self.replace_head(local, parts, &text)
    }

    /// Replaces the upstream's answer, which was read to its end, by an answer with this head and body.
    pub(crate) fn put(
        &mut self,
        local: &Local,
        head: &[u8],
        body: Held,
    ) -> Result<ResponseParts, UpstreamError> {
        self.held = Some(Box::new(body));
        self.coded = false;
        self.buf.clear();
        self.put_head(local, 0, head)
    }

    /// Replaces the head in the buffer by another head.
    pub(crate) fn replace_head(
        &mut self,
        local: &Local,
        parts: ResponseParts,
        text: &[u8],
    ) -> Result<ResponseParts, UpstreamError> {
        self.put_head(local, parts.len(), text)
    }

    fn put_head(
        &mut self,
        local: &Local,
        before: usize,
        text: &[u8],
    ) -> Result<ResponseParts, UpstreamError> {
        self.buf.replace(before, text);
        let parsed = ResponseHead::parse(
            self.buf.filled(),
            &mut HeadScanner::new(),
            &mut self.slots,
            &local.limits,
        );
        match parsed {
            Ok(Some(head)) => Ok(head.parts()),
            _ => Err(UpstreamError::BadResponse("head-not-of-mirror")),
        }
    }

    /// Returns true if the body of the present answer is compressed by gzip although its head does not state
    /// this.
    pub(crate) const fn is_coded(&self) -> bool {
        self.coded
    }

    /// Counts a final answer, and the time since the request was sent.
    fn note_answer(&mut self, local: &Local, parts: ResponseParts) {
        if !parts.is_interim()
            && let Some(asked) = self.asked.take()
        {
            let after = local.mono().since(asked);
            local.counters().origin.answered(parts.status(), after);
        }
    }

    fn count(&mut self, parts: ResponseParts) -> Result<(), UpstreamError> {
        if let Some(wait) = self.wait.as_mut().filter(|_| parts.is_interim()) {
            let left = wait.interims_left.checked_sub(1);
            wait.interims_left = left.ok_or(UpstreamError::BadResponse("too-many-interim"))?;
        }
        Ok(())
    }

    /// Returns the next piece of a body. Cancel safe.
    pub(crate) async fn next_piece(
        &mut self,
        reader: &mut BodyReader,
        timeout: Ticks,
    ) -> Result<Piece, UpstreamError> {
        if self.buf.is_empty()
            && let Some(held) = &mut self.held
        {
            let piece = held.next();
            self.buf.replace(0, &piece);
        }
        next_piece(&self.io, &mut self.buf, reader, timeout)
            .await
            .map_err(|error| match error {
                BodyError::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
                    UpstreamError::Stalled
                }
                BodyError::Io(_) => UpstreamError::Truncated,
                BodyError::Framing(reject) if reject.reason == "truncated-body" => {
                    UpstreamError::Truncated
                }
                BodyError::Framing(reject) => UpstreamError::BadResponse(reject.reason),
            })
    }
}

fn lost(error: &io::Error) -> UpstreamError {
    match error.kind() {
        io::ErrorKind::TimedOut => UpstreamError::Stalled,
        io::ErrorKind::OutOfMemory => UpstreamError::BadResponse("head-too-large"),
        _ => UpstreamError::Closed,
    }
}
