//! Parts that the loads and the watching clients (`watch`) share: addresses, the origin, names of objects,
//! and a client that keeps a connection open.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::conn::{Conn, Fault};
use super::origin::Origin;

/// Addresses of the measured Foxy process, and its origin.
#[derive(Debug)]
pub(super) struct Fixture {
    pub(super) proxy: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) origin: Arc<Origin>,
    unique: AtomicU64,
}

impl Fixture {
    pub(super) fn new(proxy: SocketAddr, admin: SocketAddr, origin: &Arc<Origin>) -> Self {
        Self {
            proxy,
            admin,
            origin: Arc::clone(origin),
            unique: AtomicU64::new(0),
        }
    }

    /// Returns a number that no object has used before.
    pub(super) fn unique(&self) -> u64 {
        self.unique.fetch_add(1, Ordering::Relaxed)
    }
}

/// A well-behaved client: it reads the answers and keeps its connection open.
#[derive(Debug)]
pub(super) struct Client {
    source: Ipv4Addr,
    proxy: SocketAddr,
    kept: Option<Conn>,
}

impl Client {
    /// A client without a connection.
    pub(super) const fn new(source: Ipv4Addr, proxy: SocketAddr) -> Self {
        Self {
            source,
            proxy,
            kept: None,
        }
    }

    /// Opens a connection if there is none.
    pub(super) async fn open(&mut self) -> Result<(), Fault> {
        if self.kept.is_none() {
            self.kept = Some(Conn::open(self.source, self.proxy).await?);
        }
        Ok(())
    }

    /// Requests an object and checks the answer. A proxy may close an idle connection at any time. If the
    /// proxy does this just when the request is sent, the request is sent once more on a new connection.
    pub(super) async fn get(&mut self, path: &str, size: usize) -> Result<(), Fault> {
        if let Some(mut conn) = self.kept.take() {
            match conn.get(path, size).await {
                Ok(()) => {
                    self.kept = Some(conn);
                    return Ok(());
                }
                Err(Fault::Gone) => {}
                Err(fault) => return Err(fault),
            }
        }
        let mut conn = Conn::open(self.source, self.proxy).await?;
        conn.get(path, size).await?;
        self.kept = Some(conn);
        Ok(())
    }

    /// Returns the client's connection.
    pub(super) fn into_conn(self) -> Option<Conn> {
        self.kept
    }
}
