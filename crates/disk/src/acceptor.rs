//! A listening socket, polled by the tokio runtime of its thread.
//!
//! This code is in this crate because registration of a descriptor with tokio needs a promise
//! (`unsafe`), and only this crate may use `unsafe`.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Accepts connections without registering them with the runtime.
///
/// `tokio::net::TcpListener` registers each connection when it is accepted, which takes a system call. With
/// this type, the caller chooses when to do so. A queue of connections is emptied sooner.
#[derive(Debug)]
pub struct Acceptor(AsyncFd<TcpListener>);

impl Acceptor {
    /// Watches `listener`, which must be non-blocking.
    ///
    /// # Errors
    /// The error of the system.
    ///
    /// # Panics
    /// If called outside a tokio runtime with I/O enabled.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        // SAFETY: the runtime requires a descriptor that stays open and unchanged as long as the registration
        // exists. The listener that is moved into the registration meets this requirement; `Acceptor` never
        // returns it to a caller.
        let registered = unsafe { AsyncFd::register_with_interest(listener, Interest::READABLE) };
        Ok(Self(registered?))
    }

    /// Waits for a connection and accepts it. The connection is in blocking mode. Cancel safe: no connection
    /// is lost if the future is dropped.
    ///
    /// # Errors
    /// The error of the system, or an error if the runtime shuts down.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let accepted = self.0.async_io(Interest::READABLE, TcpListener::accept);
        accepted.await
    }
}
