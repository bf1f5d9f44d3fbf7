//! The table of the running fills (fetches that several requests can share).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use foxy_base::{KeyHash, hash64, rule};
use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard};

use super::order::Family;
use super::{Fill, FillWriter, Follower};

const SHARDS: usize = 64;

/// The running fills of all workers. Fills that may be joined are listed by slot, which is usually the hash
/// of the key. All fills are also listed by primary key, so that a purge finds every fill.
#[derive(Debug)]
pub(crate) struct FillMap<H> {
    shards: Vec<Mutex<Shard<H>>>,
    /// A secret that is mixed into the choice of a shard. Without the secret, an attacker could choose many
    /// keys of one shard, and all requests for these keys would wait for the same lock. Each hash table in
    /// the shards has a separate secret.
    secret: u64,
    /// The next number to draw. A fetch draws a number when it asks the origin, and a second number when its
    /// head arrives (see `order`).
    pub(super) numbers: AtomicU64,
    /// True if these fills were started under settings for keys, sites, access or sharing that a reload has
    /// changed.
    retired: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Shard<H> {
    pub(super) open: HashMap<KeyHash, Arc<Fill<H>>>,
    pub(super) by_base: HashMap<KeyHash, Family<H>>,
}

/// The fill that a request follows: a running fill or a new fill.
#[derive(Debug)]
pub(crate) enum Joined<H> {
    /// A running fill.
    Follows(Follower<H>),
    /// A new fill. The caller starts the task that writes it, and that task calls [`FillMap::leave`].
    Starts(FillWriter<H>, Follower<H>),
}

impl<H> FillMap<H> {
    pub(crate) fn new() -> Self {
        let shard = || Shard {
            open: HashMap::new(),
            by_base: HashMap::new(),
        };
        Self {
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
            secret: RandomState::new().build_hasher().finish(),
            numbers: AtomicU64::new(1),
            retired: AtomicBool::new(false),
        }
    }

    pub(super) fn shard(&self, hash: KeyHash) -> &Mutex<Shard<H>> {
        &self.shards[(hash64(self.secret, &hash.to_bytes()) % SHARDS as u64) as usize]
    }

    /// Follows the running fill of `key`. If there is no such fill, or it cannot be joined, starts a new
    /// fill. `base` is the hash of the primary key. Later requests join the new fill if the slot of the key
    /// had no running fill, or if the running fill has failed or can no longer be joined. Otherwise only the
    /// caller follows the new fill.
    pub(crate) fn join(&self, hash: KeyHash, key: &[u8], base: KeyHash) -> Joined<H> {
        let shard = self.shard(hash).lock();
        match follow(&shard, hash, key) {
            Some(follower) => Joined::Follows(follower),
            None => self.begin(shard, hash, (hash, key), base),
        }
    }

    /// Does the same as [`join`](Self::join), but only requests with the same `slot` share a fill. Requests
    /// under one key have different slots if they need different answers. Returns `None` if no fill runs in
    /// the slot, and `is_stored` finds an object that a fill has stored since the request's lookup. A fill
    /// stores its object before it leaves the map. So a request always finds the fill or the object.
    pub(crate) fn join_unless_stored(
        &self,
        slot: KeyHash,
        (hash, key): (KeyHash, &[u8]),
        base: KeyHash,
        is_stored: impl FnOnce() -> bool,
    ) -> Option<Joined<H>> {
        let shard = self.shard(slot).lock();
        if let Some(follower) = follow(&shard, slot, key) {
            return Some(Joined::Follows(follower));
        }
        if !shard.open.contains_key(&slot) && is_stored() {
            return None;
        }
        Some(self.begin(shard, slot, (hash, key), base))
    }

    /// Starts a fill. Later requests of the slot join this fill if the slot has no other running fill, or if
    /// the other fill has failed or can no longer be joined.
    fn begin(
        &self,
        mut shard: MutexGuard<'_, Shard<H>>,
        slot: KeyHash,
        (hash, key): (KeyHash, &[u8]),
        base: KeyHash,
    ) -> Joined<H> {
        let running = shard.open.get(&slot);
        let sequel = rule!(
            "fill: requests that come too late for a fetch share the next one",
            running.is_some_and(|fill| fill.key == key && fill.cannot_be_joined()),
            false
        );
        // If the running fill has failed, all requests that waited for it share the new fill.
        let open = sequel || running.is_none_or(|fill| fill.has_failed());
        let fill = Fill {
            sequel,
            ..Fill::new(slot, hash, Bytes::copy_from_slice(key), base)
        };
        let (writer, follower) = fill.started();
        if open {
            shard.open.insert(slot, Arc::clone(writer.fill()));
        }
        drop(shard);
        self.register(writer.fill());
        Joined::Starts(writer, follower)
    }

    /// Starts a fill that no other request can join.
    pub(crate) fn uncollapsed(
        &self,
        hash: KeyHash,
        key: &[u8],
        base: KeyHash,
    ) -> (FillWriter<H>, Follower<H>) {
        let (writer, follower) = Fill::start(hash, Bytes::copy_from_slice(key), base);
        self.register(writer.fill());
        (writer, follower)
    }

    pub(super) fn register(&self, fill: &Arc<Fill<H>>) {
        let mut shard = self.shard(fill.base).lock();
        let family = shard.by_base.entry(fill.base).or_default();
        family.fills.push(Arc::clone(fill));
        self.judge(fill);
    }

    /// Forbids storing the result of a new fill, if the map is retired. Called while the shard with the fill
    /// is locked. So either this function sees that the map is retired, or [`retire`](Self::retire) finds the
    /// fill.
    pub(super) fn judge(&self, fill: &Fill<H>) {
        if rule!(
            "reload: what old requests still ask for is not stored",
            self.retired.load(Ordering::Acquire),
            false
        ) {
            fill.forbid_storing();
        }
    }

    /// Called when a reload has changed the settings for keys, sites, access or sharing. From now on, the
    /// answers of the fills in this map are not stored. This includes fills that requests under the old
    /// settings start later. Requests under the new settings use another map.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        for shard in &self.shards {
            let shard = shard.lock();
            let families = shard.by_base.values();
            families.flat_map(|family| &family.fills).for_each(|fill| {
                rule!(
                    "reload: what runs under other rules is not stored",
                    fill.forbid_storing(),
                    ()
                );
            });
        }
    }

    /// Returns the fill that requests of this slot join now.
    pub(super) fn open(&self, slot: KeyHash) -> Option<Arc<Fill<H>>> {
        self.shard(slot).lock().open.get(&slot).cloned()
    }

    /// Makes later requests of the slot join `fill` instead of the fill that earlier requests joined. Does
    /// nothing if `fill` is closed.
    pub(crate) fn offer(&self, fill: &Arc<Fill<H>>) {
        let mut shard = self.shard(fill.slot).lock();
        if rule!(
            "fill: one that was closed is not offered again",
            !fill.closed.load(Ordering::Acquire),
            true
        ) {
            shard.open.insert(fill.slot, Arc::clone(fill));
        }
    }

    /// Returns true if a fill that can be joined is running under this key.
    pub(crate) fn contains(&self, hash: KeyHash) -> bool {
        self.shard(hash).lock().open.contains_key(&hash)
    }

    /// Removes `fill` from the map, so that later requests do not join it.
    pub(crate) fn leave(&self, fill: &Arc<Fill<H>>) {
        self.close(fill);
        let mut shard = self.shard(fill.base).lock();
        if let Some(family) = shard.by_base.get_mut(&fill.base) {
            family.fills.retain(|other| !Arc::ptr_eq(other, fill));
            if family.fills.is_empty() {
                shard.by_base.remove(&fill.base);
            }
        }
    }

    pub(super) fn close(&self, fill: &Arc<Fill<H>>) {
        // The flag is set before the lock is taken. So a concurrent call of `offer` either sees the flag, or
        // has its effect undone below.
        fill.closed.store(true, Ordering::Release);
        let mut shard = self.shard(fill.slot).lock();
        let same = |other: &Arc<Fill<H>>| Arc::ptr_eq(other, fill);
        if shard.open.get(&fill.slot).is_some_and(same) {
            shard.open.remove(&fill.slot);
        }
    }

    /// Invalidates the fills under the primary key `base`, all variants included. Later requests do not join
    /// these fills, and their results are not stored.
    pub(crate) fn invalidate(&self, base: KeyHash) {
        for fill in self.of(base) {
            rule!(
                "purge: nobody joins a fetch from before it",
                self.close(&fill),
                ()
            );
            rule!(
                "purge: a fetch from before it is not stored",
                fill.forbid_storing(),
                ()
            );
        }
    }

    /// Closes the running fills for which `which` returns true: later requests do not join them.
    pub(crate) fn close_where(&self, which: impl Fn(&Fill<H>) -> bool) {
        for shard in &self.shards {
            let fills: Vec<_> = {
                let shard = shard.lock();
                let all = shard.by_base.values().flat_map(|family| &family.fills);
                all.filter(|fill| which(fill)).cloned().collect()
            };
            for fill in fills {
                self.close(&fill);
            }
        }
    }

    /// Returns the number of fills, and the number of their followers, at this moment.
    pub(crate) fn running(&self) -> (usize, usize) {
        let mut sum = (0, 0);
        for shard in &self.shards {
            let fills: Vec<_> = {
                let shard = shard.lock();
                let families = shard.by_base.values();
                families.flat_map(|family| family.fills.clone()).collect()
            };
            sum.0 += fills.len();
            sum.1 += fills.iter().map(|fill| fill.followers()).sum::<usize>();
        }
        sum
    }

    pub(super) fn of(&self, base: KeyHash) -> Vec<Arc<Fill<H>>> {
        let shard = self.shard(base).lock();
        let family = shard.by_base.get(&base);
        family
            .map(|family| family.fills.clone())
            .unwrap_or_default()
    }
}

/// Returns a follower of the running fill for this key, if that fill can still be joined.
fn follow<H>(shard: &Shard<H>, slot: KeyHash, key: &[u8]) -> Option<Follower<H>> {
    let running = shard.open.get(&slot).filter(|fill| {
        rule!(
            "fill: the key is compared, not its hash alone",
            fill.key == key,
            true
        )
    });
    running.and_then(Fill::join)
}
