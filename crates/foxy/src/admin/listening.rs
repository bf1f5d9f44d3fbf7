//! The thread that accepts connections of the admin listener.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::guard::ListenerKind;
use super::open::Open;
use super::{State, UnixSocket, connection};
use crate::StartError;

/// Number of open connections above which the oldest idle connections are closed.
const CONNECTIONS: usize = 64;
/// Largest number of open connections, even if all of them are busy. Further connections wait to be accepted.
const CONNECTIONS_MAX: usize = 256;

/// Binds the admin address.
pub(crate) fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    let fail = |source| StartError::listen(address, "admin", source);
    let socket = TcpListener::bind(address).map_err(fail)?;
    socket.set_nonblocking(true).map_err(fail)?;
    Ok(socket)
}

/// The current state. A reload replaces it, but an open connection keeps the state with which it began.
type Current = Arc<RwLock<Arc<State>>>;

/// The running listener.
#[derive(Debug)]
pub(crate) struct AdminThread {
    current: Current,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl AdminThread {
    /// Starts answering on the address, the unix socket, or both.
    pub(crate) fn start(
        (socket, unix): (Option<TcpListener>, Option<UnixSocket>),
        state: State,
    ) -> Result<Self, StartError> {
        let fail = |source| StartError::Thread {
            what: "admin",
            source,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(fail)?;
        let (stop, stopped) = oneshot::channel();
        let current = Current::new(RwLock::new(Arc::new(state)));
        let served = Arc::clone(&current);
        let thread = std::thread::Builder::new()
            .name("foxy-admin".to_owned())
            .spawn(move || runtime.block_on(serve((socket, unix), served, stopped)))
            .map_err(fail)?;
        Ok(Self {
            current,
            stop,
            thread,
        })
    }

    /// Replaces the state for later requests.
    pub(crate) fn replace_state(&self, state: State) {
        *self.current.write() = Arc::new(state);
    }

    /// Ends the thread and cuts off its connections.
    pub(crate) fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

async fn serve(
    (socket, unix): (Option<TcpListener>, Option<UnixSocket>),
    current: Current,
    stopped: oneshot::Receiver<()>,
) {
    let network = socket.map(tokio::net::TcpListener::from_std).transpose();
    let local = unix
        .as_ref()
        .map(|unix| tokio::net::UnixListener::from_std(unix.listener()?));
    let (network, local) = match (network, local.transpose()) {
        (Ok(network), Ok(local)) => (network, local),
        (Err(error), _) | (_, Err(error)) => {
            tracing::error!(%error, "the admin listener could not start");
            return;
        }
    };
    tokio::select! {
        () = accept_all((network, local), &current) => {}
        _ = stopped => {}
    }
}

/// Returns the next connection of a listener. Without a listener, it waits forever.
async fn next<S, F: Future<Output = std::io::Result<S>>>(
    accepting: Option<F>,
) -> std::io::Result<S> {
    match accepting {
        Some(accepting) => accepting.await,
        None => std::future::pending().await,
    }
}

async fn accept_all(
    (network, local): (
        Option<tokio::net::TcpListener>,
        Option<tokio::net::UnixListener>,
    ),
    current: &Current,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let open = Open::new(CONNECTIONS);
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let around = (current, &open, permit);
        let begun = tokio::select! {
            accepted = next(network.as_ref().map(tokio::net::TcpListener::accept)) => accepted
                .map(|(stream, _)| begin(stream, ListenerKind::Network, around)),
            accepted = next(local.as_ref().map(tokio::net::UnixListener::accept)) => accepted
                .map(|(stream, _)| begin(stream, ListenerKind::Socket, around)),
        };
        if begun.is_err() {
            // The usual cause is that the process has no free descriptors. Accepting continues after a pause.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Serves a connection in a separate task.
fn begin<S>(
    stream: S,
    kind: ListenerKind,
    (current, open, permit): (&Current, &Open, OwnedSemaphorePermit),
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (state, place) = (Arc::clone(&current.read()), open.place());
    let conn_state = place.state();
    let task = tokio::spawn(async move {
        connection::serve(stream, kind, &state, &conn_state).await;
        drop(permit);
    });
    open.enter(place, task.abort_handle());
}
