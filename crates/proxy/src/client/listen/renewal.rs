//! New settings on their way to a worker that serves.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use foxy_tls::ListenerTls;
use tokio::sync::mpsc;

use crate::{Proxy, Serves};

/// New settings for one worker. Its listeners that are not named here accept what waits in their
/// queues and are closed.
#[derive(Debug)]
pub struct Renewal {
    /// The new proxy, made by [`Proxy::renewed`] from the one that the worker has.
    pub proxy: Arc<Proxy>,
    /// All listeners from now on.
    pub listeners: Vec<RenewedListener>,
}

/// A listener after a reload.
#[derive(Debug)]
pub struct RenewedListener {
    /// The address that it is bound to.
    pub address: SocketAddr,
    /// A new listening socket; `None` if the worker has one for this address.
    pub socket: Option<TcpListener>,
    /// The roles that its connections may ask for.
    pub serves: Serves,
    /// Certificates, if its clients speak TLS.
    pub tls: Option<ListenerTls>,
    /// Trusted proxies name the client of each connection (PROXY protocol).
    pub proxy_protocol: bool,
}

type Message = (Renewal, Sender<()>);

/// Sends new settings to one worker.
#[derive(Clone, Debug)]
pub struct Renewer(mpsc::UnboundedSender<Message>);

/// Where a worker receives new settings.
#[derive(Debug)]
pub struct Renewals(mpsc::UnboundedReceiver<Message>);

impl Renewals {
    /// Both ends. If the sender is dropped, the settings stay as they are.
    #[must_use]
    pub fn channel() -> (Renewer, Self) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Renewer(sender), Self(receiver))
    }

    /// For a worker whose settings do not change.
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
    /// Sends new settings. The receiver is told when every later request on this worker has the new
    /// settings; it is disconnected if the worker has ended.
    pub fn send(&self, renewal: Renewal) -> Receiver<()> {
        let (applied, when) = channel();
        // A worker that has ended drops the sender.
        let _ = self.0.send((renewal, applied));
        when
    }
}
