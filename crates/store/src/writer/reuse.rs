//! Reuse of segments, strictly in sequence.
//!
//! Order: read the victim and write again what was used since it was written; mark the slot with
//! the new life; flush; drop the index entries; only then overwrite. Until the mark is durable the
//! index still knows every record of the victim, so a supersession leaves its removal in the log;
//! afterwards a restart rejects the old life.

use std::collections::HashMap;

use foxy_disk::AlignedBuf;
use foxy_format::{Entry, EntryKind, LogPosition, SLOT_HEADER_BYTES, SlotHeader, UNIT};

use super::Writer;
use super::io::Purpose;
use super::reinsert::Reinsertion;
use super::segment::{OpenSegment, summary};
use crate::recovery::{scan_segment, summary_entries};
use crate::stats::add;

/// Index entries dropped by one turn.
const DROP_STEP: usize = 4096;

/// How far the next segment is prepared.
#[derive(Debug, Default)]
pub(super) enum Next {
    #[default]
    Idle,
    /// The victim's slot is being read.
    Reading { index: u32, sequence: u64 },
    /// Used records are being read and written again.
    Reinserting {
        index: u32,
        sequence: u64,
        victim: Vec<Entry>,
        work: Reinsertion,
    },
    /// The slot is being marked with the new life.
    Marking {
        index: u32,
        sequence: u64,
        victim: Vec<Entry>,
    },
    /// Marking failed, and is tried again later.
    Unmarked {
        index: u32,
        sequence: u64,
        victim: Vec<Entry>,
    },
    /// The mark is being flushed.
    Flushing {
        index: u32,
        sequence: u64,
        victim: Vec<Entry>,
        number: u64,
    },
    /// Index entries are being dropped.
    Dropping {
        index: u32,
        sequence: u64,
        victim: Vec<Entry>,
        old: u64,
    },
    /// May be overwritten.
    Ready { index: u32, sequence: u64 },
}

impl Next {
    /// Room in the victim's table.
    pub(super) const fn entries(&self) -> usize {
        match self {
            Self::Idle | Self::Ready { .. } | Self::Reading { .. } => 0,
            Self::Reinserting { victim, .. }
            | Self::Marking { victim, .. }
            | Self::Unmarked { victim, .. }
            | Self::Flushing { victim, .. }
            | Self::Dropping { victim, .. } => victim.capacity(),
        }
    }

    /// Nothing goes on unless something happens.
    pub(super) const fn is_at_rest(&self) -> bool {
        matches!(
            self,
            Self::Idle | Self::Ready { .. } | Self::Unmarked { .. }
        )
    }
}

impl Writer {
    /// Takes the preparation of the next segment a step further.
    pub(super) fn reuse_step(&mut self) {
        self.next = match std::mem::take(&mut self.next) {
            Next::Idle => self.begin_reuse(),
            Next::Reinserting {
                index,
                sequence,
                victim,
                mut work,
            } => {
                if self.reinsert_step(&mut work) || self.must_hurry() {
                    self.reinsert_end(&mut work);
                    self.mark(index, sequence, victim)
                } else {
                    Next::Reinserting {
                        index,
                        sequence,
                        victim,
                        work,
                    }
                }
            }
            Next::Flushing {
                index,
                sequence,
                victim,
                number,
            } => match self.io.flushed(number) {
                None => Next::Flushing {
                    index,
                    sequence,
                    victim,
                    number,
                },
                Some(true) => Next::Dropping {
                    index,
                    sequence,
                    victim,
                    old: self.store.life(index),
                },
                // Not durable: the mark has to be made again, later.
                Some(false) => Next::Unmarked {
                    index,
                    sequence,
                    victim,
                },
            },
            Next::Unmarked {
                index,
                sequence,
                victim,
            } if self.may_write() => self.mark(index, sequence, victim),
            Next::Dropping {
                index,
                sequence,
                victim,
                old,
            } => self.drop_entries(index, sequence, victim, old),
            other => other,
        };
    }

    /// Whether preparation has been slower than writing: the open segment is full.
    fn must_hurry(&self) -> bool {
        self.next_urgent
    }

    fn begin_reuse(&mut self) -> Next {
        let geometry = self.store.geometry;
        let half = self
            .current
            .as_ref()
            .is_none_or(|s| s.used_units > geometry.segment_bytes / UNIT as u32 / 2);
        let blocked = self.loader.is_some() || !self.may_write();
        if blocked || !(half || self.next_urgent) {
            return Next::Idle;
        }
        let (index, sequence) = self.next_in_line();
        if self.store.life(index) == 0 {
            return self.mark(index, sequence, Vec::new());
        }
        self.io.read(
            Purpose::VictimSlot,
            geometry.slot_at(index),
            geometry.slot_bytes as usize,
        );
        Next::Reading { index, sequence }
    }

    fn may_write(&self) -> bool {
        self.store.takes_writes() && self.retry_at.is_none_or(|at| self.now >= at)
    }

    /// The segment whose turn it is; those in quarantine are passed over. They stay known until
    /// the mark of the one after them is durable: until then a start would load them, and what is
    /// superseded needs its removal.
    fn next_in_line(&mut self) -> (u32, u64) {
        let geometry = self.store.geometry;
        loop {
            let sequence = self.next_sequence;
            self.next_sequence += 1;
            let index = geometry.segment_of(sequence);
            let current = self.current.as_ref().is_some_and(|s| s.index == index);
            let sound = !self.store.condition.is_quarantined(index);
            // With most of them in quarantine nothing is written, so some are sound.
            if sound && !current || self.passed_over.len() >= geometry.segments as usize {
                return (index, sequence);
            }
            self.passed_over.push(index);
        }
    }

    /// What lay in segments that were passed over is gone now: the next start does not load it.
    fn forget_passed_over(&mut self) {
        for index in std::mem::take(&mut self.passed_over) {
            self.sweep_segment(index);
            self.store.lives[index as usize].store(0, std::sync::atomic::Ordering::Release);
        }
    }

    /// The victim's slot was read: what is in the victim, and which of it is still wanted?
    pub(super) fn victim_slot_done(
        &mut self,
        result: &std::io::Result<()>,
        buf: Option<AlignedBuf>,
    ) {
        let Next::Reading { index, sequence } = self.next else {
            return;
        };
        let slot = result.is_ok().then_some(buf).flatten();
        let victim = slot
            .and_then(|slot| self.slot_entries(index, &slot))
            .unwrap_or_else(|| {
                let life = self.store.life(index);
                let scan = scan_segment(&self.store, index, Some(life));
                scan.map(|s| s.entries).unwrap_or_default()
            });
        let work = self.reinsert_begin(index, &victim);
        self.next = Next::Reinserting {
            index,
            sequence,
            victim,
            work,
        };
    }

    fn slot_entries(&self, index: u32, slot: &[u8]) -> Option<Vec<Entry>> {
        let header = SlotHeader::decode(slot.get(..SLOT_HEADER_BYTES)?).ok()?;
        let sealed = header.state == foxy_format::SegmentState::Sealed;
        let right =
            sealed && header.uuid == self.store.uuid && header.sequence == self.store.life(index);
        let (disk, geometry) = (&*self.store.disk, &self.store.geometry);
        right.then(|| summary_entries(disk, geometry, &header, slot))?
    }

    fn mark(&mut self, index: u32, sequence: u64, victim: Vec<Entry>) -> Next {
        let geometry = self.store.geometry;
        let unused = OpenSegment::empty(index, sequence);
        let buf = summary(&geometry, self.store.uuid, &unused, true).slot;
        let len = buf.len();
        add(&self.store.counters.meta_bytes, len as u64);
        self.io
            .write(Purpose::OpenSlot, geometry.slot_at(index), len, buf);
        Next::Marking {
            index,
            sequence,
            victim,
        }
    }

    /// The slot was marked, or not.
    pub(super) fn mark_done(&mut self, result: &std::io::Result<()>) {
        let Next::Marking {
            index,
            sequence,
            victim,
        } = &mut self.next
        else {
            return;
        };
        let (index, sequence, victim) = (*index, *sequence, std::mem::take(victim));
        self.next = match result {
            Ok(()) => Next::Flushing {
                index,
                sequence,
                victim,
                number: self.io.want_flush(),
            },
            Err(error) => {
                let at = self.store.geometry.slot_at(index);
                self.write_failed("write", Some(at), error);
                Next::Unmarked {
                    index,
                    sequence,
                    victim,
                }
            }
        };
    }

    /// Drops some of the victim's index entries; at the end the segment is ready.
    fn drop_entries(
        &mut self,
        index: u32,
        sequence: u64,
        mut victim: Vec<Entry>,
        old: u64,
    ) -> Next {
        let rest = victim.len().saturating_sub(DROP_STEP);
        let mut dropped = 0;
        for entry in victim.drain(rest..).filter(Entry::is_record) {
            let Some(spot) = self.store.spot(index, entry.offset_units) else {
                continue;
            };
            let _shard = self.engine.shard(entry.hash).write();
            dropped += u64::from(
                self.engine
                    .index
                    .remove_if(entry.hash, spot.address)
                    .is_some(),
            );
        }
        add(&self.store.counters.reuse_dropped, dropped);
        if !victim.is_empty() {
            return Next::Dropping {
                index,
                sequence,
                victim,
                old,
            };
        }
        if old != 0 {
            add(&self.store.counters.reused, 1);
            self.sweep(index);
        }
        self.forget_passed_over();
        self.store.lives[index as usize].store(sequence, std::sync::atomic::Ordering::Release);
        Next::Ready { index, sequence }
    }

    /// Entries that the victim's tables did not name (damaged tables) would outlive it; reads of
    /// them would find other records and fail their checks, but the entries would stay.
    fn sweep(&mut self, index: u32) {
        if !std::mem::take(&mut self.tables_damaged) {
            return;
        }
        self.sweep_segment(index);
    }

    fn sweep_segment(&self, index: u32) {
        let start = self.store.spot(index, 0).map_or(0, |s| s.address.units());
        let sectors = u64::from(self.store.geometry.segment_bytes) / foxy_index::UNIT_BYTES;
        let removed = self.engine.index.sweep(start..start + sectors).run();
        add(&self.store.counters.reuse_dropped, removed);
    }
}

/// Removals by place in what was written, per life: recovery leaves those records out.
pub(crate) fn collect_voids(entries: &[Entry], voids: &mut HashMap<u64, Vec<u32>>) {
    for entry in entries.iter().filter(|e| e.kind == EntryKind::Void) {
        let at = LogPosition(entry.hash.low());
        voids
            .entry(at.sequence())
            .or_default()
            .push(at.offset_units());
    }
}
