//! Accepts the connections of one listener. Each client has its own queue of accepted connections, and clients
//! take turns. So a client that opens hundreds of connections at once does not delay the connections of other
//! clients by the time in which the worker sets these connections up.
//!
//! If memory is small, there are no such queues: a connection is accepted when it can be served.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use socket2::{SockRef, Socket};
use tokio::net::{TcpListener, TcpStream};

use crate::access::client_connections::CountedConnection;
use crate::client::listen::listener::BACKLOG;
use crate::client::listen::newcomers::Newcomers;
use crate::client::listen::post::Post;
use crate::client::worker::{count_connection, start};
use crate::state::entrance::IN_A_ROW;

/// Time for which the connections in the queue of a closed listener are still accepted.
const LAST: Duration = Duration::from_millis(20);
/// Time without accepting, after an error that does not concern only one connection.
const PAUSE: Duration = Duration::from_millis(100);
/// Largest number of connections that are accepted before the requests of other connections are polled. An
/// accepted connection only enters a queue, which takes a few microseconds.
const ACCEPTED: usize = 64;

/// Largest number of connections of one client that a worker starts to serve before the requests of other
/// connections are polled. The limit applies while several clients are active (see `poll_budgets`), unless the
/// number of newcomers has reached its limit. Then the connections of other clients wait in the kernel, and
/// the worker must accept more connections to reach them.
const OF_ONE: usize = 4;

/// An accepted connection that the worker does not serve yet.
struct Newcomer {
    /// Counts the connection for its client. `None` for a connection of a trusted proxy.
    counted: Option<CountedConnection>,
    stream: NewStream,
    peer: SocketAddr,
}

/// The stream of an accepted connection. Registering a stream with the runtime takes longer than accepting it.
/// So most streams are registered when the turn of their client comes.
enum NewStream {
    Registered(TcpStream),
    Unregistered(Socket),
}

impl NewStream {
    /// Registers the stream, if this was not done yet.
    ///
    /// # Errors
    /// The error of the system, if it has no memory for one more registered socket.
    fn register(self) -> io::Result<TcpStream> {
        match self {
            Self::Registered(stream) => Ok(stream),
            Self::Unregistered(socket) => {
                socket.set_nonblocking(true)?;
                TcpStream::from_std(socket.into())
            }
        }
    }
}

/// A listening socket and its newcomers.
struct Accepting {
    post: Rc<Post>,
    socket: TcpListener,
    newcomers: Newcomers<Newcomer>,
    /// Largest number of newcomers. 0 if connections are served in the order of arrival.
    most: usize,
    /// The newcomers whose turn it is.
    next: VecDeque<Newcomer>,
}

/// Accepts connections until a reload closes the listener, or until Foxy ends. If the listener is closed, also
/// accepts the connections that are still in the queue. Otherwise the kernel would reset these connections
/// when the socket is closed. At most `most` newcomers wait for the turn of their client.
pub(super) async fn accept(post: Rc<Post>, socket: TcpListener, most: usize) {
    Accepting::new(post, socket, most).until_closed().await;
}

impl Accepting {
    fn new(post: Rc<Post>, socket: TcpListener, most: usize) -> Self {
        Self {
            post,
            socket,
            newcomers: Newcomers::default(),
            most,
            next: VecDeque::new(),
        }
    }

    async fn until_closed(mut self) {
        let post = Rc::clone(&self.post);
        let mut shutdown = post.current().local.proxy.shutdown_signal();
        let closed = async {
            post.until_closed().await;
            tokio::time::sleep(LAST).await;
        };
        tokio::select! {
            biased;
            // An error means that the sender was dropped. Then Foxy ends too.
            _ = shutdown.wait_for(|ends| *ends) => {}
            () = closed => self.accept_all(),
            () = self.run() => {}
        }
        self.start_all();
    }

    async fn run(&mut self) {
        match self.most {
            0 => self.serve_in_order().await,
            _ => self.serve_in_turns().await,
        }
    }

    /// Accepts and serves one connection after the other.
    async fn serve_in_order(&mut self) {
        for accepted in 1_usize.. {
            // Without this limit, Tokio lets a task accept 128 connections in a row.
            if accepted.is_multiple_of(IN_A_ROW) {
                tokio::task::yield_now().await;
            }
            let local = self.post.current().local;
            local.entrance.room(&local).await;
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    if let Some(newcomer) = self.count(NewStream::Registered(stream), peer) {
                        self.next.push_back(newcomer);
                        self.start_next();
                    }
                }
                Err(error) => pause_after(&error).await,
            }
        }
    }

    /// Accepts the connections that wait in the kernel, and serves those whose turn it is.
    async fn serve_in_turns(&mut self) {
        loop {
            let accepted = self.accept().await;
            self.serve_turn().await;
            if let Err(error) = accepted {
                // The accepted connections do not wait until others can be accepted.
                while !self.newcomers.is_empty() {
                    self.serve_turn().await;
                }
                pause_after(&error).await;
            }
        }
    }

    /// Starts to serve the newcomers whose turn it is. Then lets the requests of other connections run.
    async fn serve_turn(&mut self) {
        self.choose();
        while !self.next.is_empty() {
            let local = self.post.current().local;
            local.entrance.room(&local).await;
            self.start_next();
        }
        tokio::task::yield_now().await;
    }

    /// Chooses the newcomers that are served before the requests of other connections are polled.
    fn choose(&mut self) {
        let takes_turns = self.post.current().local.poll_budgets.has_limits();
        let each = match takes_turns && self.newcomers.len() < self.most {
            true => OF_ONE,
            false => IN_A_ROW,
        };
        self.next.extend(self.newcomers.take(each, IN_A_ROW));
    }

    /// Accepts connections until the kernel has no more, or there are enough newcomers. If there are no
    /// newcomers, waits for one. Cancel safe.
    async fn accept(&mut self) -> io::Result<()> {
        if self.newcomers.is_empty() {
            let (stream, peer) = self.socket.accept().await?;
            self.add(NewStream::Registered(stream), peer);
        }
        for _ in 1..ACCEPTED {
            if self.newcomers.len() >= self.most {
                break;
            }
            match accept_now(&self.socket) {
                Ok((stream, peer)) => self.add(stream, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Accepts all connections that wait in the kernel. The queue of the kernel is not longer than [`BACKLOG`],
    /// so a client that opens connections meanwhile does not prolong this.
    fn accept_all(&mut self) {
        for _ in 0..BACKLOG {
            let Ok((stream, peer)) = accept_now(&self.socket) else {
                break;
            };
            self.add(stream, peer);
        }
    }

    /// Adds a newcomer, unless its client has too many connections. The connections of a trusted proxy belong
    /// to many clients, so each of them has a queue of its own.
    fn add(&mut self, stream: NewStream, peer: SocketAddr) {
        if let Some(newcomer) = self.count(stream, peer) {
            let client = newcomer.counted.as_ref().map(CountedConnection::client);
            self.newcomers.add(client, newcomer);
        }
    }

    /// Counts an accepted connection for its client. Returns `None` if the client has too many connections.
    fn count(&self, stream: NewStream, peer: SocketAddr) -> Option<Newcomer> {
        let local = self.post.current().local;
        let counted = count_connection(&local, peer)?;
        Some(Newcomer {
            counted,
            stream,
            peer,
        })
    }

    /// Starts to serve the newcomer whose turn it is.
    fn start_next(&mut self) {
        let Some(newcomer) = self.next.pop_front() else {
            return;
        };
        match newcomer.stream.register() {
            Ok(stream) => start(&self.post, stream, newcomer.peer, newcomer.counted),
            Err(error) => tracing::warn!(%error, "an accepted connection is closed"),
        }
    }

    /// Starts to serve all newcomers.
    fn start_all(&mut self) {
        self.next
            .extend(self.newcomers.take(usize::MAX, usize::MAX));
        while !self.next.is_empty() {
            self.start_next();
        }
    }
}

/// Accepts a connection without waiting and without registering it.
fn accept_now(listener: &TcpListener) -> io::Result<(NewStream, SocketAddr)> {
    let (socket, peer) = SockRef::from(listener).accept()?;
    let peer = peer.as_socket().ok_or(io::ErrorKind::ConnectionAborted)?;
    Ok((NewStream::Unregistered(socket), peer))
}

/// Waits after an error of `accept`, unless the error concerns only one connection.
async fn pause_after(error: &io::Error) {
    let is_of_connection = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    );
    if !is_of_connection {
        // There is no free file descriptor or no free memory. Connections in progress must end first.
        tracing::warn!(%error, "cannot accept connections for a moment");
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests;
