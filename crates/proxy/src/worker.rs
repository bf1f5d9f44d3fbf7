//! One worker: a thread with its own runtime, listeners, pools and disk queues.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use foxy_tls::ListenerTls;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use crate::access::contains;
use crate::conn::{Conn, Door, Sites};
use crate::ledger::Pressure;
use crate::local::Local;
use crate::named;
use crate::net::{TICK, TlsStream, queue_bytes};
use crate::origins::check;
use crate::places::Place;
use crate::{Event, Listener, LogSink, Origins, Proxy, Role, Serves};

/// Receive buffers of clients where memory is small. The kernel doubles it.
const SMALL_RECEIVE: usize = 8 << 10;
/// Connections of one client that are closed at a time for another one of the same client.
const OF_ONE: usize = 8;

/// What a worker is started with.
#[derive(Debug)]
pub struct Worker {
    /// What all workers share.
    pub proxy: Arc<Proxy>,
    /// This worker's number, from 0; chooses its counters.
    pub index: usize,
    /// Its listening sockets.
    pub listeners: Vec<Listener>,
    /// Where its finished requests go.
    pub log: Box<dyn LogSink>,
}

impl Worker {
    /// Serves on the calling thread until [`Proxy::shutdown`] and the end of what is in flight.
    ///
    /// # Errors
    /// Only what prevents the start: the runtime or a listener cannot be set up.
    pub fn run(self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let tasks = LocalSet::new();
        let result = tasks.block_on(&runtime, self.serve());
        // Tasks that outlived the drain end here, with their connections.
        drop(tasks);
        runtime.shutdown_timeout(Duration::from_millis(200));
        result
    }

    async fn serve(self) -> io::Result<()> {
        let mut shutdown = self.proxy.shutdown_signal();
        let drain = self.proxy.config.timeouts.drain;
        let mut listeners = Vec::new();
        let mut checked: Vec<Origins> = Vec::new();
        for listener in self.listeners {
            for origins in listener.serves.origins() {
                if !checked.contains(origins) {
                    checked.push(origins.clone());
                }
            }
            listener.socket.set_nonblocking(true)?;
            let socket = TcpListener::from_std(listener.socket)?;
            // Accepted sockets inherit it. With little memory, what a client sends before it is read
            // must not fill megabytes of the kernel.
            if self.proxy.config.limits.has_little_memory() {
                let _ = SockRef::from(&socket).set_recv_buffer_size(SMALL_RECEIVE);
            }
            let way = (listener.tls, listener.proxy_protocol);
            listeners.push((socket, door(listener.serves), way));
        }
        let local = Local::new(self.proxy, self.index, self.log);
        // The state is shared by the workers: one of them checks.
        if self.index == 0 {
            for origins in &checked {
                check::spawn(&local, origins);
            }
        }
        let sweeper = tokio::task::spawn_local(sweep(Rc::clone(&local)));
        let accepting: Vec<_> = listeners
            .into_iter()
            .map(|(socket, door, way)| {
                tokio::task::spawn_local(accept(Rc::clone(&local), socket, door, way))
            })
            .collect();
        // An error means that the proxy is gone, which ends the worker too.
        let _ = shutdown.wait_for(|stop| *stop).await;
        for task in accepting {
            task.abort();
        }
        local.sweep.drain();
        local.pool.clear();
        let _ = tokio::time::timeout(drain, idle(&local)).await;
        sweeper.abort();
        local.log.borrow_mut().flush();
        Ok(())
    }
}

/// Until nothing is under way.
async fn idle(local: &Local) {
    while local.busy.get() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn sweep(local: Rc<Local>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        local.sweep.tick();
        local.pool.sweep(local.sweep.now());
        if local.proxy.ledger.pressure() == Pressure::Spent {
            local.shed_surplus();
        }
        local.log.borrow_mut().flush();
    }
}

/// A listener's roles, on this thread.
fn door(serves: Serves) -> Door {
    match serves {
        Serves::One(role) => Door {
            role: Rc::new(role),
            sites: None,
        },
        Serves::Sites(table, sites) => {
            let none = Rc::new(Role::Undecided);
            let role = |(site, tls)| (Rc::new(Role::Site(site)), tls);
            let sites = Sites {
                table,
                roles: sites.into_iter().map(role).collect(),
                none: Rc::clone(&none),
            };
            Door {
                role: none,
                sites: Some(Rc::new(sites)),
            }
        }
    }
}

/// Certificates of a listener, and whether trusted proxies name the client of a connection.
type Way = (Option<ListenerTls>, bool);

async fn accept(local: Rc<Local>, socket: TcpListener, door: Door, way: Way) {
    loop {
        match socket.accept().await {
            Ok((stream, client)) => start(&local, stream, client, (&door, &way)),
            Err(error) if is_clients_fault(&error) => {}
            Err(error) => {
                // Out of descriptors or memory: connections in progress must end first.
                tracing::warn!(%error, "cannot accept connections for a moment");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        if local.proxy.is_shutting_down() {
            pending::<()>().await;
        }
    }
}

/// Errors of accept that concern one connection only.
fn is_clients_fault(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

fn start(
    local: &Rc<Local>,
    stream: TcpStream,
    peer: SocketAddr,
    (door, (tls, named)): (&Door, &Way),
) {
    let open = &local.proxy.connections;
    let access = &local.proxy.config.access;
    let named = *named && contains(&access.trusted_proxies, peer.ip());
    let Some(place) = place_of(local, peer) else {
        return;
    };
    let places = local.proxy.config.limits.connections;
    let full = open.fetch_add(1, Ordering::Relaxed) >= places;
    let spent = local.proxy.ledger.pressure() == Pressure::Spent;
    // The place of a connection that is closed for this one becomes free at once.
    let made_room = (full || spent) && local.shed() > 0;
    if full && !made_room {
        open.fetch_sub(1, Ordering::Relaxed);
        local.count(Event::ConnectionsRefused);
        return;
    }
    local.count(Event::ConnectionsAccepted);
    // Answers are written whole: waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    // Without it a client that does not read leaves megabytes in the kernel.
    let most = queue_bytes(local.proxy.ledger.pressure()) as u32;
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(most);
    let guard = Open {
        _busy: local.busy(),
        place,
        local: Rc::clone(local),
    };
    let (local, door, tls) = (Rc::clone(local), door.clone(), tls.clone());
    tokio::task::spawn_local(async move {
        let mut guard = guard;
        let mut client = peer;
        if named {
            // Boxed: it would enlarge the task of every connection.
            let read = Box::pin(named::client(&local, &stream, peer, tls.is_some()));
            client = match read.await {
                Some(client) => client,
                None => return,
            };
            // Limits count the client that is named.
            guard.place = match place_of(&local, client) {
                Some(place) => place,
                None => return,
            };
        }
        let (number, crowd) = guard.client();
        if local.proxy.ledger.is_over() {
            // Boxed: it would enlarge the task of every connection.
            Box::pin(local.entrance.enter(&local, crowd)).await;
        }
        // Boxed: a connection that waits must not have the memory of one that is served.
        match tls {
            None => Box::pin(serve(local, stream, (client, number), door)).await,
            Some(tls) => Box::pin(serve_tls(local, stream, (client, number), door, tls)).await,
        }
    });
}

/// Serves a plain connection; `number` distinguishes its client from others.
async fn serve(
    local: Rc<Local>,
    stream: TcpStream,
    (client, number): (SocketAddr, u64),
    door: Door,
) {
    let connection = Conn::new(local, stream, client, door);
    connection.set_client(number);
    connection.serve().await;
}

/// Serves a TLS connection, after its handshake.
async fn serve_tls(
    local: Rc<Local>,
    stream: TcpStream,
    (client, number): (SocketAddr, u64),
    door: Door,
    tls: ListenerTls,
) {
    let stream = TlsStream::new(stream, tls.session(), &local.proxy.ledger);
    let mut connection = Conn::new(local, stream, client, door);
    connection.set_client(number);
    if connection.secure().await {
        connection.serve().await;
    }
}

/// A place among the connections of this client, which trusted proxies do not need; `None`: the
/// connection is refused.
fn place_of(local: &Local, client: SocketAddr) -> Option<Option<Place>> {
    let access = &local.proxy.config.access;
    if contains(&access.trusted_proxies, client.ip()) {
        return Some(None);
    }
    let place = local.proxy.places.take(client.ip());
    // A client that has its share already pays for its next connection itself.
    let share = local.proxy.ledger.connections_of_one();
    let pays =
        |place: &Place| place.number() <= share || local.shed_client(place.client(), OF_ONE) > 0;
    let place = place.filter(pays);
    if place.is_none() {
        local.count(Event::ConnectionsRefused);
    }
    Some(Some(place?))
}

/// Counts an open connection until it is dropped.
struct Open {
    _busy: crate::local::Busy,
    place: Option<Place>,
    local: Rc<Local>,
}

impl Open {
    /// The number that distinguishes the client from others (0 if it is not counted), and how many
    /// connections it has.
    fn client(&self) -> (u64, usize) {
        let place = self.place.as_ref();
        place.map_or((0, 0), |place| (place.client(), place.number()))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.local.proxy.connections.fetch_sub(1, Ordering::Relaxed);
        self.local.count(Event::ConnectionsClosed);
    }
}
