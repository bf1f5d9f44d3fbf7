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
use tokio::task::LocalSet;

use crate::access::places::Place;
use crate::access::settings::contains;
use crate::client::conn::Conn;
use crate::client::listen::listening::Listening;
use crate::client::listen::named;
use crate::client::listen::post::{Post, Posted};
use crate::http::net::{TICK, TlsStream, Transport};
use crate::origin::exchange::Upstream;
use crate::state::ledger::Pressure;
use crate::state::local::Local;
use crate::{Event, Listener, LogSink, Proxy, Renewals};

/// Connections of a client that are closed together to make room for a new one of the same client.
const OF_ONE: usize = 8;

/// The input of a worker at its start.
#[derive(Debug)]
pub struct Worker {
    /// State that all workers share.
    pub proxy: Arc<Proxy>,
    /// This worker's number, from 0; chooses its counters.
    pub index: usize,
    /// Its listening sockets.
    pub listeners: Vec<Listener>,
    /// Where its finished requests go.
    pub log: Box<dyn LogSink>,
    /// Where new settings come from.
    pub renewals: Renewals,
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
        let result = tasks.block_on(&runtime, beside(self.serve()));
        // Tasks that outlived the drain end here, with their connections.
        drop(tasks);
        runtime.shutdown_timeout(Duration::from_millis(200));
        result
    }

    async fn serve(self) -> io::Result<()> {
        let mut shutdown = self.proxy.shutdown_signal();
        let mut renewals = self.renewals;
        let local = Local::new(self.proxy, self.index, self.log);
        let sweeper = tokio::task::spawn_local(sweep(Rc::clone(&local)));
        let turns = Rc::clone(&local.turns);
        let turner = tokio::task::spawn_local(async move { turns.run().await });
        let mut listening = Listening::new(local);
        for listener in self.listeners {
            let address = listener.socket.local_addr()?;
            let way = (listener.tls, listener.proxy_protocol);
            listening.open(address, listener.socket, (listener.serves, way))?;
        }
        loop {
            tokio::select! {
                // An error means that the proxy is gone, which ends the worker too.
                _ = shutdown.wait_for(|stop| *stop) => break,
                (renewal, applied) = renewals.next() => {
                    listening.renew(renewal);
                    let _ = applied.send(());
                }
            }
        }
        let local = listening.stop();
        local.sweep.drain();
        local.pool.clear();
        let drain = local.proxy.config.timeouts.drain;
        let _ = tokio::time::timeout(drain, idle(&local)).await;
        sweeper.abort();
        turner.abort();
        local.log.borrow_mut().flush();
        Ok(())
    }
}

/// Runs `work` as a task beside the others. `LocalSet` polls its root future at every turn of the loop,
/// so the root future only looks at a flag. As the root future, the work itself would be polled once for
/// each request, which takes 540 instructions.
async fn beside<T: 'static>(work: impl Future<Output = T> + 'static) -> T {
    let ended = Rc::new(Ended::default());
    let ends = Ends(Rc::clone(&ended));
    let task = tokio::task::spawn_local(async move {
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
            // Nobody cancels it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// State between a task and the future that waits for its end.
#[derive(Default)]
struct Ended {
    is_over: Cell<bool>,
    waiting: Cell<Option<Waker>>,
}

/// Notes the end of a task, also by a panic.
struct Ends(Rc<Ended>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.is_over.set(true);
        if let Some(waker) = self.0.waiting.take() {
            waker.wake();
        }
    }
}

/// Waits until nothing is under way.
async fn idle(local: &Local) {
    while local.busy.get() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Looks after deadlines, unused connections and the log, several times a second.
pub(crate) async fn sweep(local: Rc<Local>) {
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

/// Begins to serve a connection that was accepted.
pub(crate) fn start(post: &Rc<Post>, stream: TcpStream, peer: SocketAddr) {
    let Posted {
        local, tls, named, ..
    } = post.current();
    let access = &local.proxy.config.access;
    let named = named && contains(&access.trusted_proxies, peer.ip());
    let Some(guard) = Open::count(&local, peer) else {
        return;
    };
    // Answers are written whole: waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    // Without this limit, megabytes stay in the kernel for a client that does not read.
    let most = local.proxy.ledger.send_bytes() as u32;
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(most);
    let post = Rc::clone(post);
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
        if !guard.enter().await {
            return;
        }
        let number = guard.client();
        // Boxed: a connection that waits must not have the memory of one that is served.
        match tls {
            None => Box::pin(serve(&post, stream, (client, number))).await,
            Some(tls) => Box::pin(serve_tls(&post, stream, (client, number), tls)).await,
        }
    });
}

/// Serves a plain connection; `number` distinguishes its client from others.
pub(crate) async fn serve<T: Transport>(
    post: &Rc<Post>,
    stream: T,
    (client, number): (SocketAddr, u64),
) {
    let turns = Rc::clone(&post.current().local.turns);
    let connection = Conn::new(post, stream, client);
    connection.set_client(number);
    turns.take(number, pin!(connection.serve())).await;
}

/// Serves a TLS connection, after its handshake.
async fn serve_tls(
    post: &Rc<Post>,
    stream: TcpStream,
    (client, number): (SocketAddr, u64),
    tls: ListenerTls,
) {
    let local = post.current().local;
    let (ledger, turns) = (Arc::clone(&local.proxy.ledger), Rc::clone(&local.turns));
    let stream = TlsStream::new(stream, tls.session(), &ledger);
    let mut connection = Conn::new(post, stream, client);
    connection.set_client(number);
    let serving = async {
        if connection.secure().await {
            connection.serve().await;
        }
    };
    turns.take(number, pin!(serving)).await;
}

/// A place among the connections of this client, which trusted proxies do not need; `None`: the
/// connection is refused.
fn place_of(local: &Local, client: SocketAddr) -> Option<Option<Place>> {
    let access = &local.proxy.config.access;
    if contains(&access.trusted_proxies, client.ip()) {
        return Some(None);
    }
    let place = local.proxy.places.take(client.ip());
    let place = place.filter(|place| {
        place.set_waits(local.proxy.ledger.is_over());
        has_share(local, place)
    });
    if place.is_none() {
        local.count(Event::ConnectionsRefused);
    }
    Some(Some(place?))
}

/// True if a client may have this connection too. If the client has its share already, other connections
/// of the same client are closed for it.
fn has_share(local: &Local, place: &Place) -> bool {
    let proxy = &local.proxy;
    proxy.ledger.has_share(place.counts(), proxy.workers())
        || local.shed_client(place.client(), OF_ONE) > 0
}

/// Counts an open connection until it is dropped.
pub(crate) struct Open {
    _busy: crate::state::local::Busy,
    place: Option<Place>,
    local: Rc<Local>,
}

impl Open {
    /// Counts a connection that was accepted, and makes room for it. `None`: it is refused.
    pub(crate) fn count(local: &Rc<Local>, peer: SocketAddr) -> Option<Self> {
        let open = &local.proxy.connections;
        let place = place_of(local, peer)?;
        let places = local.proxy.config.limits.connections;
        let full = open.fetch_add(1, Ordering::Relaxed) >= places;
        // The place of a connection that is closed for this one becomes free at once.
        let made_room = match full {
            true => local.make_place(),
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
            place,
            local: Rc::clone(local),
        })
    }

    /// Waits while memory is spent. False if the connection is not served after all.
    pub(crate) async fn enter(&self) -> bool {
        if self.local.proxy.ledger.is_over() {
            // Boxed: it would enlarge the task of every connection.
            Box::pin(self.wait()).await;
        }
        self.is_let_in()
    }

    /// The number that distinguishes the client from others; 0 if it is not counted.
    pub(crate) fn client(&self) -> u64 {
        self.place.as_ref().map_or(0, Place::client)
    }

    /// Waits until the connection may be served.
    async fn wait(&self) {
        let place = self.place.as_ref();
        place.inspect(|place| place.set_waits(true));
        let connections = place.map_or(0, |place| place.counts().open());
        self.local.entrance.enter(&self.local, connections).await;
    }

    /// Counts the connection among those that are served. False if it waited, and its client has more
    /// than its share of these now.
    fn is_let_in(&self) -> bool {
        let Some(place) = self.place.as_ref().filter(|place| place.waits()) else {
            return true;
        };
        place.set_waits(false);
        let has_share = has_share(&self.local, place);
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
        if self.place.as_ref().is_none_or(|place| !place.waits()) {
            self.local.entrance.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let other = tokio::task::spawn_local(async { 2 });
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
