//! What a connection needs from a socket. Another implementation (a ring, TLS) replaces this
//! and nothing else.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use tokio::net::TcpStream;

/// A byte stream in both directions. All methods take `&self`, so one task can wait for both
/// directions at once.
pub(crate) trait Transport: 'static {
    /// Reads what is there; `WouldBlock` if nothing is, 0 at the end of the stream.
    fn try_read(&self, into: &mut [u8]) -> io::Result<usize>;
    /// Writes as much as fits; `WouldBlock` if nothing does.
    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Waits until `try_read` is worth calling. One waiter at a time.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Waits until `try_write` is worth calling. One waiter at a time.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Says that nothing more will be written.
    fn shutdown_write(&self);
    /// Makes the coming close a reset, so that the peer cannot take what it got for the whole.
    fn reset_on_close(&self);
}

impl Transport for TcpStream {
    fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        Self::try_read(self, into)
    }
    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.try_write_vectored(slices)
    }
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(cx)
    }
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_ready(cx)
    }
    fn shutdown_write(&self) {
        // A peer that is gone already is no news.
        let _ = socket2::SockRef::from(self).shutdown(std::net::Shutdown::Write);
    }
    fn reset_on_close(&self) {
        let _ = socket2::SockRef::from(self).set_linger(Some(std::time::Duration::ZERO));
    }
}
