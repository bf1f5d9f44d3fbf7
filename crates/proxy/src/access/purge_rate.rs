//! Limits the rate of `PURGE` requests on listeners. There is one token bucket for each client, and one for
//! all clients together.
//!
//! Requests with the admin credential are exempt. So a flood of purges by clients does not delay an operator.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foxy_base::MonoTime;
use parking_lot::Mutex;

/// Capacity of a bucket, stated as a time in seconds. A full bucket contains the purges that its rate permits
/// in this time. A client may send all these purges without a pause.
const BURST: u64 = 10;
/// Limit of all clients together, in multiples of the limit of one client.
const ALL: u64 = 4;
/// Largest number of clients that are remembered. When this number is reached, clients with a full bucket are
/// forgotten. If no bucket is full, requests of additional clients are refused.
const CLIENTS: usize = 4096;
/// Units per purge. Buckets count in these units.
const PART: u64 = 1_000_000_000;

/// A token bucket. It fills at a constant rate, and each `PURGE` request takes one purge out of it.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Level of the bucket. One purge is [`PART`] units.
    level: u64,
    at: MonoTime,
}

impl Bucket {
    const fn full(rate: u64, at: MonoTime) -> Self {
        Self {
            level: rate * BURST * PART,
            at,
        }
    }

    fn fill(&mut self, rate: u64, now: MonoTime) {
        let passed = u64::try_from(now.since(self.at).as_nanos()).unwrap_or(u64::MAX);
        let come = passed.saturating_mul(rate);
        self.level = self.level.saturating_add(come).min(rate * BURST * PART);
        self.at = now;
    }

    /// Returns the time until the next purge is available.
    const fn wait(&self, rate: u64) -> Duration {
        Duration::from_nanos(PART.saturating_sub(self.level) / rate)
    }
}

/// The buckets of all clients.
#[derive(Debug)]
pub(crate) struct PurgeRate {
    rate: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    all: Bucket,
    clients: HashMap<IpAddr, Bucket>,
}

impl PurgeRate {
    /// Limits each client to this many purges per second. A rate of 0 counts as 1.
    pub(crate) fn new(rate: u32, now: MonoTime) -> Self {
        let rate = purges(rate);
        Self {
            rate: rate.into(),
            state: Mutex::new(State {
                all: Bucket::full(rate * ALL, now),
                clients: HashMap::new(),
            }),
        }
    }

    /// Sets another rate. If a bucket contains more than its new capacity, its next use reduces it to this
    /// capacity.
    pub(crate) fn set(&self, rate: u32) {
        self.rate.store(purges(rate), Ordering::Relaxed);
    }

    /// Takes one purge out of the bucket of this client, and one out of the bucket of all clients.
    ///
    /// # Errors
    /// Returns the time to wait before the next try.
    pub(crate) fn take(&self, client: IpAddr, now: MonoTime) -> Result<(), Duration> {
        let rate = self.rate.load(Ordering::Relaxed);
        let mut state = self.state.lock();
        let State { all, clients } = &mut *state;
        let client = network(client);
        if clients.len() >= CLIENTS && !clients.contains_key(&client) {
            // A full bucket is equal to a new bucket, so it can be dropped.
            clients.retain(|_, bucket| {
                bucket.fill(rate, now);
                bucket.level < rate * BURST * PART
            });
            if clients.len() >= CLIENTS {
                return Err(Duration::from_secs(1));
            }
        }
        let own = clients.entry(client).or_insert(Bucket::full(rate, now));
        own.fill(rate, now);
        all.fill(rate * ALL, now);
        if own.level < PART {
            return Err(own.wait(rate));
        }
        if all.level < PART {
            return Err(all.wait(rate * ALL));
        }
        own.level -= PART;
        all.level -= PART;
        Ok(())
    }
}

/// Returns the number of purges per second that one client may send.
fn purges(rate: u32) -> u64 {
    u64::from(rate.max(1))
}

/// Returns the network that counts as one client. For IPv6 this is a /64 network.
fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn after(seconds: u64) -> MonoTime {
        MonoTime(0) + Duration::from_secs(seconds)
    }

    /// Returns the number of purges of this client that are accepted at the time `at`.
    fn through(rate: &PurgeRate, client: &str, at: MonoTime) -> usize {
        (0..10_000)
            .take_while(|_| rate.take(ip(client), at).is_ok())
            .count()
    }

    #[test]
    fn a_client_has_a_burst_and_then_its_rate() {
        let rate = PurgeRate::new(5, after(0));
        assert_eq!(through(&rate, "10.0.0.1", after(0)), 50);
        let wait = rate.take(ip("10.0.0.1"), after(0)).unwrap_err();
        assert_eq!(wait, Duration::from_millis(200));
        assert_eq!(through(&rate, "10.0.0.1", after(2)), 10);
        assert_eq!(through(&rate, "10.0.0.1", after(1000)), 50);
    }

    #[test]
    fn another_rate_holds_at_once() {
        let rate = PurgeRate::new(5, after(0));
        assert_eq!(through(&rate, "10.0.0.1", after(0)), 50);
        rate.set(2);
        assert_eq!(through(&rate, "10.0.0.1", after(1)), 2);
        assert_eq!(through(&rate, "10.0.0.2", after(1)), 20);
        rate.set(10);
        assert_eq!(through(&rate, "10.0.0.1", after(3)), 20);
    }

    #[test]
    fn clients_have_their_own_and_one_over_all() {
        let rate = PurgeRate::new(1, after(0));
        for n in 0..4 {
            assert_eq!(through(&rate, &format!("10.0.0.{n}"), after(0)), 10, "{n}");
        }
        assert_eq!(through(&rate, "10.0.0.9", after(0)), 0);
        assert_eq!(through(&rate, "10.0.0.9", after(1)), 4);
    }

    #[test]
    fn one_client_has_a_network_of_ipv6_addresses() {
        let rate = PurgeRate::new(1, after(0));
        assert_eq!(through(&rate, "2001:db8::1", after(0)), 10);
        assert_eq!(through(&rate, "2001:db8::2", after(0)), 0);
        assert_eq!(through(&rate, "2001:db8:0:1::1", after(0)), 10);
    }

    #[test]
    fn clients_are_forgotten_when_they_have_been_quiet() {
        let rate = PurgeRate::new(1000, after(0));
        let client = |n: usize| IpAddr::from([10, 0, (n >> 8) as u8, n as u8]);
        for n in 0..CLIENTS {
            assert!(rate.take(client(n), after(0)).is_ok());
        }
        assert!(rate.take(ip("10.9.9.9"), after(0)).is_err());
        assert!(rate.take(ip("10.9.9.9"), after(1)).is_ok());
        assert_eq!(rate.state.lock().clients.len(), 1);
    }
}
