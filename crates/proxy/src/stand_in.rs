//! Another cache in place of the store: for benches of published systems under this front end.
//!
//! No setting leads here. The engine then has no disk and keeps every object in memory, as the
//! bytes to send; what is a hit, and when its bytes would be there, is the other cache's to say.

use std::fmt;
use std::sync::Arc;

use foxy_base::KeyHash;
use foxy_store::Object;
use tokio::sync::oneshot;

use crate::local::Local;
use crate::serve::find::Tier;

/// What another cache says of an object that is asked for.
#[derive(Debug)]
pub enum Asked {
    /// It has it in memory.
    Memory,
    /// It reads it from its disk, and says when that is done; false, or nothing, if it failed.
    Disk(oneshot::Receiver<bool>),
    /// It does not have it: the object is fetched again.
    Miss,
}

/// A cache that decides about hits and has a disk, but no contents.
pub trait StandIn: fmt::Debug + Send + Sync {
    /// An object of `bytes` bytes is asked for, which came from site `group`.
    fn ask(&self, key: KeyHash, group: u64, bytes: u64) -> Asked;

    /// An object was fetched and is to be kept.
    fn keep(&self, key: KeyHash, group: u64, bytes: u64);
}

/// What the engine has in memory, if the stand-in (when there is one) has it too.
pub(crate) async fn confirmed(local: &Local, object: Arc<Object>) -> Option<(Arc<Object>, Tier)> {
    let Some(stand_in) = &local.proxy.config.stand_in else {
        return Some((object, Tier::Memory));
    };
    let bytes = object.body().len() as u64;
    match stand_in.ask(object.hash(), object.group(), bytes) {
        Asked::Memory => Some((object, Tier::Memory)),
        Asked::Disk(done) => done.await.unwrap_or(false).then_some((object, Tier::Disk)),
        Asked::Miss => None,
    }
}
