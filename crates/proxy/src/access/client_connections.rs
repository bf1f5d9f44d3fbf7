//! The number of connections per client. It is limited, so that one client cannot take all connections.

use std::cell::Cell;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foxy_base::hash64;
use hashbrown::HashMap;
use parking_lot::Mutex;

const SHARDS: usize = 64;

/// Open connections per client address. For IPv6, a client is a whole /64 network.
#[derive(Debug)]
pub(crate) struct PerClientConnections {
    shards: Vec<Mutex<HashMap<IpAddr, Counts>>>,
    most: AtomicUsize,
}

/// Connections of one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Connections that a worker serves, and accepted connections that need not wait for memory.
    pub(crate) served: usize,
    /// Connections that wait for memory.
    pub(crate) waiting: usize,
}

impl Counts {
    /// Returns the number of all connections.
    pub(crate) const fn open(self) -> usize {
        self.served + self.waiting
    }
}

/// One connection that is counted for its client. When this value is dropped, the connection is no longer
/// counted.
#[derive(Debug)]
pub(crate) struct CountedConnection {
    connections: Arc<PerClientConnections>,
    client: IpAddr,
    waits: Cell<bool>,
}

impl CountedConnection {
    /// Returns the numbers of connections of the client, this connection included.
    pub(crate) fn counts(&self) -> Counts {
        self.change(|_| {})
    }

    /// Counts the connection as waiting if `waits` is true, and as served if it is false.
    pub(crate) fn set_waits(&self, waits: bool) {
        match (self.waits.replace(waits), waits) {
            (false, true) => self.change(|counts| {
                counts.served -= 1;
                counts.waiting += 1;
            }),
            (true, false) => self.change(|counts| {
                counts.waiting -= 1;
                counts.served += 1;
            }),
            _ => return,
        };
    }

    /// Returns true if the connection still waits to be served.
    pub(crate) fn waits(&self) -> bool {
        self.waits.get()
    }

    fn change(&self, change: impl FnOnce(&mut Counts)) -> Counts {
        let mut shard = self.connections.shard(self.client).lock();
        let counts = shard.entry(self.client).or_default();
        change(counts);
        *counts
    }

    /// Returns a number that distinguishes the client from other clients.
    pub(crate) fn client(&self) -> u64 {
        hash(self.client)
    }
}

impl PerClientConnections {
    /// Permits at most `most` connections per client.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            most: most.into(),
        })
    }

    /// Changes the largest number of connections per client. No open connection is closed.
    pub(crate) fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Counts a connection from `address`. Returns `None` if that client already has all connections that are
    /// permitted.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> Option<CountedConnection> {
        let client = client(address);
        let mut shard = self.shard(client).lock();
        let counts = shard.entry(client).or_default();
        if counts.open() >= self.most.load(Ordering::Relaxed) {
            return None;
        }
        counts.served += 1;
        drop(shard);
        Some(CountedConnection {
            connections: Arc::clone(self),
            client,
            waits: Cell::new(false),
        })
    }

    fn shard(&self, client: IpAddr) -> &Mutex<HashMap<IpAddr, Counts>> {
        &self.shards[(hash(client) % SHARDS as u64) as usize]
    }
}

fn hash(client: IpAddr) -> u64 {
    match client {
        IpAddr::V4(v4) => hash64(4, &v4.octets()),
        IpAddr::V6(v6) => hash64(6, &v6.octets()),
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.set_waits(false);
        let mut shard = self.connections.shard(self.client).lock();
        if let Some(counts) = shard.get_mut(&self.client) {
            counts.served -= 1;
            if counts.open() == 0 {
                shard.remove(&self.client);
            }
        }
    }
}

/// Returns the address under which a client is counted. All addresses of one IPv6 /64 network have the same
/// result.
pub(crate) fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of clients with an entry.
    fn clients(connections: &PerClientConnections) -> usize {
        let shards = connections.shards.iter();
        shards.map(|shard| shard.lock().len()).sum()
    }

    #[test]
    fn a_client_gets_its_connections_and_no_more() {
        let connections = PerClientConnections::new(2);
        let take = |text: &str| connections.take(text.parse().unwrap());
        let first = take("192.0.2.1").unwrap();
        let second = take("::ffff:192.0.2.1").unwrap();
        assert_eq!(second.counts().open(), 2);
        assert_eq!(first.client(), second.client());
        assert!(take("192.0.2.1").is_none());
        assert!(take("192.0.2.2").is_some());
        drop(first);
        assert!(take("192.0.2.1").is_some());
    }

    #[test]
    fn connections_that_wait_are_counted_apart() {
        let connections = PerClientConnections::new(3);
        let take = || connections.take(IpAddr::from([192, 0, 2, 1]));
        let (first, second) = (take().unwrap(), take().unwrap());
        let counts = |served, waiting| Counts { served, waiting };
        second.set_waits(true);
        second.set_waits(true);
        assert_eq!(first.counts(), counts(1, 1));
        drop(first);
        second.set_waits(false);
        assert_eq!(second.counts(), counts(1, 0));
        second.set_waits(true);
        let others = [take().unwrap(), take().unwrap()];
        assert!(take().is_none(), "connections that wait are counted too");
        drop(second);
        assert_eq!(others[0].counts(), counts(2, 0));
        drop(others);
        assert_eq!(clients(&connections), 0);
    }

    #[test]
    fn another_limit_holds_for_new_connections() {
        let connections = PerClientConnections::new(2);
        let take = || connections.take(IpAddr::from([192, 0, 2, 1]));
        let two = [take().unwrap(), take().unwrap()];
        connections.set_most(1);
        let [first, second] = two;
        drop(first);
        assert!(take().is_none());
        drop(second);
        assert!(take().is_some());
        connections.set_most(3);
        assert!([take(), take(), take()].iter().all(Option::is_some));
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let connections = PerClientConnections::new(1);
        let take = |text: &str| connections.take(text.parse().unwrap());
        let counted = take("2001:db8:0:1::1").unwrap();
        assert!(take("2001:db8:0:1:ffff::2").is_none());
        assert!(take("2001:db8:0:2::1").is_some());
        drop(counted);
        assert_eq!(clients(&connections), 0);
    }
}
