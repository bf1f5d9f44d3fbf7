//! One worker: a thread with its own runtime, listeners, pools and disk queues.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};
use std::time::Duration;

use foxy_tls::ListenerTls;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use crate::access::client_connections::CountedConnection;
use crate::access::settings::contains;
use crate::client::conn::Conn;
use crate::client::listen::listening::Listening;
use crate::client::listen::named;
use crate::client::listen::post::{Post, Posted};
use crate::http::net::{TICK, TlsStream, Transport};
use crate::origin::exchange::Upstream;
use crate::state::entrance::Entrance;
use crate::state::ledger::Pressure;
use crate::state::local::Local;
use crate::{Event, Listener, LogSink, Proxy, Renewals};

/// Largest number of old connections of a client that are closed to make room for one new connection of this
/// client.
const OF_ONE: usize = 8;

/// A worker before its start.
#[derive(Debug)]
pub struct Worker {
    /// State that all workers share.
    pub proxy: Arc<Proxy>,
    /// This worker's number, from 0. It chooses the worker's counters.
    pub index: usize,
    /// The worker's listening sockets.
    pub listeners: Vec<Listener>,
    /// The sink for records of finished requests.
    pub log: Box<dyn LogSink>,
    /// The source of new settings.
    pub renewals: Renewals,
}

impl Worker {
    /// Serves on the calling thread until [`Proxy::shutdown`] is called. Then returns when all work in
    /// progress has ended, or when [`Timeouts::drain`](crate::Timeouts::drain) has passed since that call.
    ///
    /// # Errors
    /// An error if the worker cannot start, because the runtime or a listener cannot be set up.
    pub fn run(self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let tasks = LocalSet::new();
        let result = tasks.block_on(&runtime, beside(self.serve()));
        // Some tasks may still run when the time limit of the shutdown has passed. They and their connections
        // end here.
        drop(tasks);
        runtime.shutdown_timeout(Duration::from_millis(200));
        result
    }

    async fn serve(self) -> io::Result<()> {
        let mut shutdown = self.proxy.shutdown_signal();
        let mut renewals = self.renewals;
        let local = Local::new(self.proxy, self.index, self.log);
        let tasks = spawn_tasks(&local);
        let mut listening = Listening::new(local);
        for listener in self.listeners {
            let address = listener.socket.local_addr()?;
            let way = (listener.tls, listener.proxy_protocol);
            listening.open(address, listener.socket, (listener.serves, way))?;
        }
        loop {
            tokio::select! {
                // An error means that the sender was dropped. Then the worker ends too.
                _ = shutdown.wait_for(|stop| *stop) => break,
                (renewal, applied) = renewals.next() => {
                    listening.renew(renewal);
                    let _ = applied.send(());
                }
            }
        }
        let local = listening.stop().await;
        local.sweep.drain();
        local.pool.clear();
        let drain = local.proxy.config.timeouts.drain;
        let _ = tokio::time::timeout(drain, idle(&local)).await;
        tasks.iter().for_each(JoinHandle::abort);
        local.log.borrow_mut().flush();
        Ok(())
    }
}

/// Runs `work` as a task next to the other tasks, and waits for it in the root future of the `LocalSet`.
/// `LocalSet` polls its root future at every iteration of its loop, so the root future only checks a flag. If
/// the work itself were the root future, it would be polled once for each request, and each poll would take
/// 540 instructions.
async fn beside<T: 'static>(work: impl Future<Output = T> + 'static) -> T {
    let ended = Rc::new(Ended::default());
    let ends = Ends(Rc::clone(&ended));
    let task = spawn_local(async move {
        let _ends = ends;
        work.await
    });
    poll_fn(|cx| match ended.is_over.get() {
        true => Poll::Ready(()),
        false => {
            let waker = ended.waiting.take();
            let known = waker.filter(|waker| waker.will_wake(cx.waker()));
            ended
                .waiting
                .set(Some(known.unwrap_or_else(|| cx.waker().clone())));
            Poll::Pending
        }
    })
    .await;
    match task.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // This does not happen, because nobody cancels the task.
            Err(_) => std::future::pending().await,
        },
    }
}

/// State shared by a task and the future that waits for the end of that task.
#[derive(Default)]
struct Ended {
    is_over: Cell<bool>,
    waiting: Cell<Option<Waker>>,
}

/// Notes the end of a task when it is dropped, even if the task panics.
struct Ends(Rc<Ended>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.is_over.set(true);
        if let Some(waker) = self.0.waiting.take() {
            waker.wake();
        }
    }
}

/// Waits until no work is in progress.
async fn idle(local: &Local) {
    while local.busy.get() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Starts the tasks that a worker needs beside its connections. They run until they are aborted.
pub(crate) fn spawn_tasks(local: &Rc<Local>) -> [JoinHandle<()>; 3] {
    let poll_budgets = Rc::clone(&local.poll_budgets);
    [
        spawn_local(sweep(Rc::clone(local))),
        spawn_local(async move { poll_budgets.run().await }),
        spawn_local(Entrance::run(Rc::clone(local))),
    ]
}

/// Checks deadlines, closes connections that were unused for too long, and writes out the log. If memory is
/// spent, also closes connections that are not needed. Does this several times a second.
async fn sweep(local: Rc<Local>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        local.sweep.tick();
        local.pool.sweep(local.sweep.now(), Upstream::rest);
        if local.proxy.ledger.pressure() == Pressure::Spent {
            local.shed_surplus();
            local.shed_queued();
        }
        local.log.borrow_mut().flush();
    }
}

/// Begins to serve an accepted connection. `counted` counts it for its client.
pub(crate) fn start(
    post: &Rc<Post>,
    stream: TcpStream,
    peer: SocketAddr,
    counted: Option<CountedConnection>,
) {
    let Posted {
        local, tls, named, ..
    } = post.current();
    let access = &local.proxy.config.access;
    let named = named && contains(&access.trusted_proxies, peer.ip());
    let Some(guard) = Open::count(&local, counted) else {
        return;
    };
    // Foxy writes complete heads and large pieces of bodies. So the kernel need not wait for more bytes
    // before it sends a packet (`TCP_NODELAY`).
    let _ = stream.set_nodelay(true);
    // Without this limit, the kernel would buffer megabytes for a client that does not read.
    let most = local.proxy.ledger.send_bytes() as u32;
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(most);
    let post = Rc::clone(post);
    spawn_local(async move {
        let mut guard = guard;
        let mut client = peer;
        if named {
            // The future is boxed. Otherwise it would enlarge the task of every connection.
            let read = Box::pin(named::client(&local, &stream, peer, tls.is_some()));
            client = match read.await {
                Some(client) => client,
                None => return,
            };
            // From now on, limits per client count the client that the header names.
            guard.counted = match count_connection(&local, client) {
                Some(counted) => counted,
                None => return,
            };
        }
        if !guard.enter().await {
            return;
        }
        let number = guard.client();
        // The futures are boxed. Otherwise a connection that waits would use as much memory as a connection
        // that is served.
        match tls {
            None => Box::pin(serve(&post, stream, (client, number))).await,
            Some(tls) => Box::pin(serve_tls(&post, stream, (client, number), tls)).await,
        }
    });
}

/// Serves a plain connection; `number` distinguishes its client from other clients.
pub(crate) async fn serve<T: Transport>(
    post: &Rc<Post>,
    stream: T,
    (client, number): (SocketAddr, u64),
) {
    let poll_budgets = Rc::clone(&post.current().local.poll_budgets);
    let connection = Conn::new(post, stream, client);
    connection.set_client(number);
    poll_budgets.take(number, pin!(connection.serve())).await;
}

/// Serves a TLS connection, after its handshake.
async fn serve_tls(
    post: &Rc<Post>,
    stream: TcpStream,
    (client, number): (SocketAddr, u64),
    tls: ListenerTls,
) {
    let local = post.current().local;
    let (ledger, poll_budgets) = (
        Arc::clone(&local.proxy.ledger),
        Rc::clone(&local.poll_budgets),
    );
    let stream = TlsStream::new(stream, tls.session(), &ledger);
    let mut connection = Conn::new(post, stream, client);
    connection.set_client(number);
    let serving = async {
        if connection.secure().await {
            connection.serve().await;
        }
    };
    poll_budgets.take(number, pin!(serving)).await;
}

/// Counts a connection of this client. Returns `Some(None)` for a connection of a trusted proxy, which is not
/// counted. Returns `None` if the connection is refused.
pub(crate) fn count_connection(
    local: &Local,
    client: SocketAddr,
) -> Option<Option<CountedConnection>> {
    let access = &local.proxy.config.access;
    if contains(&access.trusted_proxies, client.ip()) {
        return Some(None);
    }
    let counted = local.proxy.client_connections.take(client.ip());
    let counted = counted.filter(|counted| {
        counted.set_waits(local.entrance.must_wait(local));
        has_share(local, counted)
    });
    if counted.is_none() {
        local.count(Event::ConnectionsRefused);
    }
    Some(Some(counted?))
}

/// True if a client may have this additional connection. If the client already has its share of connections,
/// other connections of the same client are closed first.
fn has_share(local: &Local, counted: &CountedConnection) -> bool {
    let proxy = &local.proxy;
    proxy.ledger.has_share(counted.counts(), proxy.workers())
        || local.shed_client(counted.client(), OF_ONE) > 0
}

/// Counts an open connection until this value is dropped.
pub(crate) struct Open {
    _busy: crate::state::local::Busy,
    counted: Option<CountedConnection>,
    /// True if the connection was admitted.
    entered: Cell<bool>,
    local: Rc<Local>,
}

impl Open {
    /// Counts a connection that will be served. `counted` counts it for its client. If there are too many
    /// connections, or if memory is spent, closes others. Returns `None` if the connection is refused.
    pub(crate) fn count(local: &Rc<Local>, counted: Option<CountedConnection>) -> Option<Self> {
        let open = &local.proxy.connections;
        let limit = local.proxy.config.limits.connections;
        let full = open.fetch_add(1, Ordering::Relaxed) >= limit;
        // A connection that is closed to make room for this one is no longer counted.
        let made_room = match full {
            true => local.shed_for_new(),
            false => local.proxy.ledger.pressure() == Pressure::Spent && local.shed() > 0,
        };
        if full && !made_room {
            open.fetch_sub(1, Ordering::Relaxed);
            local.count(Event::ConnectionsRefused);
            return None;
        }
        local.count(Event::ConnectionsAccepted);
        Some(Self {
            _busy: local.busy(),
            counted,
            entered: Cell::new(false),
            local: Rc::clone(local),
        })
    }

    /// Waits while connections and their buffers use too much memory. Returns false if the connection must
    /// not be served.
    pub(crate) async fn enter(&self) -> bool {
        if self.local.entrance.must_wait(&self.local) {
            // The future is boxed. Otherwise it would enlarge the task of every connection.
            Box::pin(self.wait()).await;
        }
        self.is_let_in()
    }

    /// Returns the number that distinguishes the client from other clients. Returns 0 if the client is not
    /// counted.
    pub(crate) fn client(&self) -> u64 {
        self.counted.as_ref().map_or(0, CountedConnection::client)
    }

    /// Waits until the connection may be served.
    async fn wait(&self) {
        let counted = self.counted.as_ref();
        counted.inspect(|counted| counted.set_waits(true));
        let connections = counted.map_or(0, |counted| counted.counts().open());
        self.local.entrance.enter(&self.local, connections).await;
    }

    /// Counts the connection among the served connections. Returns false if the connection had to wait, and
    /// its client now has more than its share of connections.
    fn is_let_in(&self) -> bool {
        self.entered.set(true);
        let Some(counted) = self.counted.as_ref().filter(|counted| counted.waits()) else {
            return true;
        };
        counted.set_waits(false);
        let has_share = has_share(&self.local, counted);
        if !has_share {
            self.local.count(Event::ConnectionsRefused);
        }
        has_share
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.local.proxy.connections.fetch_sub(1, Ordering::Relaxed);
        self.local.count(Event::ConnectionsClosed);
        if self.entered.get() {
            self.local.entrance.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with_worker;

    /// If a connection is refused before it is admitted, it has used none of the memory for served
    /// connections.
    #[test]
    fn only_an_admitted_connection_can_be_replaced() {
        with_worker(1 << 20, |local| async move {
            let counted = || count_connection(&local, "192.0.2.1:5".parse().unwrap()).unwrap();
            let open = || Open::count(&local, counted()).unwrap();
            let (admitted, refused) = (open(), open());
            assert!(admitted.enter().await);
            let _waiting = local.entrance.count_waiting();
            drop(refused);
            assert_eq!(local.entrance.free(), 0);
            drop(admitted);
            assert_eq!(local.entrance.free(), 1);
        });
    }

    fn run<T: 'static>(work: impl Future<Output = T> + 'static) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        LocalSet::new().block_on(&runtime, beside(work))
    }

    #[test]
    fn work_beside_other_tasks_gives_its_result() {
        assert_eq!(run(async { 1 }), 1);
        let sleeps = async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let other = spawn_local(async { 2 });
            other.await.unwrap()
        };
        assert_eq!(run(sleeps), 2);
    }

    #[test]
    #[should_panic(expected = "in the work")]
    fn a_panic_of_the_work_is_not_lost() {
        run(async {
            tokio::task::yield_now().await;
            panic!("in the work");
        });
    }
}
