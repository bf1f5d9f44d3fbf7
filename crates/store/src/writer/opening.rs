//! The work that remains after a store was opened: segments that are still to be loaded and, for a store that
//! was detached, its floor (the log position before which everything is dead).

use std::io;

use foxy_base::rule;
use foxy_disk::AlignedBuf;
use foxy_format::LogPosition;

use super::Writer;
use super::io::Purpose;
use super::trouble::Fault;
use crate::fleet::ticket_of_removed;
use crate::recovery::{Loader, Piece};
use crate::{Durable, StoreOptions, SyncTicket};

/// The options of an opening, and the work of the opening that is not done yet.
#[derive(Debug)]
pub(super) struct Opening {
    options: StoreOptions,
    loader: Option<Loader>,
    /// Set if the store was detached: the floor that the store gets back, and the ticket for the removals
    /// that it missed. The store gets the floor back when this ticket ends as durable.
    restoring: Option<(LogPosition, SyncTicket)>,
}

impl Opening {
    pub(super) const fn new(options: StoreOptions, loader: Loader) -> Self {
        Self {
            options,
            loader: Some(loader),
            restoring: None,
        }
    }

    /// The options, for another opening of the same store.
    pub(super) const fn options(&self) -> &StoreOptions {
        &self.options
    }

    pub(super) const fn is_loading(&self) -> bool {
        self.loader.is_some()
    }

    /// Returns whether everything is loaded and the store's contents are live.
    pub(super) const fn is_done(&self) -> bool {
        self.loader.is_none() && self.restoring.is_none()
    }

    /// Returns whether segments are still being loaded. If only the write that records a loss is missing,
    /// returns false.
    pub(super) fn is_busy(&self) -> bool {
        self.loader.as_ref().is_some_and(|loader| !loader.waits())
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.loader.as_ref().map_or(0, Loader::memory_bytes)
    }

    /// Handles a piece that was read for loading.
    pub(super) fn piece_done(
        &mut self,
        piece: Piece,
        result: &io::Result<()>,
        buf: Option<AlignedBuf>,
    ) {
        if let Some(loader) = &mut self.loader {
            loader.read(piece, buf.filter(|_| result.is_ok()));
        }
    }

    /// Ensures that a store that was detached does not get a floor below `floor` back. Otherwise records
    /// before `floor` would be live again after the next start.
    pub(super) fn raise_floor(&mut self, floor: LogPosition) {
        if let Some(loader) = &mut self.loader {
            loader.raise_restored(floor);
        }
        if let Some((restored, _)) = &mut self.restoring {
            *restored = floor.max(*restored);
        }
    }

    /// Returns the former floor once the removals that the store missed are durable.
    fn restored(&mut self) -> Option<LogPosition> {
        let (_, ticket) = self.restoring.as_ref()?;
        let outcome = ticket.outcome()?;
        let (floor, _) = self.restoring.take()?;
        rule!(
            "return: its contents are live again when what it missed is durably dead",
            outcome == Durable::Yes,
            true
        )
        .then_some(floor)
    }
}

impl Writer {
    /// Returns whether segments are still to be loaded.
    pub(crate) const fn is_loading(&self) -> bool {
        self.opening.is_loading()
    }

    /// Continues loading by one step.
    pub(super) fn load_step(&mut self) {
        let Some(loader) = &mut self.opening.loader else {
            return;
        };
        // The reads are submitted now, so that the disk works while this thread works.
        for (piece, at, len) in loader.wanted() {
            self.io.read(Purpose::Load(piece), at, len);
        }
        self.io.submit(self.now);
        if !loader.step() {
            return;
        }
        // While a store counts as being loaded, every removal is logged. If records were lost, this must
        // continue until the disk has accepted the write that records the loss.
        if let Some(floor) = loader.owed()
            && !rule!(
                "load: the store counts as being loaded until the disk took what is lost",
                self.record_floor(floor),
                true
            )
        {
            return;
        }
        let Some(loader) = self.opening.loader.take() else {
            return;
        };
        self.store.loading.end();
        self.store.all_replayed();
        loader.finish();
        self.settle_removals();
        // If the store was detached, its records that were removed meanwhile are dead now. When that is
        // durable, the store's contents are live again.
        if let Some(floor) = loader.restores() {
            self.opening.restoring = Some((floor, ticket_of_removed(&self.store)));
        }
    }

    /// Makes the contents of a store that was detached live again.
    pub(super) fn restore_step(&mut self) {
        if let Some(floor) = self.opening.restored()
            && let Err(error) = self.superblocks.lower_floor(floor)
        {
            self.write_failed(&Fault::write(0, error));
        }
    }
}
