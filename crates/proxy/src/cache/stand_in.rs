//! Another cache that replaces the store behind Foxy's front end. The measuring program `foxy-lab` uses it to
//! measure published designs of caches.
//!
//! This module is compiled only with the feature `stand-in`, which the product does not have. The engine then
//! has no disk. It keeps every object in memory, because the other cache stores no bytes. The other cache
//! decides which requests are hits, and when their bytes are ready.

use std::fmt;
use std::sync::Arc;

use foxy_base::KeyHash;
use foxy_store::Object;
use tokio::sync::oneshot;

use crate::Proxy;
use crate::cache::serve::find::Tier;
use crate::state::local::Local;

/// The reply of the other cache to a request for an object.
#[derive(Debug)]
pub enum Asked {
    /// The cache has the object in memory.
    Memory,
    /// The cache reads the object from its disk. The receiver gets true when the read is complete. If the
    /// read failed, the receiver gets false, or the sender is dropped.
    Disk(oneshot::Receiver<bool>),
    /// The cache does not have the object. The object is fetched again.
    Miss,
}

/// A cache that decides about hits and has a disk, but stores no contents.
pub trait StandIn: fmt::Debug + Send + Sync {
    /// Requests an object of `bytes` bytes. `group` identifies the origin from which the object came.
    fn ask(&self, key: KeyHash, group: u64, bytes: u64) -> Asked;

    /// Tells the cache to keep an object that was fetched.
    fn keep(&self, key: KeyHash, group: u64, bytes: u64);
}

impl Proxy {
    /// Replaces the store by another cache. Only the first call has an effect.
    pub fn set_stand_in(&self, stand_in: Arc<dyn StandIn>) {
        // If a stand-in was already set, the new one is dropped.
        let _ = self.stand_in.set(stand_in);
    }
}

/// Returns `object`, which the engine has in memory. If there is a stand-in that does not have the object or
/// fails to read it, returns `None`.
pub(crate) async fn confirmed(local: &Local, object: Arc<Object>) -> Option<(Arc<Object>, Tier)> {
    let Some(stand_in) = local.proxy.stand_in.get() else {
        return Some((object, Tier::Memory));
    };
    let bytes = object.body().len() as u64;
    match stand_in.ask(object.hash(), object.group(), bytes) {
        Asked::Memory => Some((object, Tier::Memory)),
        Asked::Disk(done) => done.await.unwrap_or(false).then_some((object, Tier::Disk)),
        Asked::Miss => None,
    }
}
