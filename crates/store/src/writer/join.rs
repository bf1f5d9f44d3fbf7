//! Joining: a store becomes one of the stores of its engine. All stores record this on their disks
//! before the store takes any objects. See `fleet::membership`.

use std::sync::Arc;
use std::time::Duration;

use foxy_base::rule;
use foxy_disk::Disk;

use super::trouble::Fault;
use super::{Turn, Writer};
use crate::{Engine, OpenError, StoreOptions};

/// An added store waits until the other stores have recorded the new membership. This is the pause between
/// two checks.
const LOOK: Duration = Duration::from_millis(1);

impl Engine {
    /// Adds a store: an empty disk is formatted, and the contents of any other disk are recovered. When
    /// this returns, lookups are correct; the first turns of the writer load older segments. This
    /// method blocks for a few reads, so call it before requests are served, or on a separate thread.
    /// If [`Engine::compare_memberships`] was called, the caller must then call [`Engine::join`].
    ///
    /// # Errors
    /// Each error states what the operator can do. Nothing on the disk was changed in this case, unless
    /// the device failed.
    #[expect(clippy::needless_pass_by_value, reason = "options belong to the store")]
    pub fn open_store(
        self: &Arc<Self>,
        disk: Arc<dyn Disk>,
        options: StoreOptions,
    ) -> Result<Writer, OpenError> {
        let _one_at_a_time = self.core().fleet.lock_membership();
        Writer::open(self.context(), disk, &options, None)
    }

    /// Adds the open stores of these writers to the store set, if [`Engine::compare_memberships`] was called.
    /// At a start, call it once for all stores together. Call it after all of them are open, and before any
    /// request is served or [`Writer::turn`] is called. A store that is added later joins alone. Its writer
    /// does nothing until the other stores have recorded the new membership too.
    ///
    /// # Errors
    /// An error if the device failed. The contents that were live before the call are still live.
    pub fn join(&self, writers: &mut [Writer]) -> Result<(), OpenError> {
        self.fleet().renew();
        for writer in writers {
            writer.try_join().map_err(|source| OpenError::Io {
                disk: writer.store.disk.describe(),
                doing: "write the superblock",
                source,
            })?;
        }
        Ok(())
    }
}

impl Writer {
    /// Writes to the superblocks which stores are open, if that has changed. Returns `Some` if this store has
    /// not joined yet; then this turn is over.
    pub(super) fn membership_step(&mut self) -> Option<Turn> {
        if !self.store.takes_writes() {
            // The store cannot record anything any more. Its turn must continue, because the turn gives up
            // the objects that wait for the store.
            return None;
        }
        if !self.trouble.pauses(self.now)
            && let Err(error) = self.try_join()
        {
            self.write_failed(&Fault::write(0, error));
        }
        let joined = self.store.member.has_joined();
        (!joined).then_some(Turn {
            wait: Some(LOOK),
            busy: false,
        })
    }

    fn try_join(&mut self) -> std::io::Result<()> {
        let (engine, store) = (&self.engine, &self.store);
        let epoch = engine.epoch();
        let joined = store.member.has_joined();
        if epoch == 0 || (joined && store.member.has_recorded(epoch)) {
            return Ok(());
        }
        if !joined
            && !rule!(
                "membership: an added store waits until the others have recorded it",
                engine.others_have_recorded(epoch),
                true
            )
        {
            return Ok(());
        }
        let membership = engine.membership();
        if let Some(membership) = membership {
            self.superblocks.join(membership)?;
        }
        let recorded = membership.map_or(epoch, |membership| membership.epoch);
        store.member.join(recorded);
        Ok(())
    }
}
