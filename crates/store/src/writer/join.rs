//! How a store becomes one of the stores of its engine: all of them say so on their disks before
//! it takes anything. See `fleet::company`.

use std::sync::Arc;
use std::time::Duration;

use foxy_base::rule;
use foxy_disk::Disk;

use super::trouble::Fault;
use super::{Turn, Writer};
use crate::{Engine, OpenError, StoreOptions};

/// How often a store that waits for the others looks again.
const LOOK: Duration = Duration::from_millis(1);

impl Engine {
    /// Adds a store: formats an empty disk, otherwise recovers what is on it. When this returns,
    /// lookups are right; older segments are loaded by the first turns of the writer. Blocks for
    /// a few reads; call it before serving, or on a thread of its own. If the engine's stores met
    /// ([`Engine::meet`]), [`Engine::join`] has to follow.
    ///
    /// # Errors
    /// Each says what to do. Nothing on the disk was changed then, unless the device failed.
    #[expect(clippy::needless_pass_by_value, reason = "options belong to the store")]
    pub fn open_store(
        self: &Arc<Self>,
        disk: Arc<dyn Disk>,
        options: StoreOptions,
    ) -> Result<Writer, OpenError> {
        let _one_at_a_time = self.ground().fleet.lock_membership();
        Writer::open(self.foundation(), disk, &options, None)
    }

    /// Takes stores that were opened into the company, if [`Engine::meet`] was called. At a start,
    /// call it for all stores together, when all are open and before anything is served or a writer
    /// takes a turn. A store that is added later joins alone: it does nothing until its writer's
    /// turns find that the other stores have recorded it as well.
    ///
    /// # Errors
    /// The device failed. The contents of the stores count as before.
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
    /// Records which stores are open, when that has changed. `Some`: this store has not joined yet,
    /// and this turn is over.
    pub(super) fn company_step(&mut self) -> Option<Turn> {
        if !self.store.takes_writes() {
            // The store records nothing any more, and its turns give up what waits for it.
            return None;
        }
        if !self.trouble.pauses(self.now)
            && let Err(error) = self.try_join()
        {
            self.write_failed(&Fault::write(0, error));
        }
        let joined = self.store.role.has_joined();
        (!joined).then_some(Turn {
            wait: Some(LOOK),
            busy: false,
        })
    }

    fn try_join(&mut self) -> std::io::Result<()> {
        let (seat, store) = (&self.seat, &self.store);
        let epoch = seat.epoch();
        let joined = store.role.has_joined();
        if epoch == 0 || (joined && store.role.says(epoch)) {
            return Ok(());
        }
        if !joined
            && !rule!(
                "company: an added store waits until the others say that it is there",
                seat.others_say(epoch),
                true
            )
        {
            return Ok(());
        }
        let company = seat.company();
        if let Some(company) = company {
            self.superblocks.join(company)?;
        }
        let said = company.map_or(epoch, |company| company.epoch);
        store.role.join(said);
        Ok(())
    }
}
