//! A key is replaced or removed: what is taken away, and the trace that keeps it away.

use foxy_base::{KeyHash, rule};
use foxy_index::{Candidates, Entry};
use foxy_policy::CachePolicy;

use crate::Engine;
use crate::removals::Removal;
use crate::shard::{Shard, Stage};
use crate::shared::StoreShared;
use crate::spot::Spot;
use crate::stats::add;
use crate::ticket::SyncTicket;

impl Engine {
    /// Removes the live entry of a key: from RAM, from what waits and from disk. When it returns
    /// a kill does not bring it back, and soon a power cut does not either. Call it at header time
    /// for a response that replaces, before and regardless of storing that. True if there was one.
    /// Never blocks on a disk.
    pub fn supersede(&self, hash: KeyHash, _key: &[u8]) -> bool {
        self.supersede_locked(&mut self.tables.shard(hash).write(), hash)
    }

    /// As [`Engine::supersede`], for callers that hold the shard's lock.
    pub(crate) fn supersede_locked(&self, shard: &mut Shard, hash: KeyHash) -> bool {
        let found = self.tables.index().lookup(hash);
        for store in self.stores().iter() {
            self.log_removal(store, shard, hash, &found, false);
        }
        rule!(
            "away: what is replaced is noted for a store that is away",
            self.fleet.away().note(hash),
            ()
        );
        self.take_away(shard, hash, &found)
    }

    /// Logs the records of a key that this store may hold and that must not come back. Called
    /// before they are taken away.
    fn log_removal(
        &self,
        store: &StoreShared,
        shard: &Shard,
        hash: KeyHash,
        found: &Candidates,
        key_too: bool,
    ) {
        let mut removals = Vec::new();
        // Its cluster may be on the disk already; a waiting one was never written.
        if let Some(pending) = shard.pending.get(&hash)
            && let Stage::Assembled(place) = pending.stage
            && pending.store == store.id
        {
            rule!(
                "supersede: a version in a cluster under way becomes void",
                removals.push(Removal::Place(place)),
                ()
            );
        }
        let here = found.iter().filter(|e| {
            rule!(
                "supersede: a version on disk becomes void",
                store.space.holds(e.address),
                false
            )
        });
        removals.extend(
            here.filter_map(|e| store.space.position(Spot::of(&e)))
                .map(Removal::Place),
        );
        let mut unloaded = false;
        if store.loading.is_on()
            && let Some(gone) = store.loading.gone_mut().as_mut()
        {
            rule!(
                "supersede: a key removed while loading is not loaded any more",
                gone.add(hash),
                ()
            );
            unloaded = true;
        }
        // A record that is not loaded yet may hold the key.
        if rule!(
            "purge: a key leaves a tombstone whether or not it is known",
            key_too,
            false
        ) || rule!(
            "supersede: a key that may not be loaded yet leaves a tombstone",
            unloaded,
            false
        ) {
            removals.push(Removal::Key(hash));
        }
        if !removals.is_empty() {
            store.remove_all(&removals);
        }
    }

    /// Takes away what a key holds in memory and its entries, `found` of which are logged.
    fn take_away(&self, shard: &mut Shard, hash: KeyHash, found: &Candidates) -> bool {
        let mut existed = shard.ram.remove(&hash).is_some();
        if let Some(pending) = shard.pending.remove(&hash) {
            existed = true;
            let bytes = pending.object.memory_bytes();
            self.budget
                .release_for(&self.stores(), pending.store, bytes);
        }
        for entry in self.tables.index().remove(hash) {
            existed = true;
            // A twin may have come meanwhile, under another shard's lock.
            if found.iter().all(|f| Spot::of(&f) != Spot::of(&entry)) {
                self.void(entry);
            }
        }
        if existed {
            self.gate.used(hash);
            add(&self.counters.superseded, 1);
        }
        existed
    }

    /// Keeps the record that an index entry points to from coming back after a restart.
    pub(crate) fn void(&self, entry: Entry) {
        if let Some(store) = self.stores().at(entry.address)
            && let Some(place) = store.space.position(Spot::of(&entry))
        {
            store.remove(Removal::Place(place));
        }
    }

    /// Removes a key like [`Engine::supersede`], whether or not it is known, and promises that it
    /// stays removed across power cuts once the ticket is done. Variants cannot be reached any
    /// more, since their keys contain the primary's nonce.
    pub fn purge(&self, hash: KeyHash, _key: &[u8]) -> SyncTicket {
        let mut shard = self.tables.shard(hash).write();
        let found = self.tables.index().lookup(hash);
        for store in self.stores().iter() {
            self.log_removal(store, &shard, hash, &found, true);
        }
        rule!(
            "away: the purge of a URL is noted for a store that is away",
            self.fleet.away().note(hash),
            ()
        );
        self.take_away(&mut shard, hash, &found);
        drop(shard);
        add(&self.counters.purged, 1);
        self.fleet.removal_ticket()
    }
}
