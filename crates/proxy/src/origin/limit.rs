//! Limits the number of fetches that wait at the same time for answers of one origin. Further requests wait
//! in a bounded queue. If the queue is full, a request is refused immediately, before it uses memory.
//!
//! A request has a permit until the head of the answer arrives, because the origin works during that time.
//! The download of a body needs no permit. One client can use at most three quarters of an origin's permits
//! and of its queue. So one client that sends slow requests does not stop other clients.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::UpstreamError;
use crate::access::client_connections;
use crate::http::destination::Destination;

const SHARDS: usize = 16;
/// When a shard of the table has this number of origins, it drops idle origins before it adds an origin.
const SWEEP_AT: usize = 256;
/// When the table of an origin has this number of clients, it drops idle clients before it looks up a client.
const CLIENTS_AT: usize = 64;

/// The limits of all origins.
#[derive(Debug)]
pub(crate) struct OriginLimit {
    shards: Vec<Mutex<HashMap<Destination, Arc<Origin>>>>,
    at_once: AtomicUsize,
    queue: AtomicUsize,
}

#[derive(Debug)]
struct Origin {
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// The permits that each client may still take. They are the client's share.
    clients: Mutex<HashMap<IpAddr, Arc<Semaphore>>>,
}

/// A permit to ask an origin. It is returned on drop.
#[derive(Debug)]
pub(crate) struct Permit {
    _permit: OwnedSemaphorePermit,
    /// The permit from the client's share.
    _share: Option<OwnedSemaphorePermit>,
    /// Keeps the origin's entry until the permit is dropped.
    _origin: Arc<Origin>,
}

impl OriginLimit {
    /// Permits at most `at_once` fetches per origin, and `queue` requests that wait for a permit.
    pub(crate) fn new(at_once: usize, queue: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            at_once: permits(at_once).into(),
            queue: queue.into(),
        }
    }

    /// Sets new limits. Running fetches and waiting requests finish under the old limits, in parallel with
    /// new requests.
    pub(crate) fn set(&self, at_once: usize, queue: usize) {
        self.queue.store(queue, Ordering::Relaxed);
        let before = self.at_once.swap(permits(at_once), Ordering::Relaxed);
        if before != permits(at_once) {
            for shard in &self.shards {
                shard.lock().clear();
            }
        }
    }

    /// Waits for a permit for a request of `client`. If `client` is `None`, the permit does not count against
    /// any client's share. Cancel safe: when the future is dropped, the request leaves the queue.
    ///
    /// # Errors
    /// Returns [`UpstreamError::Busy`] immediately if the queue is full.
    pub(crate) async fn permit(
        &self,
        to: &Destination,
        client: Option<IpAddr>,
    ) -> Result<Permit, UpstreamError> {
        let origin = self.origin(to);
        let queue = self.queue.load(Ordering::Relaxed);
        let share = match client.map(|client| origin.share(client, self.at_once())) {
            Some(share) => Some(origin.acquire(share, most_of(queue)).await?),
            None => None,
        };
        let permit = origin.acquire(Arc::clone(&origin.permits), queue);
        Ok(Permit {
            _permit: permit.await?,
            _share: share,
            _origin: origin,
        })
    }

    fn at_once(&self) -> usize {
        self.at_once.load(Ordering::Relaxed)
    }

    fn origin(&self, to: &Destination) -> Arc<Origin> {
        let hash = foxy_base::hash64(u64::from(to.port), to.host.as_bytes());
        let mut shard = self.shards[(hash % SHARDS as u64) as usize].lock();
        if let Some(origin) = shard.get(to) {
            return Arc::clone(origin);
        }
        if shard.len() >= SWEEP_AT {
            shard.retain(|_, origin| Arc::strong_count(origin) > 1);
        }
        let origin = Arc::new(Origin {
            permits: Arc::new(Semaphore::new(self.at_once())),
            waiting: AtomicUsize::new(0),
            clients: Mutex::default(),
        });
        shard.insert(to.clone(), Arc::clone(&origin));
        origin
    }
}

impl Origin {
    /// Returns the share of a client: the permits of this origin that the client may still take.
    fn share(&self, client: IpAddr, at_once: usize) -> Arc<Semaphore> {
        let mut clients = self.clients.lock();
        if clients.len() >= CLIENTS_AT {
            clients.retain(|_, share| Arc::strong_count(share) > 1);
        }
        let new = || Arc::new(Semaphore::new(most_of(at_once)));
        let share = clients
            .entry(client_connections::client(client))
            .or_insert_with(new);
        Arc::clone(share)
    }

    /// Waits for a permit from `permits`, in a queue of at most `queue` requests.
    async fn acquire(
        &self,
        permits: Arc<Semaphore>,
        queue: usize,
    ) -> Result<OwnedSemaphorePermit, UpstreamError> {
        if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
            return Ok(permit);
        }
        let _entry = QueueEntry::take(self, queue)?;
        let permit = permits.acquire_owned().await;
        permit.map_err(|_| UpstreamError::Busy)
    }
}

fn permits(at_once: usize) -> usize {
    at_once.clamp(1, Semaphore::MAX_PERMITS)
}

/// Returns the part of a limit that one client may use.
fn most_of(limit: usize) -> usize {
    limit - limit / 4
}

/// An entry in the queue of an origin.
struct QueueEntry<'a>(&'a Origin);

impl<'a> QueueEntry<'a> {
    fn take(origin: &'a Origin, most: usize) -> Result<Self, UpstreamError> {
        let entry = Self(origin);
        if origin.waiting.fetch_add(1, Ordering::AcqRel) >= most {
            return Err(UpstreamError::Busy);
        }
        Ok(entry)
    }
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::destination::to;

    #[tokio::test]
    async fn one_client_leaves_permits_and_queue_entries_to_others() {
        let limit = OriginLimit::new(4, 4);
        let [greedy, other] = [1, 2].map(|n| Some(IpAddr::from([192, 0, 2, n])));
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(limit.permit(&to("a"), greedy).await.unwrap());
        }
        let origin = to("a");
        let mut waits: Vec<_> = (0..3)
            .map(|_| Box::pin(limit.permit(&origin, greedy)))
            .collect();
        for wait in &mut waits {
            let now = tokio::time::timeout(std::time::Duration::ZERO, wait.as_mut());
            assert!(now.await.is_err(), "its share is taken");
        }
        let refused = limit.permit(&origin, greedy).await.err();
        assert_eq!(refused, Some(UpstreamError::Busy));
        assert!(limit.permit(&origin, other).await.is_ok());
        held.pop();
        assert!(waits.remove(0).await.is_ok());
    }

    #[tokio::test]
    async fn other_limits_hold_for_what_comes_next() {
        let limit = OriginLimit::new(1, 0);
        let held = limit.permit(&to("a"), None).await.unwrap();
        let busy = limit.permit(&to("a"), None).await.err();
        assert_eq!(busy, Some(UpstreamError::Busy));
        limit.set(2, 0);
        let _two = [
            limit.permit(&to("a"), None).await.unwrap(),
            limit.permit(&to("a"), None).await.unwrap(),
        ];
        drop(held);
        let busy = limit.permit(&to("a"), None).await.err();
        assert_eq!(busy, Some(UpstreamError::Busy));
        // Only the limit of the queue changes. Permits in use still count.
        limit.set(2, 1);
        let origin = to("a");
        let mut waits = std::pin::pin!(limit.permit(&origin, None));
        let now = tokio::time::timeout(std::time::Duration::ZERO, waits.as_mut());
        assert!(now.await.is_err(), "it waits");
    }

    #[tokio::test]
    async fn permits_queue_and_refuse_per_origin() {
        let limit = OriginLimit::new(2, 1);
        let first = limit.permit(&to("a"), None).await.unwrap();
        let _second = limit.permit(&to("a"), None).await.unwrap();
        let _other = limit.permit(&to("b"), None).await.unwrap();
        let origin = to("a");
        let mut waits = std::pin::pin!(limit.permit(&origin, None));
        assert!(
            tokio::time::timeout(std::time::Duration::ZERO, waits.as_mut())
                .await
                .is_err(),
            "both permits are taken"
        );
        assert_eq!(
            limit.permit(&to("a"), None).await.err(),
            Some(UpstreamError::Busy)
        );
        drop(first);
        assert!(waits.await.is_ok());
        assert!(
            limit.permit(&to("a"), None).await.is_ok(),
            "the queue is free again"
        );
    }

    #[tokio::test]
    async fn origins_without_fetches_are_dropped() {
        let limit = OriginLimit::new(1, 0);
        for n in 0..SWEEP_AT * SHARDS * 2 {
            drop(limit.permit(&to(&format!("h{n}")), None).await.unwrap());
        }
        let held: usize = limit.shards.iter().map(|shard| shard.lock().len()).sum();
        assert!(held <= SWEEP_AT * SHARDS, "{held}");
    }
}
