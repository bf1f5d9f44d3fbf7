//! Assembling clusters: objects from the ready queue, and removals that wait, are written to the disk in
//! clusters.

use foxy_format::{ENTRY_BYTES, cluster_table_bytes, round_to_block};

use super::Writer;
use super::io::Purpose;
use super::records::Chosen;
use crate::shared::{Numbered, WaitsFor};

impl Writer {
    /// Writes clusters while all of this is true: there is a reason to write a cluster, fewer clusters than
    /// the maximum are under way, and the segment and the write budget have room.
    pub(super) fn assemble_all(&mut self) {
        let waits_for = loop {
            let full = self.gather.ready_bytes() >= self.flight.full_bytes();
            if !self.flight.has_room(full) {
                break if full {
                    WaitsFor::Device
                } else {
                    WaitsFor::Thread
                };
            }
            if self.trouble.pauses(self.now) || !self.wants_cluster() {
                break WaitsFor::Thread;
            }
            if let Err(waits_for) = self.assemble() {
                break waits_for;
            }
            // The device begins to write this cluster while the next cluster is made.
            self.io.submit(self.now);
        };
        self.flight.rest(waits_for, self.now);
    }

    fn wants_cluster(&mut self) -> bool {
        let full = self.flight.full_bytes();
        let forced = self.tickets.wait_for_more_than(self.gather.left());
        let pressed = || self.store.removals.lock().is_pressed();
        self.gather.wants_cluster(full, forced, pressed, self.now)
    }

    /// Writes one cluster, or returns what it must wait for.
    fn assemble(&mut self) -> Result<(), WaitsFor> {
        let cluster_max = self.store.space.geometry().cluster_bytes as usize;
        let given_up = self.log.chain().entry_count();
        let entries = self.gather.removals().min(removals_max(cluster_max)) + given_up + 1;
        let table = cluster_table_bytes(entries);
        let first = self.gather.next_bytes().unwrap_or(0) as usize;
        let need = round_to_block((table + first) as u64).min(cluster_max as u64);
        if !self.ensure_segment(need, entries) {
            return Err(WaitsFor::Segment);
        }
        if !self.flight.may_spend(cluster_max as u64, self.now) {
            return Err(WaitsFor::Rate);
        }
        let Some(room) = self.log.room(entries) else {
            return Err(WaitsFor::Segment);
        };
        let limit = cluster_max.min(room);
        // Removals are taken before items: a removal that arrives later goes to a later cluster, after
        // every record that it removes.
        let removals = self.gather.pop_removals(removals_max(limit), self.now);
        let log = &self.log;
        let room = |entries| log.room(entries).unwrap_or(0);
        let others = removals.len() + given_up;
        let objects = self.gather.choose(others, limit, &self.objects, room);
        if !removals.is_empty() || !objects.is_empty() {
            self.write_cluster(removals, &objects);
        }
        Ok(())
    }

    /// Ensures that the open segment has `need` bytes left for a cluster of `entries` entries. If it has
    /// fewer, writing continues in the next segment if that segment is ready. Returns false if the next
    /// segment is not ready yet.
    fn ensure_segment(&mut self, need: u64, entries: usize) -> bool {
        if self.log.has_room(need, entries) {
            return true;
        }
        let Some((index, sequence)) = self.reuse.take_ready() else {
            return false;
        };
        self.log.go_on(index, sequence);
        true
    }

    /// Writes a cluster into the open segment. If there are no removals and no objects, the cluster is empty:
    /// it is written only to confirm removals in earlier clusters.
    fn write_cluster(&mut self, removals: Vec<Numbered>, chosen: &[Chosen]) {
        let mut buf = self.flight.buffer();
        let objects = &self.objects;
        let made = self
            .log
            .append(removals, chosen, objects, &mut buf, self.now);
        let Some(cluster) = made else { return };
        self.reuse.reinserter_mut().earn(&cluster.records);
        let (at, len) = (cluster.range.start, cluster.bytes() as usize);
        let purpose = Purpose::Cluster(cluster.number);
        self.io.write(purpose, at, len, buf);
        self.flight.begin(cluster);
    }

    /// Writes an empty cluster if removals must be confirmed by a later cluster (see `super::chain`) and one
    /// of two cases applies. Either the log is at rest, so that no other cluster will confirm them soon, or
    /// more than half of the removal log is in use.
    pub(super) fn confirm_step(&mut self) {
        if !self.log.chain().is_open() || !self.trouble.may_write(self.now) {
            return;
        }
        let pressed = self.store.removals.lock().is_pressed();
        let at_rest = self.gather.is_empty() && self.flight.is_empty() && !self.io.is_dirty();
        if pressed && self.io.is_dirty() {
            self.io.want_flush();
        }
        let due = self.log.chain().is_due(pressed) && (pressed || at_rest);
        if due && self.flight.has_room(true) {
            let block = foxy_format::BLOCK;
            if self.ensure_segment(block, self.log.chain().entry_count()) {
                self.write_cluster(Vec::new(), &[]);
            }
        }
    }
}

/// The number of removals that a cluster of `cluster_bytes` bytes takes: their entries fill at most
/// half of the cluster.
const fn removals_max(cluster_bytes: usize) -> usize {
    (cluster_bytes / 2).saturating_sub(1024) / ENTRY_BYTES
}
