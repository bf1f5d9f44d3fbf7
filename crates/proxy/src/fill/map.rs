//! Which fills are running, by key.

use std::sync::Arc;

use bytes::Bytes;
use foxy_base::KeyHash;
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::{Fill, FillWriter, Follower};

const SHARDS: usize = 64;

/// The running fills over all workers: those that may be joined, by key, and all of them by
/// primary key, so that a purge finds every one.
#[derive(Debug)]
pub(crate) struct FillMap<H> {
    shards: Vec<Mutex<Shard<H>>>,
}

#[derive(Debug)]
pub(super) struct Shard<H> {
    open: HashMap<KeyHash, Arc<Fill<H>>>,
    pub(super) by_base: HashMap<KeyHash, Vec<Arc<Fill<H>>>>,
}

/// What a request got from the map.
#[derive(Debug)]
pub(crate) enum Joined<H> {
    /// A running fill.
    Follows(Follower<H>),
    /// A new one: the caller starts the task that writes it, which calls [`FillMap::leave`].
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
        }
    }

    pub(super) fn shard(&self, hash: KeyHash) -> &Mutex<Shard<H>> {
        &self.shards[(hash.high() % SHARDS as u64) as usize]
    }

    /// Follows the running fill of `key`, or starts one. `base` is the hash of the primary key.
    /// A fill that cannot be joined any more stays where it is, and the new one is its caller's.
    pub(crate) fn join(&self, hash: KeyHash, key: &[u8], base: KeyHash) -> Joined<H> {
        self.join_at(hash, hash, key, base)
    }

    /// As [`join`](Self::join), for requests that ask for something else than others under the
    /// same key: only those of one `slot` meet.
    pub(crate) fn join_at(
        &self,
        slot: KeyHash,
        hash: KeyHash,
        key: &[u8],
        base: KeyHash,
    ) -> Joined<H> {
        let mut shard = self.shard(slot).lock();
        let running = shard.open.get(&slot).cloned();
        if let Some(follower) = running
            .as_ref()
            .filter(|fill| fill.key == key)
            .and_then(Fill::join)
        {
            return Joined::Follows(follower);
        }
        let key = Bytes::copy_from_slice(key);
        let (writer, follower) = Fill::start_at(slot, hash, key, base);
        if running.is_none() {
            shard.open.insert(slot, Arc::clone(writer.fill()));
        }
        drop(shard);
        self.register(writer.fill());
        Joined::Starts(writer, follower)
    }

    /// Starts a fill that nobody can join.
    pub(crate) fn alone(
        &self,
        hash: KeyHash,
        key: &[u8],
        base: KeyHash,
    ) -> (FillWriter<H>, Follower<H>) {
        let (writer, follower) = Fill::start(hash, Bytes::copy_from_slice(key), base);
        self.register(writer.fill());
        (writer, follower)
    }

    fn register(&self, fill: &Arc<Fill<H>>) {
        let mut shard = self.shard(fill.base).lock();
        let fills = shard.by_base.entry(fill.base).or_default();
        fills.push(Arc::clone(fill));
    }

    /// Whether a fill that can be joined is running under this key.
    pub(crate) fn contains(&self, hash: KeyHash) -> bool {
        self.shard(hash).lock().open.contains_key(&hash)
    }

    /// Takes `fill` out, so that later requests do not join it.
    pub(crate) fn leave(&self, fill: &Arc<Fill<H>>) {
        self.close(fill);
        let mut shard = self.shard(fill.base).lock();
        if let Some(fills) = shard.by_base.get_mut(&fill.base) {
            fills.retain(|other| !Arc::ptr_eq(other, fill));
            if fills.is_empty() {
                shard.by_base.remove(&fill.base);
            }
        }
    }

    fn close(&self, fill: &Arc<Fill<H>>) {
        let mut shard = self.shard(fill.slot).lock();
        let same = |other: &Arc<Fill<H>>| Arc::ptr_eq(other, fill);
        if shard.open.get(&fill.slot).is_some_and(same) {
            shard.open.remove(&fill.slot);
        }
    }

    /// What is being fetched under the primary key `base`, all variants included, is not valid
    /// any more: later requests do not join it, and its result is not stored.
    pub(crate) fn invalidate(&self, base: KeyHash) {
        for fill in self.of(base) {
            self.close(&fill);
            fill.forbid_storing();
        }
    }

    /// Later requests do not join the running fills that `which` accepts.
    pub(crate) fn close_where(&self, which: impl Fn(&Fill<H>) -> bool) {
        for shard in &self.shards {
            shard.lock().open.retain(|_, fill| !which(fill));
        }
    }

    /// `fill` has just received its head. Others for the same key that have theirs already hold
    /// an earlier answer: they must not replace this one when they end later, save those whose
    /// heads `spare` accepts.
    pub(crate) fn overtake(&self, fill: &Arc<Fill<H>>, spare: impl Fn(&H) -> bool) {
        for other in self.of(fill.base) {
            if other.hash == fill.hash
                && !Arc::ptr_eq(&other, fill)
                && other.published().is_some_and(|head| !spare(&head))
            {
                other.forbid_storing();
            }
        }
    }

    /// Fills, and followers of them, at this moment.
    pub(crate) fn running(&self) -> (usize, usize) {
        let mut sum = (0, 0);
        for shard in &self.shards {
            let fills: Vec<_> = shard.lock().by_base.values().flatten().cloned().collect();
            sum.0 += fills.len();
            sum.1 += fills.iter().map(|fill| fill.followers()).sum::<usize>();
        }
        sum
    }

    pub(super) fn of(&self, base: KeyHash) -> Vec<Arc<Fill<H>>> {
        let shard = self.shard(base).lock();
        shard.by_base.get(&base).cloned().unwrap_or_default()
    }
}
