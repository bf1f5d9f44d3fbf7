//! The methods that a connection needs of a socket. Another implementation (a ring, TLS) replaces
//! this and nothing else.

use std::io::{self, IoSlice, Read as _};
use std::net::SocketAddr;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// True if the runtime waits by epoll, edge-triggered.
const EDGE_TRIGGERED: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// Receive buffer for a body, where that of the listener is small.
const BODY_RECEIVE: usize = 64 << 10;

/// A byte stream in both directions. All methods take `&self`, so one task can wait for both
/// directions at once.
pub(crate) trait Transport: 'static {
    /// The bytes are encrypted on their way.
    const SECURE: bool = false;
    /// Reads what is there; `WouldBlock` if nothing is, 0 at the end of the stream.
    fn try_read(&self, into: &mut [u8]) -> io::Result<usize>;
    /// Bytes (at most one) that a read would give; they stay there. Errors as `try_read`.
    fn try_peek(&self) -> io::Result<usize>;
    /// Writes as much as fits; `WouldBlock` if nothing does. After that the next call must begin with
    /// the same bytes, or the connection must be closed: some may be encrypted already.
    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Waits until `try_read` is worth calling. One waiter at a time.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Waits until `try_write` is worth calling. One waiter at a time.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Says that nothing more will be written.
    fn shutdown_write(&self);
    /// Lets the kernel take more ahead than for a head.
    fn widen_receive(&self);
    /// Lets the kernel keep at most this many bytes until the peer has acknowledged them.
    fn limit_send(&self, bytes: usize);
    /// Bytes that were written and that the peer has not acknowledged; 0 if the system does not tell.
    /// Sends on what is encrypted already.
    fn unacknowledged(&self) -> usize;
    /// This side's address.
    fn local_addr(&self) -> Option<SocketAddr>;
    /// Makes the coming close a reset, so that the peer cannot take what it got for the whole.
    fn reset_on_close(&self);
}

impl Transport for TcpStream {
    /// A read that fills less than its buffer has emptied the socket. Telling the runtime so saves the
    /// system call by which the next wait would find this out again. Bytes that arrive later cause a new
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
        // An error means that the peer is gone already, which does not matter.
        let _ = SockRef::from(self).shutdown(std::net::Shutdown::Write);
    }
    fn widen_receive(&self) {
        // If this fails, a body comes more slowly, but still whole.
        let _ = SockRef::from(self).set_recv_buffer_size(BODY_RECEIVE);
    }
    fn limit_send(&self, bytes: usize) {
        // The kernel doubles the number. If this fails, more memory is used, and observed.
        let _ = SockRef::from(self).set_send_buffer_size(bytes / 2);
    }
    fn unacknowledged(&self) -> usize {
        foxy_disk::send_queue(self).unwrap_or(0)
    }
    fn local_addr(&self) -> Option<SocketAddr> {
        Self::local_addr(self).ok()
    }
    fn reset_on_close(&self) {
        let _ = SockRef::from(self).set_linger(Some(std::time::Duration::ZERO));
    }
}
