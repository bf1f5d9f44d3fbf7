//! Limits of clients, users and sites: requests and bytes per second, and requests under way.
//!
//! Each subject of a limit (a client, a user, a token or a site) has a bucket, in which its requests and
//! bytes are counted. The table of buckets has several parts (shards), and the number of buckets in a shard
//! is bounded. If a shard is full, its idle buckets are dropped. If it is still full, the new subjects of a
//! limit share one bucket in this shard.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use foxy_access::{Charge, Rate};
use foxy_base::{Clock, MonoTime, hash64};
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::Gatekeeper;
use crate::access::client_connections;

const SHARDS: usize = 64;
/// Number of buckets at which a shard is full. A shard is a part of the table of buckets with a separate
/// lock.
const BUCKETS: usize = 1024;
/// Second part of the key of a shared bucket. The first part is the index of the limit. If a shard is full,
/// new subjects share this bucket.
const CROWD: u64 = u64::MAX;

/// The requests that a limit counts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Requests of one address. IPv6 addresses of one /64 network count as one address.
    Client,
    /// Requests of one user. Requests without a user are counted by address.
    User,
    /// Requests with one token. Requests without a token are counted by user, and requests without a user by
    /// address.
    Token,
    /// Requests to one site.
    Site,
}

/// A limit of requests or bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Name of the limit in answers and logs.
    pub name: String,
    /// The requests that the limit counts together.
    pub per: Per,
    /// Partitions to which the limit applies: `forward` and names of sites. An empty list means all
    /// partitions.
    pub sites: Vec<String>,
    /// Requests per second.
    pub requests: Option<Rate>,
    /// Bytes per second of answers to clients. Answers that would exceed this rate are slowed down.
    pub bytes: Option<Rate>,
    /// Largest number of requests under way.
    pub under_way: Option<u32>,
}

/// Client, user, token (0 means no token) and site of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) client: IpAddr,
    pub(crate) user: &'a str,
    pub(crate) token: u64,
    pub(crate) site: &'a str,
}

#[derive(Debug, Default)]
struct Bucket {
    requests: Charge,
    bytes: Charge,
    open: u32,
}

impl Bucket {
    /// Subtracts one from the number of requests under way.
    fn leave(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    fn is_idle(&self, now: MonoTime) -> bool {
        self.open == 0 && Rate::is_idle(self.requests, now) && Rate::is_idle(self.bytes, now)
    }
}

/// All limits, and the buckets of their subjects.
#[derive(Debug)]
pub(crate) struct Limits {
    all: Vec<Limit>,
    shards: Vec<Mutex<HashMap<(usize, u64), Bucket>>>,
}

/// The limit that a request exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// Index of the limit in the list of limits.
    pub(crate) limit: usize,
    /// Time until a request will be within the limit again.
    pub(crate) wait: Duration,
}

type Key = (usize, u64);

impl Limits {
    pub(crate) fn new(all: Vec<Limit>) -> Self {
        Self {
            all,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    pub(crate) fn all(&self) -> &[Limit] {
        &self.all
    }

    fn key(&self, limit: usize, subject: &Subject<'_>) -> Key {
        let address = |ip: IpAddr| match client_connections::client(ip) {
            IpAddr::V4(ip) => hash64(4, &ip.octets()),
            IpAddr::V6(ip) => hash64(6, &ip.octets()),
        };
        let number = match self.all[limit].per {
            Per::Site => hash64(1, subject.site.as_bytes()),
            Per::Token if subject.token != 0 => hash64(3, &subject.token.to_le_bytes()),
            Per::User | Per::Token if !subject.user.is_empty() => {
                hash64(2, subject.user.as_bytes())
            }
            Per::User | Per::Token | Per::Client => address(subject.client),
        };
        (limit, number >> 1)
    }

    fn with<R>(&self, key: Key, now: MonoTime, change: impl FnOnce(&mut Bucket) -> R) -> R {
        let shard = (key.1 as usize ^ key.0) % SHARDS;
        let mut shard = self.shards[shard].lock();
        if let Some(bucket) = shard.get_mut(&key) {
            return change(bucket);
        }
        if shard.len() >= BUCKETS {
            shard.retain(|_, bucket| !bucket.is_idle(now));
        }
        let key = match shard.len() >= BUCKETS {
            true => (key.0, CROWD),
            false => key,
        };
        change(shard.entry(key).or_default())
    }

    /// Counts a request in the buckets of all limits that apply to it.
    ///
    /// # Errors
    /// Returns the limit that the request exceeds. The request is then counted in no bucket.
    fn enter(&self, subject: &Subject<'_>, now: MonoTime) -> Result<Vec<Key>, Exceeded> {
        let mut keys = Vec::new();
        for (at, limit) in self.all.iter().enumerate() {
            let is_for = |site: &String| site == subject.site;
            if !limit.sites.is_empty() && !limit.sites.iter().any(is_for) {
                continue;
            }
            let key = self.key(at, subject);
            let entered = self.with(key, now, |bucket| {
                if limit.under_way.is_some_and(|most| bucket.open >= most) {
                    return Err(1_000_000_000);
                }
                if let Some(rate) = &limit.requests {
                    rate.take(&mut bucket.requests, 1, now)?;
                }
                bucket.open += 1;
                Ok(())
            });
            if let Err(wait) = entered {
                self.undo(&keys, now);
                return Err(Exceeded {
                    limit: at,
                    wait: Duration::from_nanos(wait),
                });
            }
            keys.push(key);
        }
        Ok(keys)
    }

    /// Removes a request from the buckets `keys`. The caller needs this if a later limit in the list refuses
    /// the request.
    fn undo(&self, keys: &[Key], now: MonoTime) {
        for key in keys {
            self.with(*key, now, |bucket| {
                bucket.leave();
                if let Some(rate) = &self.all[key.0].requests {
                    rate.give_back(&mut bucket.requests, 1);
                }
            });
        }
    }

    fn leave(&self, keys: &[Key], now: MonoTime) {
        for key in keys {
            self.with(*key, now, Bucket::leave);
        }
    }

    /// Counts bytes that were sent. Returns the time to wait before more bytes are sent.
    fn spend(&self, keys: &[Key], bytes: u64, now: MonoTime) -> Duration {
        let waits = keys.iter().map(|key| match &self.all[key.0].bytes {
            Some(rate) => self.with(*key, now, |bucket| {
                rate.spend(&mut bucket.bytes, bytes, now)
            }),
            None => 0,
        });
        Duration::from_nanos(waits.max().unwrap_or(0))
    }
}

/// A request under way, which is counted in the buckets of its limits. When this value is dropped, it no
/// longer counts as under way.
#[derive(Debug)]
pub(crate) struct Counted {
    gate: Arc<Gatekeeper>,
    clock: Arc<dyn Clock>,
    keys: Vec<Key>,
    slowed: bool,
}

impl Counted {
    /// Counts a request in the buckets of its limits. Returns `None` if there are no limits.
    ///
    /// # Errors
    /// Returns the limit that the request exceeds.
    pub(crate) fn new(
        gate: &Arc<Gatekeeper>,
        subject: &Subject<'_>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<Self>, Exceeded> {
        let Some(limits) = gate.limits() else {
            return Ok(None);
        };
        let keys = limits.enter(subject, clock.mono())?;
        let slowed = keys.iter().any(|key| limits.all[key.0].bytes.is_some());
        Ok(Some(Self {
            gate: Arc::clone(gate),
            clock: Arc::clone(clock),
            keys,
            slowed,
        }))
    }

    /// Returns true if a limit of bytes applies to the request.
    pub(crate) const fn is_slowed(&self) -> bool {
        self.slowed
    }

    /// Counts bytes that were sent. Returns the time to wait before more bytes are sent.
    pub(crate) fn sent(&self, bytes: usize) -> Duration {
        let limits = self.gate.limits();
        limits.map_or(Duration::ZERO, |limits| {
            limits.spend(&self.keys, bytes as u64, self.clock.mono())
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(limits) = self.gate.limits() {
            limits.leave(&self.keys, self.clock.mono());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(per: Per) -> Limit {
        Limit {
            name: "l".to_owned(),
            per,
            sites: Vec::new(),
            requests: Some(Rate::new(10.0, 10.0)),
            bytes: None,
            under_way: None,
        }
    }

    fn subject<'a>(client: &str, user: &'a str) -> Subject<'a> {
        Subject {
            client: client.parse().unwrap(),
            user,
            token: 0,
            site: "forward",
        }
    }

    fn at(ms: u64) -> MonoTime {
        MonoTime(1 + ms * 1_000_000)
    }

    /// Sends a request every 10 ms for a minute, and returns the number of requests that the limits admit.
    fn in_a_minute(limits: &Limits, subject: &Subject<'_>) -> usize {
        let mut through = 0;
        for ms in (0..60_000).step_by(10) {
            if let Ok(keys) = limits.enter(subject, at(ms)) {
                limits.leave(&keys, at(ms));
                through += 1;
            }
        }
        through
    }

    #[test]
    fn a_minute_has_its_requests_within_five_percent() {
        let limits = Limits::new(vec![limit(Per::Client)]);
        let through = in_a_minute(&limits, &subject("10.0.0.1", ""));
        assert!((590..=630).contains(&through), "{through}");
    }

    #[test]
    fn tokens_of_one_user_have_limits_of_their_own() {
        let limits = Limits::new(vec![limit(Per::Token)]);
        let through = |token, user| {
            let subject = Subject {
                token,
                ..subject("10.0.0.1", user)
            };
            let enter = |_: &u32| limits.enter(&subject, at(0)).is_ok();
            (0..20).filter(enter).count()
        };
        assert_eq!((through(5, "ci"), through(7, "ci")), (10, 10));
        assert_eq!(through(5, "ci"), 0);
        // Logins without a token are counted by user. Requests without a login are counted by address.
        assert_eq!((through(0, "ci"), through(0, "ann")), (10, 10));
        assert_eq!((through(0, ""), through(0, "")), (10, 0));
    }

    #[test]
    fn subjects_are_networks_users_and_sites() {
        let count = |per, subjects: &[(&str, &str)]| {
            let limits = Limits::new(vec![limit(per)]);
            let enter = |(client, user): &(&str, &str)| {
                (0..20)
                    .filter(|_| limits.enter(&subject(client, user), at(0)).is_ok())
                    .count()
            };
            subjects.iter().map(enter).sum::<usize>()
        };
        assert_eq!(
            count(Per::Client, &[("2001:db8::1", ""), ("2001:db8::2", "")]),
            10
        );
        assert_eq!(
            count(Per::Client, &[("2001:db8::1", ""), ("2001:db8:0:1::", "")]),
            20
        );
        assert_eq!(
            count(Per::Client, &[("10.0.0.1", "a"), ("::ffff:10.0.0.1", "b")]),
            10
        );
        // Users behind one address have separate limits. One user behind several addresses has one limit.
        assert_eq!(
            count(Per::User, &[("10.0.0.1", "a"), ("10.0.0.1", "b")]),
            20
        );
        assert_eq!(
            count(Per::User, &[("10.0.0.1", "a"), ("10.0.0.2", "a")]),
            10
        );
        assert_eq!(count(Per::User, &[("10.0.0.1", ""), ("10.0.0.2", "")]), 20);
        assert_eq!(
            count(Per::Site, &[("10.0.0.1", "a"), ("10.0.0.2", "b")]),
            10
        );
    }

    #[test]
    fn requests_under_way_leave_again_and_refused_ones_count_for_nothing() {
        let limits = Limits::new(vec![
            Limit {
                requests: None,
                under_way: Some(2),
                ..limit(Per::Client)
            },
            limit(Per::Client),
        ]);
        let own = subject("10.0.0.1", "");
        let first = limits.enter(&own, at(0)).unwrap();
        let _second = limits.enter(&own, at(0)).unwrap();
        for _ in 0..50 {
            assert_eq!(limits.enter(&own, at(0)).unwrap_err().limit, 0);
        }
        limits.leave(&first, at(0));
        let _third = limits.enter(&own, at(0)).unwrap();
        assert!(limits.enter(&own, at(0)).is_err());
    }

    #[test]
    fn a_request_that_one_limit_refuses_does_not_count_for_the_limit_before_it() {
        let one_under_way = Limit {
            requests: None,
            under_way: Some(1),
            ..limit(Per::Client)
        };
        let limits = Limits::new(vec![limit(Per::Client), one_under_way]);
        let own = subject("10.0.0.1", "");
        let held = limits.enter(&own, at(0)).unwrap();
        for _ in 0..50 {
            assert_eq!(limits.enter(&own, at(0)).unwrap_err().limit, 1);
        }
        limits.leave(&held, at(0));
        let admitted = (0..20).filter_map(|_| limits.enter(&own, at(0)).ok());
        let admitted = admitted.map(|keys| limits.leave(&keys, at(0)));
        assert_eq!(admitted.count(), 9, "ten at once, and one of them was held");
    }

    /// Fifty clients share the byte rate of one site evenly. Each client sends its next piece as soon as the
    /// limit permits it.
    #[test]
    fn fifty_clients_share_a_rate_evenly() {
        let limits = Limits::new(vec![Limit {
            requests: None,
            bytes: Some(Rate::new(1e6, 1e5)),
            ..limit(Per::Site)
        }]);
        let keys = limits.enter(&subject("10.0.0.1", ""), at(0)).unwrap();
        let (mut sent, mut next) = ([0u64; 50], [0u64; 50]);
        // The pieces of different clients have different sizes.
        for ms in 0..60_000u64 {
            for client in 0..50 {
                if next[client] <= ms {
                    let piece = 4096 + 64 * client as u64;
                    sent[client] += piece;
                    let wait = limits.spend(&keys, piece, at(ms));
                    next[client] = ms + 1 + wait.as_millis() as u64;
                }
            }
        }
        let (sum, squares) = sent.iter().fold((0.0, 0.0), |(sum, squares), n| {
            (sum + *n as f64, squares + (*n as f64).powi(2))
        });
        let jain = sum * sum / (50.0 * squares);
        assert!(jain > 0.95, "{jain}");
        assert!((sum - 60e6).abs() < 60e6 * 0.05, "{sum}");
    }

    #[test]
    fn the_number_of_buckets_is_bounded() {
        let limits = Limits::new(vec![limit(Per::Client)]);
        for n in 0..72_000u32 {
            let ip = IpAddr::from(n.to_be_bytes());
            let own = Subject {
                client: ip,
                ..subject("10.0.0.1", "")
            };
            if let Ok(keys) = limits.enter(&own, at(0)) {
                limits.leave(&keys, at(0));
            }
        }
        let held: usize = limits.shards.iter().map(|shard| shard.lock().len()).sum();
        assert!(held <= SHARDS * (BUCKETS + 1), "{held}");
        // A minute later, all buckets are idle. So old buckets are dropped, and new buckets can be added.
        assert!(limits.enter(&subject("192.0.2.1", ""), at(60_000)).is_ok());
    }
}
