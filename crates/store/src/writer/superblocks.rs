//! The superblocks of an open store: what the store records about itself on its disk. They are written
//! rarely, and each write waits for the disk.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{MonoTime, rule};
use foxy_format::{Geometry, LogPosition, Membership, QUARANTINE_MAX, Superblock};

use crate::Health;
use crate::recovery::{write_both, write_superblock};
use crate::shared::StoreShared;

/// Pause between two attempts of a store that takes no writes to record on its disk that its contents are
/// dead.
const DISOWN_EVERY: Duration = Duration::from_millis(200);

/// The superblock as it was last written, with the disk to which its changes are written.
#[derive(Debug)]
pub(super) struct Superblocks {
    store: Arc<StoreShared>,
    superblock: Superblock,
    /// The epoch at which the disk last recorded that the store's contents are dead.
    disowned_at: Option<u64>,
    disown_due: MonoTime,
    /// The superblock lists the segments that were in quarantine after this number of changes of the
    /// quarantine.
    quarantine_changes: u64,
}

impl Superblocks {
    pub(super) const fn new(
        store: Arc<StoreShared>,
        superblock: Superblock,
        now: MonoTime,
    ) -> Self {
        Self {
            store,
            superblock,
            disowned_at: None,
            disown_due: now,
            quarantine_changes: 0,
        }
    }

    pub(super) const fn floor(&self) -> LogPosition {
        self.superblock.floor
    }

    pub(super) const fn generation(&self) -> u64 {
        self.superblock.generation
    }

    /// See [`write_both`].
    fn write(&mut self) -> io::Result<()> {
        write_both(&*self.store.disk, &mut self.superblock)
    }

    /// Writes the changes to one superblock: the one that was not written last.
    fn write_next(&mut self) -> io::Result<()> {
        self.superblock.generation += 1;
        write_superblock(&*self.store.disk, &self.superblock)
    }

    /// Writes to both superblocks that everything before `floor` is dead.
    pub(super) fn set_floor(&mut self, floor: LogPosition) -> io::Result<()> {
        self.superblock.floor = floor;
        self.write()
    }

    /// Writes to both superblocks that everything before `floor` is dead. If their present floor is higher,
    /// it stays.
    pub(super) fn raise_floor(&mut self, floor: LogPosition) -> io::Result<()> {
        self.set_floor(self.superblock.floor.max(floor))
    }

    /// Writes to the disk that the contents from `floor` on are live again.
    pub(super) fn lower_floor(&mut self, floor: LogPosition) -> io::Result<()> {
        self.superblock.floor = floor;
        self.write_next()
    }

    /// Writes the store's new geometry to both superblocks.
    pub(super) fn grow(&mut self, geometry: Geometry) -> io::Result<()> {
        self.superblock.geometry = geometry;
        self.write()
    }

    /// Writes the store set to both superblocks, if it has changed.
    pub(super) fn join(&mut self, membership: Membership) -> io::Result<()> {
        if self.superblock.membership == membership {
            return Ok(());
        }
        let mut superblock = Superblock {
            membership,
            ..self.superblock.clone()
        };
        // Both superblocks are written, so that neither records the former membership. Otherwise a start
        // could find the former membership after damage of the newer superblock.
        for _ in 0..rule!("membership: both superblocks record the store set", 2, 1) {
            superblock.generation += 1;
            write_superblock(&*self.store.disk, &superblock)?;
        }
        self.superblock = superblock;
        Ok(())
    }

    /// Writes to both superblocks that all present contents of the store are dead.
    pub(super) fn disown(&mut self) -> io::Result<()> {
        let end = self.store.marks.log_end();
        // The store then belongs to no store set. When it is opened next, it does not affect the trust in
        // the other stores.
        self.superblock.membership = Membership::default();
        self.set_floor(end)
    }

    /// Returns whether the disk of a store that takes no writes must still record, at this epoch, that its
    /// contents are dead. Returns false for a disk that is offline, because the write could block this
    /// thread.
    pub(super) fn owe_parting(&self, epoch: u64, now: MonoTime) -> bool {
        let recorded = self.disowned_at == Some(epoch);
        !recorded && self.disown_due <= now && self.store.health() != Health::Offline
    }

    /// Tries to record on the disk that the contents are dead. Call it only if [`Self::owe_parting`] is true.
    pub(super) fn part(&mut self, epoch: u64, membership: Option<Membership>, now: MonoTime) {
        self.disown_due = now + DISOWN_EVERY;
        self.disowned_at = rule!(
            "faults: a store that takes no writes records that its contents are dead",
            self.give_up_contents(membership).is_ok(),
            true
        )
        .then_some(epoch);
    }

    /// Writes to both superblocks that all present contents of the store are dead. If the store has joined
    /// the stores of its engine, `membership` is written too, because the store still belongs to the store
    /// set.
    fn give_up_contents(&mut self, membership: Option<Membership>) -> io::Result<()> {
        let end = self.store.marks.log_end();
        if let Some(membership) = membership.filter(|_| self.store.member.has_joined()) {
            self.superblock.membership = membership;
        }
        self.raise_floor(end)
    }

    /// Writes the list of segments in quarantine to a superblock, if the list has changed and the store takes
    /// writes, so that the next start knows it.
    pub(super) fn note_quarantine(&mut self) -> io::Result<()> {
        let changes = self.store.condition.quarantine_changes();
        if changes == self.quarantine_changes {
            return Ok(());
        }
        self.quarantine_changes = changes;
        let mut bad = self.store.condition.bad_segments();
        bad.truncate(QUARANTINE_MAX);
        if bad == self.superblock.quarantine {
            return Ok(());
        }
        self.superblock.quarantine = bad;
        match self.store.takes_writes() {
            true => self.write_next(),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::stand::{NOW, Stand};

    fn superblocks(stand: &Stand) -> Superblocks {
        Superblocks::new(stand.store.clone(), stand.superblock.clone(), NOW)
    }

    /// Returns the generation and the floor that each of the two superblocks on the disk contains.
    fn recorded(stand: &Stand) -> [(u64, LogPosition); 2] {
        [0, 1].map(|which| {
            let bytes = stand.disk.peek(Geometry::superblock_at(which), 4096);
            let found = Superblock::decode(&bytes).unwrap();
            (found.generation, found.floor)
        })
    }

    #[test]
    fn a_floor_is_in_both_and_never_falls_by_itself() {
        let stand = Stand::new();
        let mut superblocks = superblocks(&stand);
        superblocks.set_floor(LogPosition(9)).unwrap();
        superblocks.raise_floor(LogPosition(5)).unwrap();
        assert_eq!(superblocks.floor(), LogPosition(9));
        assert_eq!(recorded(&stand), [(4, LogPosition(9)), (5, LogPosition(9))]);
        superblocks.lower_floor(LogPosition(3)).unwrap();
        assert_eq!(recorded(&stand), [(6, LogPosition(3)), (5, LogPosition(9))]);
        assert_eq!(superblocks.generation(), 6);
    }

    #[test]
    fn a_store_that_is_lost_records_it_once_for_each_membership() {
        let stand = Stand::new();
        stand.store.marks.set_log_end(LogPosition(77));
        let mut superblocks = superblocks(&stand);
        assert!(superblocks.owe_parting(1, NOW));
        superblocks.part(1, None, NOW);
        assert_eq!(superblocks.floor(), LogPosition(77));
        let later = NOW + DISOWN_EVERY;
        assert!(!superblocks.owe_parting(1, later));
        assert!(superblocks.owe_parting(2, later) && !superblocks.owe_parting(2, NOW));
    }

    #[test]
    fn quarantine_is_written_when_it_changes() {
        let stand = Stand::new();
        let mut superblocks = superblocks(&stand);
        superblocks.note_quarantine().unwrap();
        assert_eq!(superblocks.generation(), 1);
        stand.store.condition.restore_quarantine(&[3]);
        for _ in 0..2 {
            superblocks.note_quarantine().unwrap();
            assert_eq!(superblocks.generation(), 2);
        }
        // One segment leaves quarantine and another one enters it.
        stand.store.condition.forgive(3);
        stand.store.condition.restore_quarantine(&[4]);
        superblocks.note_quarantine().unwrap();
        assert_eq!(superblocks.generation(), 3);
        stand.store.condition.forgive(4);
        superblocks.note_quarantine().unwrap();
        assert_eq!(superblocks.generation(), 4);
    }
}
