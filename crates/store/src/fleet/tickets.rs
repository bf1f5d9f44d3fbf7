//! Tickets for callers that wait until the pending writes of the stores are durable.

use std::sync::Arc;

use foxy_base::rule;

use super::Fleet;
use crate::interface::SyncTicket;
use crate::shared::{StoreShared, SyncRequest};

/// Returns a ticket that is done when these stores have written and flushed all waiting removals and, if
/// `objects` is true, all waiting objects.
pub(crate) fn ticket_of(stores: &[Arc<StoreShared>], objects: bool) -> SyncTicket {
    let (ticket, parts) = SyncTicket::new(stores.len() as u32);
    for (store, part) in stores.iter().zip(parts) {
        store.inbox.lock().request(SyncRequest { objects, part });
        store.bell.ring();
    }
    ticket
}

/// Returns a ticket that is done when a store has durably recorded everything about removed objects: the
/// waiting removals, and the purges of many objects.
pub(crate) fn ticket_of_removed(store: &Arc<StoreShared>) -> SyncTicket {
    ticket_with_purges(std::slice::from_ref(store), false)
}

/// Returns a ticket like [`ticket_of`] that also waits until the stores' purge journals are durable.
fn ticket_with_purges(stores: &[Arc<StoreShared>], objects: bool) -> SyncTicket {
    let (ticket, parts) = SyncTicket::new(2 * stores.len() as u32);
    let mut parts = parts.into_iter();
    for (store, part) in stores.iter().zip(parts.by_ref()) {
        store.inbox.lock().request(SyncRequest { objects, part });
    }
    for (store, part) in stores.iter().zip(parts) {
        rule!(
            "ticket: one for everything waits for the purges of many",
            store.journal.lock().ask(part),
            part.finish(crate::Durable::Yes)
        );
        store.bell.ring();
    }
    ticket
}

impl Fleet {
    /// Returns a ticket that is done when all earlier puts and removals are durable, including purges of
    /// many objects.
    pub(crate) fn sync(&self) -> SyncTicket {
        ticket_with_purges(&self.stores(), true)
    }

    /// Returns a ticket that is done when all earlier removals are durable. The ticket has already failed
    /// if a missing store may bring removed objects back ([`Self::is_unnoted`]).
    pub(crate) fn removal_ticket(&self) -> SyncTicket {
        if self.is_unnoted() {
            return SyncTicket::failed();
        }
        ticket_of(&self.stores(), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Durable;
    use crate::tests::rig::bare_store;

    #[test]
    fn a_ticket_waits_for_every_store() {
        let fleet = Fleet::default();
        assert_eq!(
            fleet.sync().outcome(),
            Some(Durable::Yes),
            "nothing to wait for"
        );
        let stores = [bare_store(0), bare_store(1)];
        stores
            .iter()
            .for_each(|store| fleet.registry().add(store, None));
        let (all, removal) = (fleet.sync(), fleet.removal_ticket());
        for store in &stores {
            assert_eq!((all.outcome(), removal.outcome()), (None, None));
            store.inbox.lock().close(Durable::Yes);
        }
        assert_eq!(
            (all.outcome(), removal.outcome()),
            (None, Some(Durable::Yes))
        );
        for store in &stores {
            store.journal.lock().close(Durable::Yes, None);
        }
        assert_eq!(all.outcome(), Some(Durable::Yes));
    }

    #[test]
    fn no_removal_is_durable_where_a_missing_store_misses_it() {
        let fleet = Fleet::default();
        fleet.lose_purges();
        assert_eq!(fleet.removal_ticket().outcome(), Some(Durable::Failed));
    }
}
