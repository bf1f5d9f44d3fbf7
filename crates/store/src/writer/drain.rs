//! The end of a writer: everything that waits is written, made durable and summarised.

use std::time::Duration;

use super::Writer;
use crate::Durable;
use crate::fleet::ticket_of;

impl Writer {
    /// Returns whether nothing waits, nothing is under way, everything written is durable, and
    /// everything is loaded.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.intake.is_empty()
            && self.opening.is_done()
            && self.notes.is_idle()
            && self.gather.is_empty()
            && self.io.in_flight() == 0
            && !self.io.is_dirty()
            && self.tickets.is_empty()
            && !(self.log.chain().is_open() && self.store.takes_writes())
            && !self.log.is_sealing()
            && self.reuse.is_at_rest()
    }

    /// Writes everything that waits, makes it durable, and writes the summary of the open segment. So the
    /// next start has nothing to scan, and continues to write in the same segment. Blocks the calling thread
    /// for at most about `at_most`. Returns true if all of this was done.
    pub fn drain(&mut self, at_most: Duration) -> bool {
        self.drain_for(at_most, false)
    }

    /// Drains like [`Writer::drain`]. If `heir` is true, another writer continues with the store. Then
    /// removals that arrive from now on, and the requests that wait for them, stay in the inbox for that
    /// writer. Otherwise they would be lost when this writer ends.
    pub(super) fn drain_for(&mut self, at_most: Duration, heir: bool) -> bool {
        if !self.store.member.has_joined() {
            return false;
        }
        let own = std::slice::from_ref(&self.store);
        let ticket = ticket_of(own, true);
        self.take_inbox();
        self.intake.set_heir(heir);
        let start = self.engine.now();
        let over = |writer: &Self| writer.engine.now().since(start) > at_most;
        let unfinished = |writer: &Self| {
            !writer.flight.is_empty() || writer.log.is_sealing() || !writer.notes.is_idle()
        };
        while !ticket.is_done() || unfinished(self) {
            self.turn();
            self.io.wait(Duration::from_millis(1));
            if over(self) {
                return false;
            }
        }
        if !self.log.close() {
            return true;
        }
        while self.log.is_sealing() {
            self.turn();
            self.io.wait(Duration::from_millis(1));
            if over(self) {
                return false;
            }
        }
        let durable = self.store.disk.flush().is_ok();
        if durable {
            self.log.chain_mut().summarised();
            self.settle_removals();
        }
        durable && ticket.outcome() == Some(Durable::Yes)
    }
}
