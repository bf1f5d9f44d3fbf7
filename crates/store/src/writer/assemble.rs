//! Clusters: chosen from the ready line, encoded, and on their way to the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use foxy_format::{
    ClusterHeader, ENTRY_BYTES, Entry, EntryKind, LogPosition, RecordKind, RecordPlace, UNIT,
    chain_sum, cluster_table_bytes, encode_record, round_to_block,
};

use super::Writer;
use super::flight::Cluster;
use super::io::Purpose;
use super::objects::Written;
use super::segment::OpenSegment;
use crate::Object;
use crate::inbox::Item;
use crate::pressure::WaitsFor;
use crate::removals::Numbered;
use crate::stats::add;

impl Writer {
    /// Writes clusters while there is reason to, and room in flight, in the segment and in the
    /// write budget.
    pub(super) fn assemble_all(&mut self) {
        let waits_for = loop {
            let full = self.gather.ready_bytes() >= self.full_cluster();
            if !self.flight.has_room(full) {
                break if full {
                    WaitsFor::Device
                } else {
                    WaitsFor::Thread
                };
            }
            if !self.wants_cluster() {
                break WaitsFor::Thread;
            }
            if let Err(waits_for) = self.assemble() {
                break waits_for;
            }
            // The device begins with it while the next one is made.
            self.io.submit(self.now);
        };
        self.flight.rest(waits_for, self.now);
    }

    /// Bytes in line with which a cluster counts as full.
    fn full_cluster(&self) -> u64 {
        u64::from(self.store.geometry.cluster_bytes) * 15 / 16
    }

    fn wants_cluster(&mut self) -> bool {
        let now = self.now;
        if self.trouble.pauses(now) {
            return false;
        }
        let full = self.full_cluster();
        let forced = self.tickets.wait_for_more_than(self.gather.left());
        let items = self.gather.items_due(now) || forced;
        if items {
            self.gather.fill_up(full, now);
        }
        let ready = self.gather.ready_bytes();
        ready >= full
            || (items && ready > 0)
            || self.gather.removals_due(now)
            || (self.gather.removals() > 0 && self.store.removals.lock().is_pressed())
            || (forced && self.gather.removals() > 0)
    }

    /// Writes one cluster, or says what it must wait for.
    fn assemble(&mut self) -> Result<(), WaitsFor> {
        let cluster_max = self.store.geometry.cluster_bytes as usize;
        let given_up = self.chain.entry_count();
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
        let Some(segment) = &self.current else {
            return Err(WaitsFor::Segment);
        };
        let limit = cluster_max.min(segment.room_bytes(&self.store.geometry, entries) as usize);
        // Removals are taken before items are looked at: one that comes later goes to a later
        // cluster, behind every record that it is about.
        let removals = self.gather.pop_removals(removals_max(limit), self.now);
        let objects = self.choose(removals.len() + given_up, limit);
        if !removals.is_empty() || !objects.is_empty() {
            self.write_cluster(removals, &objects);
        }
        Ok(())
    }

    /// Items from the ready line that are still wanted, as many as fit.
    fn choose(&mut self, removals: usize, limit: usize) -> Vec<(Item, Arc<Object>)> {
        let mut chosen = Vec::new();
        let mut records = 0;
        loop {
            let entries = removals + chosen.len() + 1;
            let table = cluster_table_bytes(entries);
            let limit = limit.min(self.segment_room(entries));
            let Some(room) = limit.checked_sub(table + records) else {
                break;
            };
            let Some(item) = self.gather.pop(room as u64) else {
                break;
            };
            if let Some(object) = self.objects.waiting(&item) {
                chosen.push((item, object));
                records += item.bytes as usize;
            }
        }
        chosen
    }

    fn segment_room(&self, entries: usize) -> usize {
        let segment = self.current.as_ref();
        segment.map_or(0, |s| s.room_bytes(&self.store.geometry, entries) as usize)
    }

    /// Writes a cluster into the open segment; with nothing at all, one that only covers what was
    /// written before it.
    pub(super) fn write_cluster(
        &mut self,
        removals: Vec<Numbered>,
        objects: &[(Item, Arc<Object>)],
    ) {
        let Some(mut segment) = self.current.take() else {
            return;
        };
        let mut buf = self.flight.buffer();
        let base = segment.used_units;
        let mut entries = removal_entries(&removals, base);
        entries.extend(self.chain.entries(base));
        let mut records = Vec::with_capacity(objects.len());
        let first = cluster_table_bytes(entries.len() + objects.len());
        let mut at = first;
        for (item, object) in objects {
            let offset_units = base + (at as u64 / UNIT) as u32;
            let place = LogPosition::new(segment.sequence, offset_units);
            if !self.objects.begin_record(item, place) {
                continue;
            }
            let encoded = self.encode(&segment, offset_units, object, &mut buf[at..]);
            let Some((len, written)) = encoded else {
                self.objects.forget(item.hash, item.ticket);
                continue;
            };
            entries.push(Entry {
                hash: item.hash,
                offset_units,
                len_units: (len as u64 / UNIT) as u32,
                kind: kind_of(object.kind),
            });
            records.push(Written {
                ticket: item.ticket,
                ..written
            });
            at += len;
        }
        let len = round_to_block(at as u64) as usize;
        buf[at..len].fill(0);
        let header = ClusterHeader {
            uuid: self.store.uuid,
            sequence: segment.sequence,
            segment: segment.index,
            offset_units: base,
            len_units: (len as u64 / UNIT) as u32,
            entries: entries.len() as u32,
            link: self.chain.next_link(),
        };
        let table = header.encode(&entries);
        let sum = chain_sum(&table).unwrap_or_default();
        self.chain.made(sum, removals.first().map(|r| r.number));
        buf[..table.len()].copy_from_slice(&table);
        buf[table.len()..first].fill(0);
        self.count_cluster(&removals, &records, first, len);
        let disk_at = self.store.geometry.segment_at(segment.index) + u64::from(base) * UNIT;
        segment.used_units += header.len_units;
        let end = LogPosition::new(segment.sequence, segment.used_units);
        self.store.log_end.store(end.0, Ordering::Release);
        segment.entries.append(&mut entries);
        segment.writing += 1;
        segment.last_cluster = header.link.number;
        self.io
            .write(Purpose::Cluster(header.link.number), disk_at, len, buf);
        self.flight.begin(Cluster {
            number: header.link.number,
            given_up: self.chain.given_up(),
            sequence: segment.sequence,
            segment: segment.index,
            range: disk_at..disk_at + len as u64,
            begun: self.now,
            records,
            removals,
        });
        self.current = Some(segment);
    }

    fn encode(
        &self,
        segment: &OpenSegment,
        offset_units: u32,
        object: &Object,
        out: &mut [u8],
    ) -> Option<(usize, Written)> {
        let spot = self.store.spot(segment.index, offset_units)?;
        let mut head = object.record_head();
        head.place = RecordPlace {
            sequence: segment.sequence,
            ..self.store.place(spot)?
        };
        let sections = object.sections();
        let (len, layout) = encode_record(&head, &sections, out)?;
        add(&self.store.counters.record_bytes, layout.body.end as u64);
        add(
            &self.store.counters.payload_bytes,
            (layout.body.end - layout.key.start) as u64,
        );
        let entry = spot.entry(len as u64)?;
        Some((
            len,
            Written {
                hash: object.hash(),
                ticket: 0,
                entry,
                bytes: len as u32,
            },
        ))
    }

    fn count_cluster(
        &mut self,
        removals: &[Numbered],
        records: &[Written],
        table: usize,
        len: usize,
    ) {
        let again = &self.reinserting;
        let new = records.iter().filter(|w| !again.contains_key(&w.ticket));
        self.rewrites.earn(new.map(|w| u64::from(w.bytes)).sum());
        let counters = &self.store.counters;
        add(&counters.clusters, 1);
        add(&counters.cluster_bytes, len as u64);
        add(&counters.table_bytes, table as u64);
        add(&counters.records, records.len() as u64);
        add(&counters.tombstones, removals.len() as u64);
        if records.is_empty() {
            add(&counters.tombstone_clusters, 1);
        }
    }
}

/// The entries of removals in a cluster at `base`.
fn removal_entries(removals: &[Numbered], base: u32) -> Vec<Entry> {
    let entries = removals.iter().map(|removal| {
        let (kind, hash) = removal.removal.entry();
        Entry {
            hash,
            offset_units: base,
            len_units: 0,
            kind,
        }
    });
    entries.collect()
}

/// Removals that a cluster of so many bytes takes: their entries fill at most half of it.
const fn removals_max(cluster_bytes: usize) -> usize {
    (cluster_bytes / 2).saturating_sub(1024) / ENTRY_BYTES
}

const fn kind_of(kind: RecordKind) -> EntryKind {
    match kind {
        RecordKind::Object => EntryKind::Object,
        RecordKind::Head => EntryKind::Head,
        RecordKind::Fragment => EntryKind::Fragment,
    }
}
