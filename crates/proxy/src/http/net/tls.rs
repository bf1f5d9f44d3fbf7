//! TLS over a socket, or TLS over TLS. TLS over TLS is for a tunnel through a parent proxy, if the connection
//! to the parent uses TLS too.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use foxy_tls::{ClientCertificate, Failure, Served, Session, Wire};
use tokio::net::TcpStream;

use super::Transport;
use crate::state::ledger::{Entry, Ledger, Use};

/// Estimated memory of a session in bytes: its state, its keys, and the peer's certificates.
const SESSION_BYTES: usize = 12 << 10;

/// An encrypted connection over the connection `S`.
#[derive(Debug)]
pub(crate) struct TlsStream<S = TcpStream> {
    below: Below<S>,
    session: Session,
    memory: RefCell<Entry>,
}

#[derive(Debug)]
struct Below<S>(S);

impl<S: Transport> Wire for Below<S> {
    fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(into)
    }
    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write(slices)
    }
}

impl<S: Transport> TlsStream<S> {
    pub(crate) fn new(below: S, session: Session, ledger: &Arc<Ledger>) -> Self {
        Self {
            below: Below(below),
            session,
            memory: RefCell::new(ledger.take(Use::Connections, SESSION_BYTES)),
        }
    }

    /// Carries out the handshake, with all checks of the peer. No other bytes are sent before the handshake
    /// ends. Cancel safe.
    pub(crate) async fn handshake(&self) -> Result<(), Failure> {
        poll_fn(|cx| {
            loop {
                if let Some(done) = self.try_handshake() {
                    return Poll::Ready(done);
                }
                if ready!(self.poll_readable(cx)).is_err() {
                    return Poll::Ready(Err(Failure::Handshake));
                }
            }
        })
        .await
    }

    /// Continues the handshake as far as possible. Returns `None` if the peer has to send more bytes.
    pub(crate) fn try_handshake(&self) -> Option<Result<(), Failure>> {
        match self.session.handshake(&self.below) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            done => Some(done.map_err(|error| {
                tracing::debug!(%error, "a TLS handshake failed");
                self.session.failure().unwrap_or(Failure::Handshake)
            })),
        }
    }

    /// Returns the certificate that was sent to the client, if the client requested one of the names of the
    /// certificate.
    pub(crate) fn served(&self) -> Option<Arc<Served>> {
        self.session.served()
    }

    /// Returns the certificate that was sent to the client, whatever name the client requested.
    pub(crate) fn given(&self) -> Option<Arc<Served>> {
        self.session.given()
    }

    /// Returns the certificate that the client has shown.
    pub(crate) fn client(&self) -> Option<ClientCertificate> {
        self.session.client()
    }

    /// Returns true if the handshake continued an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.session.is_resumed()
    }

    /// Enters the present size of the session's buffers in the ledger (the count of the memory for requests).
    fn note(&self) {
        let mut memory = self.memory.borrow_mut();
        let bytes = SESSION_BYTES + self.session.buffered();
        if memory.bytes() != bytes {
            memory.set(bytes);
        }
    }

    /// Waits until all bytes that are already encrypted have been sent.
    fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            ready!(self.below.0.poll_writable(cx))?;
            match self.session.flush(&self.below) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => done?,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: Transport> Transport for TlsStream<S> {
    const SECURE: bool = true;

    fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.session.read(&self.below, into);
        self.note();
        read
    }
    fn try_peek(&self) -> io::Result<usize> {
        self.session.peek(&self.below)
    }
    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.session.write(&self.below, slices);
        self.note();
        written
    }
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.session.has_input() {
            return Poll::Ready(Ok(()));
        }
        if self.session.wants_write() {
            if let Poll::Ready(Err(error)) = self.poll_flush(cx) {
                return Poll::Ready(Err(error));
            }
            if self.session.is_closed() {
                self.below.0.shutdown_write();
            }
        }
        self.below.0.poll_readable(cx)
    }
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.session.wants_write() {
            true => self.poll_flush(cx),
            false => self.below.0.poll_writable(cx),
        }
    }
    fn shutdown_write(&self) {
        if self.session.close(&self.below) {
            self.below.0.shutdown_write();
        }
    }
    fn widen_receive(&self) {
        self.below.0.widen_receive();
    }
    fn limit_send(&self, bytes: usize) {
        self.below.0.limit_send(bytes);
    }
    fn unacknowledged(&self) -> usize {
        // An error is ignored here, because the next write reports it.
        let _ = self.session.flush(&self.below);
        usize::from(self.session.wants_write()) + self.below.0.unacknowledged()
    }
    fn window(&self) -> Option<u32> {
        self.below.0.window()
    }
    fn is_reset(&self) -> bool {
        self.below.0.is_reset()
    }
    fn local_addr(&self) -> Option<SocketAddr> {
        self.below.0.local_addr()
    }
    /// No `close_notify` message is sent before the reset, because some clients ignore a reset after such a
    /// message.
    fn reset_on_close(&self) {
        self.session.abort();
        self.below.0.reset_on_close();
    }
}

/// A connection to an origin.
#[derive(Debug)]
pub(crate) enum OriginStream {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
    /// TLS to the destination, in a tunnel through a parent proxy that also speaks TLS.
    Nested(Box<TlsStream<TlsStream>>),
    /// A connection in memory, to the origin of a simulation.
    #[cfg(test)]
    Simulated(crate::simulation::Wire),
}

/// Calls a method of the inner stream.
macro_rules! either {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self {
            OriginStream::Plain($stream) => $call,
            OriginStream::Tls(boxed) => {
                let $stream = &**boxed;
                $call
            }
            OriginStream::Nested(boxed) => {
                let $stream = &**boxed;
                $call
            }
            #[cfg(test)]
            OriginStream::Simulated($stream) => $call,
        }
    };
}

impl Transport for OriginStream {
    fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        either!(self, stream => Transport::try_read(stream, into))
    }
    fn try_peek(&self) -> io::Result<usize> {
        either!(self, stream => stream.try_peek())
    }
    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(self, stream => Transport::try_write(stream, slices))
    }
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_readable(cx))
    }
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_writable(cx))
    }
    fn shutdown_write(&self) {
        either!(self, stream => stream.shutdown_write());
    }
    fn widen_receive(&self) {
        either!(self, stream => stream.widen_receive());
    }
    fn limit_send(&self, bytes: usize) {
        either!(self, stream => stream.limit_send(bytes));
    }
    fn unacknowledged(&self) -> usize {
        either!(self, stream => stream.unacknowledged())
    }
    fn window(&self) -> Option<u32> {
        either!(self, stream => stream.window())
    }
    fn is_reset(&self) -> bool {
        either!(self, stream => stream.is_reset())
    }
    fn local_addr(&self) -> Option<SocketAddr> {
        either!(self, stream => Transport::local_addr(stream))
    }
    fn reset_on_close(&self) {
        either!(self, stream => stream.reset_on_close());
    }
}
