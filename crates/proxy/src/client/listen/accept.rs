//! Accepts the connections of one listener. Each client has its own queue of accepted connections, and clients
//! take turns. So a client that opens hundreds of connections at once does not delay the connections of other
//! clients by the time in which the worker sets these connections up.
//!
//! If memory is small, there are no such queues: a connection is accepted when it can be served.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use socket2::{SockRef, Socket};
use tokio::net::{TcpListener, TcpStream};

use crate::access::client_connections::CountedConnection;
use crate::client::listen::newcomers::Newcomers;
use crate::client::listen::post::Post;
use crate::client::worker::{count_connection, start};
use crate::state::entrance::IN_A_ROW;

/// Time for which the connections in the queue of a closed listener are still accepted.
const LAST: Duration = Duration::from_millis(20);
/// Largest number of connections that are accepted before the requests of other connections are polled. An
/// accepted connection only enters a queue, which takes a few microseconds.
const ACCEPTED: usize = 64;

/// Largest number of connections of one client that a worker starts to serve before the requests of other
/// connections are polled. There is no such limit while no other client is active.
const OF_ONE: usize = 4;

/// An accepted connection that the worker does not serve yet.
pub(crate) struct Newcomer {
    /// Counts the connection for its client. `None` for a connection of a trusted proxy.
    pub(crate) counted: Option<CountedConnection>,
    pub(crate) stream: NewStream,
    pub(crate) peer: SocketAddr,
}

/// The stream of an accepted connection. Registering a stream with the runtime takes longer than accepting it.
/// So most streams are registered when the turn of their client comes.
pub(crate) enum NewStream {
    Registered(TcpStream),
    Unregistered(Socket),
}

impl NewStream {
    /// Registers the stream, if this was not done yet.
    ///
    /// # Errors
    /// The error of the system, if it has no memory for one more registered socket.
    pub(crate) fn register(self) -> io::Result<TcpStream> {
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

/// Accepts connections until a reload closes the listener. Then accepts the connections that are still in the
/// queue. Otherwise the kernel would reset these connections when the socket is closed. At most `most`
/// newcomers wait for the turn of their client.
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
        tokio::select! {
            () = self.run() => {}
            () = post.until_closed() => {}
        }
        let _ = tokio::time::timeout(LAST, self.run()).await;
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
                        start(&self.post, newcomer);
                    }
                }
                Err(error) => wait_after(&error).await,
            }
            self.wait_at_the_end().await;
        }
    }

    /// Accepts the connections that wait in the kernel, and serves those whose turn it is.
    async fn serve_in_turns(&mut self) {
        loop {
            let accepted = self.accept().await;
            self.choose();
            while !self.next.is_empty() {
                let local = self.post.current().local;
                local.entrance.room(&local).await;
                self.start_next();
            }
            match accepted {
                Ok(()) => tokio::task::yield_now().await,
                Err(error) => wait_after(&error).await,
            }
            self.wait_at_the_end().await;
        }
    }

    /// Chooses the newcomers that are served before the requests of other connections are polled.
    fn choose(&mut self) {
        let each = match self.post.current().local.poll_budgets.has_limits() {
            true => OF_ONE,
            false => IN_A_ROW,
        };
        self.next.extend(self.newcomers.take(each, IN_A_ROW));
    }

    /// If Foxy ends, serves all newcomers and then waits for ever.
    async fn wait_at_the_end(&mut self) {
        if self.post.current().local.proxy.is_shutting_down() {
            self.start_all();
            pending::<()>().await;
        }
    }

    /// Accepts connections until the kernel has no more, or there are enough newcomers. If there are no
    /// newcomers, waits for one. Cancel safe.
    async fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPTED {
            if self.newcomers.len() >= self.most {
                break;
            }
            let accepted = match accept_now(&self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.newcomers.is_empty() {
                        break;
                    }
                    let accepted = self.socket.accept().await;
                    accepted.map(|(stream, peer)| (NewStream::Registered(stream), peer))
                }
                accepted => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.add(stream, peer),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Adds a newcomer, unless its client has too many connections. All trusted proxies share one queue,
    /// because their connections are not counted.
    fn add(&mut self, stream: NewStream, peer: SocketAddr) {
        if let Some(newcomer) = self.count(stream, peer) {
            let client = newcomer.counted.as_ref();
            let client = client.map_or(0, CountedConnection::client);
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

    fn start_next(&mut self) {
        if let Some(newcomer) = self.next.pop_front() {
            start(&self.post, newcomer);
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
async fn wait_after(error: &io::Error) {
    let is_of_connection = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    );
    if !is_of_connection {
        // There is no free file descriptor or no free memory. Connections in progress must end first.
        tracing::warn!(%error, "cannot accept connections for a moment");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream as StdStream};
    use std::pin::pin;
    use std::sync::atomic::Ordering;

    use socket2::{Domain, Type};

    use super::*;
    use crate::client::listen::listening::Listening;
    use crate::state::counters::Event;
    use crate::state::local::Local;
    use crate::testing::with_worker;
    use crate::{Role, Serves};

    const CROWD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
    const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

    /// A listener of a worker, on a free port.
    fn accepting(local: &Rc<Local>, most: usize) -> Accepting {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap();
        let mut listening = Listening::new(Rc::clone(local));
        let post = listening.open_without_socket(address, Serves::One(Role::Forward));
        Accepting::new(post, TcpListener::from_std(socket).unwrap(), most)
    }

    fn connect(from: Ipv4Addr, to: &Accepting) -> StdStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
        let to = to.socket.local_addr().unwrap();
        socket.connect(&to.into()).unwrap();
        socket.into()
    }

    #[test]
    fn a_connection_overtakes_those_of_a_client_that_opens_many() {
        with_worker(64 << 20, |local| async move {
            let mut accepting = accepting(&local, 30);
            let mut clients: Vec<_> = (0..40).map(|_| connect(CROWD, &accepting)).collect();
            accepting.accept().await.unwrap();
            assert_eq!(
                accepting.newcomers.len(),
                30,
                "the others wait in the kernel"
            );
            // The kernel's queue has the order of arrival, so the newest connection comes after eleven others.
            accepting.newcomers.take(1, 1);
            accepting.most = 100;
            clients.push(connect(OTHER, &accepting));
            accepting.accept().await.unwrap();
            assert_eq!(accepting.newcomers.len(), 40);
            let budgets = Rc::clone(&local.poll_budgets);
            for client in [1, 2] {
                budgets.take(client, pin!(async {})).await;
            }
            let mut chosen = |others| {
                accepting.choose();
                let next: Vec<_> = accepting.next.drain(..).collect();
                let found = next.iter().filter(|next| next.peer.ip() == OTHER).count();
                assert_eq!(found, others);
                next.len()
            };
            assert_eq!(chosen(1), OF_ONE + 1);
            assert_eq!(chosen(0), OF_ONE);
        });
    }

    #[test]
    fn one_active_client_has_more_connections_in_a_row() {
        with_worker(64 << 20, |local| async move {
            let mut accepting = accepting(&local, 30);
            let _clients: Vec<_> = (0..20).map(|_| connect(CROWD, &accepting)).collect();
            accepting.accept().await.unwrap();
            accepting.choose();
            assert_eq!(accepting.next.len(), IN_A_ROW);
        });
    }

    /// When a listener closes, or when Foxy ends, the connections that were accepted get their answers.
    #[test]
    fn all_newcomers_are_served_at_the_end() {
        with_worker(64 << 20, |local| async move {
            let mut accepting = accepting(&local, 30);
            let _clients: Vec<_> = (0..20).map(|_| connect(CROWD, &accepting)).collect();
            accepting.accept().await.unwrap();
            accepting.next.extend(accepting.newcomers.take(2, 2));
            accepting.start_all();
            assert!(accepting.newcomers.is_empty() && accepting.next.is_empty());
            assert_eq!(local.proxy.connections.load(Ordering::Relaxed), 20);
        });
    }

    /// A worker with newcomers and a worker without serve all connections, also those that are in the kernel's
    /// queue when the listener closes.
    #[test]
    fn all_connections_are_served() {
        for most in [0, 10] {
            with_worker(64 << 20, |local| async move {
                let accepting = accepting(&local, most);
                let clients = |count| -> Vec<_> {
                    let addresses = (0..count).flat_map(|_| [CROWD, OTHER]);
                    addresses.map(|from| connect(from, &accepting)).collect()
                };
                let served = || local.proxy.totals().event(Event::ConnectionsAccepted);
                let (first, last) = (clients(20), clients(20));
                let post = Rc::clone(&accepting.post);
                let task = tokio::task::spawn_local(accepting.until_closed());
                for _ in 0..10_000 {
                    if served() >= first.len() as u64 {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
                post.close();
                task.await.unwrap();
                assert_eq!(served(), (first.len() + last.len()) as u64, "{most}");
            });
        }
    }
}
