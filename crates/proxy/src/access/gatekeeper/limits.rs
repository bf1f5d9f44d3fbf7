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
/// Value of [`Key::subject`] in the key of a shared bucket. If a shard is full, new subjects share this
/// bucket.
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
    shards: Vec<Mutex<HashMap<Key, Bucket>>>,
}

/// The limit that a request exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// Index of the limit in the list of limits.
    pub(crate) limit: usize,
    /// Time until a request will be within the limit again.
    pub(crate) wait: Duration,
}

/// The key of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    /// Index of the shard that contains the bucket.
    shard: usize,
    /// Index of the limit in the list of limits.
    limit: usize,
    /// Hash of the subject, or [`CROWD`].
    subject: u64,
}

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
        let subject = number >> 1;
        Key {
            shard: (subject as usize ^ limit) % SHARDS,
            limit,
            subject,
        }
    }

    /// Changes the bucket with this key, or the shared bucket if the shard is full and has no bucket with
    /// this key. Also returns the key of the changed bucket. Later changes for the same request need the
    /// returned key: if the shard is not full any more by then, `key` would select another bucket.
    fn with<R>(&self, key: Key, now: MonoTime, change: impl FnOnce(&mut Bucket) -> R) -> (Key, R) {
        let mut shard = self.shards[key.shard].lock();
        if let Some(bucket) = shard.get_mut(&key) {
            return (key, change(bucket));
        }
        if shard.len() >= BUCKETS {
            shard.retain(|_, bucket| !bucket.is_idle(now));
        }
        let subject = match shard.len() >= BUCKETS {
            true => CROWD,
            false => key.subject,
        };
        let key = Key { subject, ..key };
        (key, change(shard.entry(key).or_default()))
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
            let (key, entered) = self.with(self.key(at, subject), now, |bucket| {
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
                if let Some(rate) = &self.all[key.limit].requests {
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
        let waits = keys.iter().map(|key| match &self.all[key.limit].bytes {
            Some(rate) => {
                let spend = |bucket: &mut Bucket| rate.spend(&mut bucket.bytes, bytes, now);
                self.with(*key, now, spend).1
            }
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
        let slowed = keys.iter().any(|key| limits.all[key.limit].bytes.is_some());
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
mod tests;
