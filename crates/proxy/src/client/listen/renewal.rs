//! New settings that are sent to a running worker.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use foxy_tls::ListenerTls;
use tokio::sync::mpsc;

use crate::{Proxy, Serves};

/// New settings for one worker. If a listener of the worker is not in `listeners`, it accepts the connections
/// that are still in its queue, and is then closed.
#[derive(Debug)]
pub struct Renewal {
    /// The new proxy. [`Proxy::renewed`] has made it from the proxy that the worker uses.
    pub proxy: Arc<Proxy>,
    /// All listeners that the worker has from now on.
    pub listeners: Vec<RenewedListener>,
}

/// A listener after a reload.
#[derive(Debug)]
pub struct RenewedListener {
    /// The address of the listener.
    pub address: SocketAddr,
    /// A new listening socket; `None` if the worker already has a socket for this address.
    pub socket: Option<TcpListener>,
    /// The roles that requests on its connections may have.
    pub serves: Serves,
    /// Certificates, if clients use TLS. `None`: plain connections.
    pub tls: Option<ListenerTls>,
    /// True if trusted proxies name the client of each connection (PROXY protocol).
    pub proxy_protocol: bool,
}

type Message = (Renewal, Sender<()>);

/// Sends new settings to one worker.
#[derive(Clone, Debug)]
pub struct Renewer(mpsc::UnboundedSender<Message>);

/// The end of a channel from which a worker receives new settings.
#[derive(Debug)]
pub struct Renewals(mpsc::UnboundedReceiver<Message>);

impl Renewals {
    /// Returns both ends of a new channel. If the sender is dropped, the settings no longer change.
    #[must_use]
    pub fn channel() -> (Renewer, Self) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Renewer(sender), Self(receiver))
    }

    /// Returns a receiver for a worker whose settings do not change.
    #[must_use]
    pub fn none() -> Self {
        Self::channel().1
    }

    /// Waits for the next message. Cancel safe: no message is lost.
    pub(crate) async fn next(&mut self) -> Message {
        match self.0.recv().await {
            Some(message) => message,
            None => std::future::pending().await,
        }
    }
}

impl Renewer {
    /// Sends new settings. The returned receiver gets a message as soon as every request that begins on this
    /// worker has the new settings. The receiver is disconnected if the worker has ended.
    pub fn send(&self, renewal: Renewal) -> Receiver<()> {
        let (applied, when) = channel();
        // If the worker has ended, `applied` is dropped immediately. This disconnects the returned receiver.
        let _ = self.0.send((renewal, applied));
        when
    }
}
