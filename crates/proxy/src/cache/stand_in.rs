//! Another cache in place of the store: the laboratory measures published systems under this front end.
//!
//! Compiled with the feature `stand-in` only, which the product does not have. The engine then has
//! no disk and keeps every object in memory, as the bytes to send. The other cache decides what is
//! a hit, and when its bytes are there.

use std::fmt;
use std::sync::Arc;

use foxy_base::KeyHash;
use foxy_store::Object;
use tokio::sync::oneshot;

use crate::Proxy;
use crate::cache::serve::find::Tier;
use crate::state::local::Local;

/// The reply of another cache about an object that is asked for.
#[derive(Debug)]
pub enum Asked {
    /// The cache has the object in memory.
    Memory,
    /// The cache reads the object from its disk. The receiver is told when that is done; false, or
    /// nothing, if it failed.
    Disk(oneshot::Receiver<bool>),
    /// The cache does not have the object, which is fetched again.
    Miss,
}

/// A cache that decides about hits and has a disk, but no contents.
pub trait StandIn: fmt::Debug + Send + Sync {
    /// An object of `bytes` bytes is asked for, which came from site `group`.
    fn ask(&self, key: KeyHash, group: u64, bytes: u64) -> Asked;

    /// An object was fetched and is to be kept.
    fn keep(&self, key: KeyHash, group: u64, bytes: u64);
}

impl Proxy {
    /// Puts another cache in place of the store. Only the first call has an effect.
    pub fn set_stand_in(&self, stand_in: Arc<dyn StandIn>) {
        // A second one is dropped, as documented.
        let _ = self.stand_in.set(stand_in);
    }
}

/// Returns an object that the engine has in memory, if the stand-in (when there is one) has it too.
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
