//! Shared parts of loads and watchers: addresses, origin, names, and a client that keeps a
//! connection.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::conn::{Conn, Fault};
use super::origin::Origin;

/// Addresses of a measured process, and its origin.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) proxy: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) origin: Arc<Origin>,
    unique: AtomicU64,
}

impl Scene {
    pub(super) fn new(proxy: SocketAddr, admin: SocketAddr, origin: &Arc<Origin>) -> Self {
        Self {
            proxy,
            admin,
            origin: Arc::clone(origin),
            unique: AtomicU64::new(0),
        }
    }

    /// A number that no object has yet.
    pub(super) fn unique(&self) -> u64 {
        self.unique.fetch_add(1, Ordering::Relaxed)
    }
}

/// A client that behaves: it reads what it requests, and keeps its connection.
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

    /// Opens a connection unless there is one.
    pub(super) async fn open(&mut self) -> Result<(), Fault> {
        if self.kept.is_none() {
            self.kept = Some(Conn::open(self.source, self.proxy).await?);
        }
        Ok(())
    }

    /// Requests an object and checks it. A proxy may close an idle connection at any time: a
    /// request that it meets so is repeated once on a new connection.
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

    /// Its connection.
    pub(super) fn into_conn(self) -> Option<Conn> {
        self.kept
    }
}
