//! One TLS connection without its socket. The caller provides the socket.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, BufRead, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::server::Acceptor;
use rustls::{Connection, Error, HandshakeKind};

use crate::received::Received;
use crate::{ClientCertificate, Failure, ListenerTls, Served};

/// Largest number of encrypted bytes that wait until the socket accepts them. This is enough for a body of 64
/// KiB and its head.
const AHEAD: usize = 72 << 10;

/// The alert for a name without a certificate: `unrecognized_name`, fatal (RFC 6066 section 3).
const UNKNOWN_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// A socket that never blocks.
pub trait Wire {
    /// Reads the bytes that have arrived. Returns `WouldBlock` if there are none, and 0 at the end of the
    /// stream.
    ///
    /// # Errors
    /// Returns the errors of the socket.
    fn read(&self, into: &mut [u8]) -> io::Result<usize>;
    /// Writes as many bytes as the socket accepts. Returns `WouldBlock` if it accepts none.
    ///
    /// # Errors
    /// Returns the errors of the socket.
    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;
}

/// A TLS session. All methods take `&self`, as the methods of sockets do. While a method runs, no other
/// method may be called, for example by the [`Wire`].
pub struct Session {
    state: RefCell<State>,
    failure: Cell<Option<Failure>>,
    /// The certificate that the client got. The flag is true if the client requested one of the certificate's
    /// names.
    served: RefCell<Option<(Arc<Served>, bool)>>,
}

struct State {
    stage: Stage,
    received: Received,
    /// Number of bytes of the caller that are already encrypted, but not yet reported to the caller as
    /// written.
    owed: usize,
    closing: Closing,
}

enum Stage {
    /// The client's first message has not arrived completely.
    Accepting(Acceptor, ListenerTls),
    Running(Connection),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    No,
    /// The end of the session was announced to the peer.
    Announced,
    /// The end of the session is not announced. So the peer treats the end as a failure.
    Aborted,
}

impl Session {
    pub(crate) fn new(mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(AHEAD));
        Self::at(Stage::Running(connection))
    }

    pub(crate) fn accepting(tls: ListenerTls) -> Self {
        Self::at(Stage::Accepting(Acceptor::default(), tls))
    }

    fn at(stage: Stage) -> Self {
        Self {
            state: RefCell::new(State {
                stage,
                received: Received::default(),
                owed: 0,
                closing: Closing::No,
            }),
            failure: Cell::new(None),
            served: RefCell::new(None),
        }
    }

    /// Continues the handshake as far as possible. The handshake includes all checks of the peer.
    ///
    /// # Errors
    /// Returns `WouldBlock` until the peer has sent more bytes. After any other error,
    /// [`failure`](Self::failure) returns the reason.
    pub fn handshake<W: Wire>(&self, wire: &W) -> io::Result<()> {
        let state = &mut *self.state.borrow_mut();
        let done = match state.accept(wire) {
            Ok(served) => {
                if served.is_some() {
                    *self.served.borrow_mut() = served;
                }
                state.handshake(wire)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = &done
            && !is_block(error)
        {
            let inner = error.get_ref();
            let known = inner.and_then(|error| error.downcast_ref::<Error>());
            self.failure.set(Some(match known {
                Some(error) => Failure::of(error),
                None if error.kind() == io::ErrorKind::NotFound => Failure::UnknownName,
                None => Failure::Handshake,
            }));
        }
        done
    }

    /// Returns the reason why the handshake failed.
    pub fn failure(&self) -> Option<Failure> {
        self.failure.get()
    }

    /// Returns the certificate that the client got, if the client requested one of the certificate's names.
    pub fn served(&self) -> Option<Arc<Served>> {
        let served = self.served.borrow();
        let named = served.as_ref().filter(|(_, named)| *named);
        named.map(|(served, _)| Arc::clone(served))
    }

    /// Returns the certificate that the client got, even if the client requested none of its names.
    pub fn given(&self) -> Option<Arc<Served>> {
        let served = self.served.borrow();
        served.as_ref().map(|(served, _)| Arc::clone(served))
    }

    /// Returns the certificate that the client presented. Returns `None` before the end of the handshake,
    /// because the handshake verifies the certificate.
    pub fn client(&self) -> Option<ClientCertificate> {
        let Stage::Running(connection) = &self.state.borrow().stage else {
            return None;
        };
        let shown = connection.peer_certificates()?.first()?;
        (!connection.is_handshaking()).then(|| ClientCertificate::read(shown))
    }

    /// Returns true if the handshake continued an earlier session.
    pub fn is_resumed(&self) -> bool {
        match &self.state.borrow().stage {
            Stage::Accepting(..) => false,
            Stage::Running(c) => c.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// Reads plain bytes that have arrived. Returns 0 if the peer has announced the end of the stream.
    ///
    /// # Errors
    /// Returns `WouldBlock` if no bytes have arrived, and `UnexpectedEof` at an end that was not announced.
    pub fn read<W: Wire>(&self, wire: &W, into: &mut [u8]) -> io::Result<usize> {
        let state = &mut *self.state.borrow_mut();
        loop {
            match state.take(wire, into) {
                Err(error) if is_block(&error) => {}
                done => return done,
            }
            state.receive(wire, into.len())?;
        }
    }

    /// Returns 1 if a read would return bytes, and 0 if the peer has announced the end of the stream.
    ///
    /// # Errors
    /// Returns the same errors as [`read`](Self::read).
    pub fn peek<W: Wire>(&self, wire: &W) -> io::Result<usize> {
        let state = &mut *self.state.borrow_mut();
        loop {
            match state.connection()?.reader().fill_buf() {
                Ok(bytes) => return Ok(bytes.len().min(1)),
                Err(error) if is_block(&error) => {}
                Err(error) => return Err(error),
            }
            if state.received.is_empty() {
                state.receive(wire, 0)?;
            } else {
                state.decrypt(wire)?;
            }
        }
    }

    /// Encrypts as many bytes as the buffer accepts, and sends them. After `WouldBlock`, the first of these
    /// bytes may already be encrypted. So the next call must begin with the same bytes.
    ///
    /// # Errors
    /// Returns `WouldBlock` if the socket does not accept all encrypted bytes, and the errors of the socket.
    pub fn write<W: Wire>(&self, wire: &W, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let state = &mut *self.state.borrow_mut();
        state.flush(wire)?;
        if state.owed == 0 {
            state.owed = state.connection()?.writer().write_vectored(slices)?;
            state.flush(wire)?;
        }
        let given: usize = slices.iter().map(|slice| slice.len()).sum();
        let written = state.owed.min(given);
        state.owed -= written;
        Ok(written)
    }

    /// Sends all bytes that wait to be sent.
    ///
    /// # Errors
    /// Returns `WouldBlock` if the socket does not accept all of them, and the errors of the socket.
    pub fn flush<W: Wire>(&self, wire: &W) -> io::Result<()> {
        self.state.borrow_mut().flush(wire)
    }

    /// Returns true if bytes wait to be sent.
    pub fn wants_write(&self) -> bool {
        self.state.borrow().wants_write()
    }

    /// Returns true if a read returns bytes without reading from the socket.
    pub fn has_input(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        if !state.received.is_empty() {
            return true;
        }
        let connection = state.connection();
        connection.is_ok_and(|connection| connection.reader().fill_buf().is_ok())
    }

    /// Announces the end of the session to the peer, unless [`abort`](Self::abort) was called. Returns true
    /// if the announcement and all bytes before it were sent, so that the socket may be closed.
    pub fn close<W: Wire>(&self, wire: &W) -> bool {
        let state = &mut *self.state.borrow_mut();
        if state.closing == Closing::No {
            state.closing = Closing::Announced;
            if let Stage::Running(connection) = &mut state.stage {
                connection.send_close_notify();
            }
        }
        let _ = state.flush(wire);
        self.has_announced(state)
    }

    /// Returns true if the end was announced and the announcement was sent.
    pub fn is_closed(&self) -> bool {
        self.has_announced(&self.state.borrow())
    }

    fn has_announced(&self, state: &State) -> bool {
        state.closing == Closing::Announced && !state.wants_write()
    }

    /// From now on, [`close`](Self::close) does not announce the end of the session. So the peer treats the
    /// end as a failure.
    pub fn abort(&self) {
        self.state.borrow_mut().closing = Closing::Aborted;
    }

    /// Returns the number of bytes of memory in buffers. The memory that every session needs is not included.
    pub fn buffered(&self) -> usize {
        let state = self.state.borrow();
        state.owed + state.received.bytes()
    }
}

impl State {
    fn connection(&mut self) -> io::Result<&mut Connection> {
        match &mut self.stage {
            Stage::Running(connection) => Ok(connection),
            Stage::Accepting(..) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn wants_write(&self) -> bool {
        match &self.stage {
            Stage::Running(connection) => connection.wants_write(),
            Stage::Accepting(..) => false,
        }
    }

    /// Reads the first message of a new client, and chooses the certificate. Returns the certificate. The
    /// flag is true if the client requested one of the certificate's names.
    fn accept<W: Wire>(&mut self, wire: &W) -> io::Result<Option<(Arc<Served>, bool)>> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        loop {
            let Stage::Accepting(acceptor, tls) = &mut self.stage else {
                return Ok(None);
            };
            if self.received.is_empty() && self.received.fill(wire, 0)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut input = self.received.filled();
            let used = acceptor.read_tls(&mut input)?;
            self.received.consume(used);
            let accepted = match acceptor.accept() {
                Ok(None) => continue,
                Ok(Some(accepted)) => accepted,
                Err((error, mut alert)) => {
                    let _ = alert.write(&mut Out(wire));
                    return Err(invalid(error));
                }
            };
            let Some((served, named)) = tls.choose(accepted.client_hello().server_name()) else {
                let _ = wire.write(&[IoSlice::new(&UNKNOWN_NAME)]);
                return Err(io::ErrorKind::NotFound.into());
            };
            let connection = accepted.into_connection(Arc::clone(&served.config));
            let mut connection = connection.map_err(|(error, mut alert)| {
                let _ = alert.write(&mut Out(wire));
                invalid(error)
            })?;
            connection.set_buffer_limit(Some(AHEAD));
            self.stage = Stage::Running(connection.into());
            return Ok(Some((served, named)));
        }
    }

    fn handshake<W: Wire>(&mut self, wire: &W) -> io::Result<()> {
        loop {
            match self.flush(wire) {
                // The socket accepts no more bytes now. The remaining bytes are sent with later bytes.
                Err(error) if is_block(&error) => {}
                done => done?,
            }
            if !self.connection()?.is_handshaking() {
                return Ok(());
            }
            if self.received.is_empty() && self.receive(wire, 0)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.decrypt(wire)?;
        }
    }

    /// Fills `into` with plain bytes from the received bytes, as far as possible.
    fn take<W: Wire>(&mut self, wire: &W, into: &mut [u8]) -> io::Result<usize> {
        let mut taken = 0;
        loop {
            match self.connection()?.reader().read(&mut into[taken..]) {
                Ok(0) => return Ok(taken),
                Ok(n) => taken += n,
                Err(error) if is_block(&error) && !self.received.is_empty() => {}
                Err(_) if taken > 0 => return Ok(taken),
                Err(error) => return Err(error),
            }
            if taken == into.len() {
                return Ok(taken);
            }
            self.decrypt(wire)?;
        }
    }

    /// Reads from the socket. Returns 0 at the end of the stream.
    fn receive<W: Wire>(&mut self, wire: &W, want: usize) -> io::Result<usize> {
        let n = self.received.fill(wire, want)?;
        if n == 0 {
            self.connection()?.read_tls(&mut io::empty())?;
            self.process(wire)?;
        }
        Ok(n)
    }

    /// Decrypts a part of the received bytes. The plain bytes of earlier calls must have been taken before.
    fn decrypt<W: Wire>(&mut self, wire: &W) -> io::Result<()> {
        let mut input = self.received.filled();
        let before = input.len();
        let (Stage::Running(connection), 1..) = (&mut self.stage, before) else {
            return Ok(());
        };
        let read = connection.read_tls(&mut input);
        // After the announced end the library reads no more bytes, so the remaining bytes are dropped.
        let used = match before - input.len() {
            0 => before,
            used => used,
        };
        self.received.consume(used);
        read?;
        self.process(wire)
    }

    fn process<W: Wire>(&mut self, wire: &W) -> io::Result<()> {
        if let Err(error) = self.connection()?.process_new_packets() {
            // Sends the alert, so that the peer learns the reason.
            let _ = self.flush(wire);
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        Ok(())
    }

    fn flush<W: Wire>(&mut self, wire: &W) -> io::Result<()> {
        let Stage::Running(connection) = &mut self.stage else {
            return Ok(());
        };
        while connection.wants_write() {
            if connection.write_tls(&mut Out(wire))? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

/// The socket in the form that the TLS library requires.
struct Out<'a, W>(&'a W);

impl<W: Wire> Write for Out<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(&[IoSlice::new(bytes)])
    }
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write(slices)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}
