//! Places for client connections, counted per client, so that one client cannot take them all.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foxy_base::hash64;
use hashbrown::HashMap;
use parking_lot::Mutex;

const SHARDS: usize = 64;

/// Open connections per client address. An IPv6 client has its whole /64.
#[derive(Debug)]
pub(crate) struct Places {
    shards: Vec<Mutex<HashMap<IpAddr, usize>>>,
    most: AtomicUsize,
}

/// One connection's place; free again when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    client: IpAddr,
    /// Connections that the client had when it took this place, this one included.
    number: usize,
}

impl Place {
    /// Connections that the client had when it took this place, this one included.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Distinguishes the client from others.
    pub(crate) fn client(&self) -> u64 {
        hash(self.client)
    }
}

impl Places {
    /// At most `most` connections per client.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            most: most.into(),
        })
    }

    /// Sets another limit. Clients that have more keep their connections.
    pub(crate) fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// A place for a connection from `address`; `None` if that client has all of its places.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let client = client(address);
        let mut shard = self.shard(client).lock();
        let count = shard.entry(client).or_insert(0);
        if *count >= self.most.load(Ordering::Relaxed) {
            return None;
        }
        *count += 1;
        let number = *count;
        drop(shard);
        Some(Place {
            places: Arc::clone(self),
            client,
            number,
        })
    }

    fn shard(&self, client: IpAddr) -> &Mutex<HashMap<IpAddr, usize>> {
        &self.shards[(hash(client) % SHARDS as u64) as usize]
    }
}

fn hash(client: IpAddr) -> u64 {
    match client {
        IpAddr::V4(v4) => hash64(4, &v4.octets()),
        IpAddr::V6(v6) => hash64(6, &v6.octets()),
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut shard = self.places.shard(self.client).lock();
        if let Some(count) = shard.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                shard.remove(&self.client);
            }
        }
    }
}

/// The address under which a client is counted.
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

    #[test]
    fn a_client_gets_its_places_and_no_more() {
        let places = Places::new(2);
        let take = |text: &str| places.take(text.parse().unwrap());
        let first = take("192.0.2.1").unwrap();
        let second = take("::ffff:192.0.2.1").unwrap();
        assert_eq!((first.number(), second.number()), (1, 2));
        assert_eq!(first.client(), second.client());
        assert!(take("192.0.2.1").is_none());
        assert!(take("192.0.2.2").is_some());
        drop(first);
        assert!(take("192.0.2.1").is_some());
    }

    #[test]
    fn another_limit_holds_for_new_connections() {
        let places = Places::new(2);
        let take = || places.take(IpAddr::from([192, 0, 2, 1]));
        let two = [take().unwrap(), take().unwrap()];
        places.set_most(1);
        let [first, second] = two;
        drop(first);
        assert!(take().is_none());
        drop(second);
        assert!(take().is_some());
        places.set_most(3);
        assert!([take(), take(), take()].iter().all(Option::is_some));
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let places = Places::new(1);
        let take = |text: &str| places.take(text.parse().unwrap());
        let place = take("2001:db8:0:1::1").unwrap();
        assert!(take("2001:db8:0:1:ffff::2").is_none());
        assert!(take("2001:db8:0:2::1").is_some());
        drop(place);
        let left: usize = places.shards.iter().map(|shard| shard.lock().len()).sum();
        assert_eq!(left, 0);
    }
}
