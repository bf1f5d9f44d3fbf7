//! The duties of stores, as operators set them: draining a store, using it again, and retrying quarantined
//! segments.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Weak};
use std::task::Poll;

use super::Fleet;
use crate::interface::Duty;
use crate::shared::StoreShared;
use crate::{Health, StoreId};

/// The reason why a store cannot take a duty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DutyError {
    /// No open store has the given number.
    #[error("there is no such store")]
    Unknown,
    /// No other store could take the objects of the store.
    #[error("no other store takes objects, so nothing could move; add one first")]
    Alone,
    /// The store is being taken out.
    #[error("the store is being taken out already")]
    Leaving,
}

impl Fleet {
    /// Begins draining: no new objects go to this store any more, and the next drain
    /// ([`crate::Engine::begin_drain`]) moves its records.
    ///
    /// # Errors
    /// See [`DutyError`].
    pub fn drain_store(&self, id: StoreId) -> Result<(), DutyError> {
        let stores = self.stores();
        let store = stores.by_id(id).ok_or(DutyError::Unknown)?;
        if store.member.duty() == Duty::Leaving {
            return Err(DutyError::Leaving);
        }
        let takes = |s: &&Arc<StoreShared>| {
            s.id != id && s.member.duty() == Duty::Serving && s.health() == Health::Good
        };
        if !stores.iter().any(|s| takes(&s)) {
            return Err(DutyError::Alone);
        }
        store.member.set_left(store.space.geometry().segments);
        store.member.set_duty(Duty::Draining);
        Ok(())
    }

    /// Ends draining: a store that is being drained, or that has been drained, takes new objects again.
    ///
    /// # Errors
    /// See [`DutyError`].
    pub fn resume_store(&self, id: StoreId) -> Result<(), DutyError> {
        let stores = self.stores();
        let store = stores.by_id(id).ok_or(DutyError::Unknown)?;
        if store.member.duty() == Duty::Leaving {
            return Err(DutyError::Leaving);
        }
        store.member.set_duty(Duty::Serving);
        Ok(())
    }

    /// Returns a future that ends when the store is not among the open stores any more. Tasks that hold
    /// the store's disk should then release the disk, so that it is closed.
    pub fn departure(&self, id: StoreId) -> impl Future<Output = ()> + use<> {
        let store = self.store(id).map(|store| Arc::downgrade(&store));
        poll_fn(move |context| {
            let store = store.as_ref().and_then(Weak::upgrade);
            match store.is_none_or(|store| store.member.poll_departure(context.waker())) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
    }

    /// Asks the store's writer to retry the segments in quarantine. Segments that can be written and
    /// read from end to end are used again.
    ///
    /// # Errors
    /// [`DutyError::Unknown`] if no open store has this number.
    pub fn retry_quarantine(&self, id: StoreId) -> Result<(), DutyError> {
        let stores = self.stores();
        let store = stores.by_id(id).ok_or(DutyError::Unknown)?;
        store.member.ask_retry();
        store.bell.ring();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::rig::bare_store;

    #[test]
    fn a_store_drains_only_beside_one_that_serves() {
        let fleet = Fleet::default();
        let id = StoreId(0);
        assert_eq!(fleet.drain_store(id), Err(DutyError::Unknown));
        fleet.registry().add(&bare_store(0), None);
        assert_eq!(fleet.drain_store(id), Err(DutyError::Alone));
        fleet.registry().add(&bare_store(1), None);
        assert_eq!(fleet.drain_store(id), Ok(()));
        let store = fleet.store(id).unwrap();
        assert_eq!(store.member.duty(), Duty::Draining);
        assert_eq!(store.member.left(store.space.geometry().segments), 1.0);
        assert_eq!(fleet.resume_store(id), Ok(()));
        store.member.set_duty(Duty::Leaving);
        assert_eq!(fleet.drain_store(id), Err(DutyError::Leaving));
        assert_eq!(fleet.resume_store(id), Err(DutyError::Leaving));
        assert_eq!(fleet.drain_store(StoreId(1)), Err(DutyError::Alone));
    }

    #[test]
    fn the_writer_of_a_store_is_asked_to_try_again() {
        let fleet = Fleet::default();
        fleet.registry().add(&bare_store(0), None);
        assert_eq!(fleet.retry_quarantine(StoreId(1)), Err(DutyError::Unknown));
        assert_eq!(fleet.retry_quarantine(StoreId(0)), Ok(()));
        assert!(fleet.store(StoreId(0)).unwrap().member.take_retry());
    }
}
