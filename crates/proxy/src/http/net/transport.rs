//! The methods of a socket that a connection needs. An implementation for another kind of connection (TLS,
//! for example) needs only this trait.

use std::io::{self, IoSlice, Read as _};
use std::net::SocketAddr;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// True if the runtime waits with edge-triggered epoll.
const EDGE_TRIGGERED: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// Size in bytes of a connection's receive buffer while a body arrives, if the connection has inherited a
/// smaller buffer from its listener.
const BODY_RECEIVE: usize = 64 << 10;

/// A byte stream in both directions. All methods take `&self`, so one task can wait for both directions at
/// the same time.
pub(crate) trait Transport: 'static {
    /// True if the bytes are encrypted on the network.
    const SECURE: bool = false;
    /// Reads the bytes that have arrived. Returns `WouldBlock` if there are none, and 0 at the end of the
    /// stream.
    fn try_read(&self, into: &mut [u8]) -> io::Result<usize>;
    /// Returns the number of bytes (at most one) that a read would return, and leaves them in the stream.
    /// Returns the same errors as `try_read`.
    fn try_peek(&self) -> io::Result<usize>;
    /// Writes as many bytes as fit. Returns `WouldBlock` if none fit. Some of the bytes may be encrypted
    /// already when a call returns `WouldBlock`. So the next call must begin with the same bytes, or the
    /// connection must be closed.
    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Waits until a call of `try_read` is useful. Only one task may wait at a time.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Waits until a call of `try_write` is useful. Only one task may wait at a time.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Tells the peer that no more bytes will be written.
    fn shutdown_write(&self);
    /// Lets the kernel receive more bytes before Foxy reads them, because the peer sends a long body. The
    /// usual limit suits heads, which are short.
    fn widen_receive(&self);
    /// Lets the kernel keep at most this number of bytes that the peer has not acknowledged.
    fn limit_send(&self, bytes: usize);
    /// Returns the number of written bytes that the peer has not acknowledged, or 0 if the system does not
    /// report it. Also sends bytes that are already encrypted.
    fn unacknowledged(&self) -> usize;
    /// Returns the number of bytes that the peer is ready to receive, or `None` if the system does not report
    /// it.
    fn window(&self) -> Option<u32>;
    /// Returns true if the peer has reset the connection. A read does not report a reset that follows unread
    /// bytes or the end of the stream. A reset is reported once, by this method or by another one.
    fn is_reset(&self) -> bool;
    /// Returns the address of this side.
    fn local_addr(&self) -> Option<SocketAddr>;
    /// Turns the coming close into a reset, so that the peer cannot mistake the received bytes for a complete
    /// answer.
    fn reset_on_close(&self);
}

impl Transport for TcpStream {
    /// A read that fills less than its buffer has emptied the socket. Reporting this to the runtime saves the
    /// system call by which the next wait would detect the empty socket. Bytes that arrive later cause a new
    /// event.
    #[inline]
    fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut short = 0;
        let read = self.try_io(Interest::READABLE, || {
            let n = (&*SockRef::from(self)).read(into)?;
            if EDGE_TRIGGERED && 0 < n && n < into.len() {
                short = n;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(n)
        });
        if short > 0 { Ok(short) } else { read }
    }
    fn try_peek(&self) -> io::Result<usize> {
        self.try_io(Interest::READABLE, || {
            SockRef::from(self).peek(&mut [std::mem::MaybeUninit::uninit()])
        })
    }
    #[inline]
    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_write_vectored(slices)
    }
    #[inline]
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(cx)
    }
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_ready(cx)
    }
    fn shutdown_write(&self) {
        // An error means that the peer has already disconnected, which does not matter.
        let _ = SockRef::from(self).shutdown(std::net::Shutdown::Write);
    }
    fn widen_receive(&self) {
        // If this fails, a body arrives more slowly, but still completely.
        let _ = SockRef::from(self).set_recv_buffer_size(BODY_RECEIVE);
    }
    fn limit_send(&self, bytes: usize) {
        // The kernel doubles the number. If this call fails, the kernel uses more memory for the connection.
        let _ = SockRef::from(self).set_send_buffer_size(bytes / 2);
    }
    fn unacknowledged(&self) -> usize {
        foxy_disk::send_queue(self).unwrap_or(0)
    }
    fn window(&self) -> Option<u32> {
        foxy_disk::peer_window(self).ok().flatten()
    }
    fn is_reset(&self) -> bool {
        self.take_error().is_ok_and(|error| error.is_some())
    }
    fn local_addr(&self) -> Option<SocketAddr> {
        Self::local_addr(self).ok()
    }
    fn reset_on_close(&self) {
        let _ = SockRef::from(self).set_linger(Some(std::time::Duration::ZERO));
    }
}
