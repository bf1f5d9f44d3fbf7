//! Limits the fetches that wait for an answer of one origin at the same time. Others queue, up to a
//! bound; beyond it a request is refused at once, before it costs memory.
//!
//! A permit covers the time up to the head of the answer: the origin works during that time.
//! Downloads hold none.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::UpstreamError;
use super::connect::Destination;

const SHARDS: usize = 16;
/// Origins per shard before idle ones are dropped.
const SWEEP_AT: usize = 256;

/// The limits of all origins.
#[derive(Debug)]
pub(crate) struct OriginLimit {
    shards: Vec<Mutex<HashMap<Destination, Arc<Origin>>>>,
    at_once: usize,
    queue: usize,
}

#[derive(Debug)]
struct Origin {
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// Permit to ask an origin; dropping it returns it.
#[derive(Debug)]
pub(crate) struct Permit {
    _permit: OwnedSemaphorePermit,
    /// Keeps the origin's entry while the permit is held.
    _origin: Arc<Origin>,
}

impl OriginLimit {
    /// At most `at_once` fetches per origin, and `queue` requests that wait for one.
    pub(crate) fn new(at_once: usize, queue: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            at_once: at_once.clamp(1, Semaphore::MAX_PERMITS),
            queue,
        }
    }

    /// Waits for a permit. Cancel safe: a dropped wait leaves the queue.
    ///
    /// # Errors
    /// [`UpstreamError::Busy`] at once if the queue is full.
    pub(crate) async fn permit(&self, to: &Destination) -> Result<Permit, UpstreamError> {
        let origin = self.origin(to);
        let permit = match Arc::clone(&origin.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let _place = Place::take(&origin, self.queue)?;
                let permit = Arc::clone(&origin.permits).acquire_owned().await;
                permit.map_err(|_| UpstreamError::Busy)?
            }
        };
        Ok(Permit {
            _permit: permit,
            _origin: origin,
        })
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
            permits: Arc::new(Semaphore::new(self.at_once)),
            waiting: AtomicUsize::new(0),
        });
        shard.insert(to.clone(), Arc::clone(&origin));
        origin
    }
}

/// A place in the queue of an origin.
struct Place<'a>(&'a Origin);

impl<'a> Place<'a> {
    fn take(origin: &'a Origin, most: usize) -> Result<Self, UpstreamError> {
        let place = Self(origin);
        if origin.waiting.fetch_add(1, Ordering::AcqRel) >= most {
            return Err(UpstreamError::Busy);
        }
        Ok(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(host: &str) -> Destination {
        Destination {
            host: host.into(),
            port: 80,
            exempt: false,
            tls: None,
        }
    }

    #[tokio::test]
    async fn permits_queue_and_refuse_per_origin() {
        let limit = OriginLimit::new(2, 1);
        let first = limit.permit(&to("a")).await.unwrap();
        let _second = limit.permit(&to("a")).await.unwrap();
        let _other = limit.permit(&to("b")).await.unwrap();
        let origin = to("a");
        let mut waits = std::pin::pin!(limit.permit(&origin));
        assert!(
            tokio::time::timeout(std::time::Duration::ZERO, waits.as_mut())
                .await
                .is_err(),
            "both permits are taken"
        );
        assert_eq!(
            limit.permit(&to("a")).await.err(),
            Some(UpstreamError::Busy)
        );
        drop(first);
        assert!(waits.await.is_ok());
        assert!(
            limit.permit(&to("a")).await.is_ok(),
            "the queue is free again"
        );
    }

    #[tokio::test]
    async fn origins_without_fetches_are_dropped() {
        let limit = OriginLimit::new(1, 0);
        for n in 0..SWEEP_AT * SHARDS * 2 {
            drop(limit.permit(&to(&format!("h{n}"))).await.unwrap());
        }
        let held: usize = limit.shards.iter().map(|shard| shard.lock().len()).sum();
        assert!(held <= SWEEP_AT * SHARDS, "{held}");
    }
}
