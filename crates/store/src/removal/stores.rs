//! Adding a store to an engine, and taking a store out. The store misses no removal while this happens.

use std::sync::Arc;

use foxy_base::rule;

use super::Catalogue;
use crate::Durable;
use crate::fleet::Standing;
use crate::shared::StoreShared;

impl Catalogue {
    /// Adds a store to the list; from then on the store misses no removal. If `grows` is set, the store
    /// replaces that entry of the list: it is the same store with more space.
    pub(crate) fn take_in(
        &self,
        store: &Arc<StoreShared>,
        standing: Standing,
        grows: Option<&Arc<StoreShared>>,
    ) {
        self.fleet.registry().add(store, grows.map(|old| old.id));
        if let Standing::Back(_) | Standing::Grows = standing {
            // Threads that still use the former list note their removals in the table of detached stores. So
            // this thread waits for them before it takes the removals from that table.
            rule!(
                "return: whoever works with the former list of stores is waited for",
                self.tables.shards().barrier(),
                ()
            );
            let missed = self.fleet.detached().take(store.space.uuid());
            if let (Some(missed), Some(removed_keys)) =
                (missed, store.loading.removed_keys_mut().as_mut())
            {
                rule!(
                    "return: what was removed meanwhile is left out",
                    removed_keys.absorb(missed.removed_keys),
                    drop(missed)
                );
                removed_keys.untold = standing != Standing::Grows;
            }
        }
        if let Some(old) = grows {
            old.inbox.lock().hand_over(&mut store.inbox.lock());
            let mut journal = store.journal.lock();
            journal.want_snapshot();
            old.journal
                .lock()
                .close(Durable::Failed, Some(&mut journal));
            drop(journal);
            self.forget(old);
            old.member.depart();
            self.fleet.registry().count_departure();
        }
    }

    /// Takes a store out: from the list and the index, together with the objects that wait for it.
    /// Callers that wait for durability get `outcome`.
    pub(crate) fn detach(&self, store: &StoreShared, outcome: Durable) {
        self.fleet.registry().remove(store.id);
        self.forget(store);
        store.inbox.lock().close(outcome);
        store.journal.lock().close(outcome, None);
        store.member.depart();
        self.fleet.registry().count_departure();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::rig::{bare_store, engine_core};

    #[test]
    fn a_store_that_left_is_in_no_list_and_gets_no_requests() {
        let core = engine_core(64 << 20);
        let catalogue = Catalogue::new(&core);
        let store = bare_store(0);
        catalogue.take_in(&store, Standing::Known, None);
        assert_eq!(core.fleet.store_ids(), [store.id]);
        let waiting = core.fleet.sync();
        catalogue.detach(&store, Durable::Yes);
        assert!(core.fleet.store_ids().is_empty());
        assert_eq!(waiting.outcome(), Some(Durable::Yes));
        assert_eq!(core.fleet.registry().departures(), 1);
    }

    #[test]
    fn a_store_that_grows_takes_the_place_of_its_former_self() {
        let core = engine_core(64 << 20);
        let catalogue = Catalogue::new(&core);
        let (old, new) = (bare_store(0), bare_store(1));
        catalogue.take_in(&old, Standing::Known, None);
        let waiting = core.fleet.removal_ticket();
        catalogue.take_in(&new, Standing::Grows, Some(&old));
        assert_eq!(core.fleet.store_ids(), [new.id]);
        assert_eq!(waiting.outcome(), None, "the heir tells those who wait");
        new.inbox.lock().close(Durable::Yes);
        assert_eq!(waiting.outcome(), Some(Durable::Yes));
    }
}
