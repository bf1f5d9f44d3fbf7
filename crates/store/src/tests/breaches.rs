//! Tests of rules that the other test files do not cover. `cargo xtask mutants` showed for each of these
//! rules that no other test fails when the rule is broken.

use std::time::Duration;

use foxy_disk::{Disk, Fault, FaultPlan, FaultRule, MemDisk, OpClass};
use foxy_format::{
    BLOCK, JournalBlock, JournalHalf, LogPosition, SUPERBLOCK_BYTES, Superblock, read_journal_half,
};

use super::gaps::{held, until_held};
use super::live_rig::{KEYS, Live, Slot, all};
use super::purges::purge;
use super::rig::{Rig, options};
use super::several_rig::Several;
use crate::*;

const MEMORY: u64 = 1 << 20;

fn tag(rig: &Rig, text: &str) -> SyncTicket {
    let purge = purge(PurgeKind::Tag, text, false);
    rig.engine
        .purges()
        .purge_many(&purge, Places::Reserved)
        .unwrap()
        .1
}

/// Carries out a flush that the purge journal requests. (In these tests the disk holds each operation back
/// until the test releases it.) For this, all flushes are released, and all operations at places on the disk
/// before the first segment. Operations in the segments are still held back.
fn flush(rig: &mut Rig) {
    let segments = rig.segments_at();
    let ticket = tag(rig, "asks for a flush");
    for _ in 0..100 {
        if ticket.is_done() {
            return;
        }
        rig.turns(1);
        let all = rig.disk.held().into_iter();
        for op in all.filter(|op| op.class == OpClass::Flush || op.at < segments) {
            rig.disk.release(op.id);
        }
    }
    panic!("no flush: {:?}", rig.disk.held());
}

fn halves(disk: &MemDisk, rig: &Rig) -> Vec<JournalHalf> {
    let store = rig.engine.fleet().store(StoreId(0)).unwrap();
    let half = store.space.geometry().journal_bytes as usize / 2;
    let places = [0, 1].map(|n| store.space.geometry().journal_at() + n * half as u64);
    let read = places.map(|at| read_journal_half(&disk.peek(at, half), store.space.uuid()));
    let mut halves: Vec<_> = read.into_iter().flatten().collect();
    halves.sort_by_key(|half| half.newest.first);
    halves
}

fn superblocks(disk: &MemDisk) -> [Superblock; 2] {
    Superblock::decode_both(&disk.peek(0, 2 * SUPERBLOCK_BYTES)).map(Result::unwrap)
}

/// A later cluster is written before an earlier cluster, and a kill tears the earlier cluster. Only the
/// contents of the earlier cluster are lost.
#[test]
fn no_flushed_number_passes_a_cluster_that_is_under_way() {
    let mut rig = Rig::new(16, MEMORY, 1);
    rig.settle();
    rig.put("k", b"old");
    rig.settle();
    let segments = rig.segments_at();
    rig.disk.set_step(true);
    let next = |rig: &mut Rig, first: u64| {
        for _ in 0..200 {
            let held = held(rig, OpClass::Write, segments);
            if let Some(id) = held.into_iter().find(|id| *id != first) {
                return id;
            }
            rig.clock.advance(Duration::from_millis(20));
            rig.turns(1);
        }
        panic!("no cluster overtakes: {:?}", rig.disk.held());
    };
    rig.put("a", b"under way");
    let first = next(&mut rig, 0);
    rig.put("b", b"overtakes");
    let second = next(&mut rig, first);
    rig.disk.release(second);
    rig.turns(2);
    flush(&mut rig);
    rig.put("c", b"names the flushed number");
    let third = next(&mut rig, first);
    rig.disk.release(third);
    rig.turns(2);
    let again = rig.kill();
    assert_eq!(again.counts().damaged, 0);
    assert_eq!(again.text("k").as_deref(), Some("old"));
    assert!(again.text("b").is_some() && again.text("c").is_some());
}

/// A cluster contains its flushed number: the number of the cluster up to which the log was durable. The
/// cluster confirms the removals up to its flushed number once the cluster itself is durable.
#[test]
fn a_removal_is_active_until_the_cluster_that_confirms_it_is_durable() {
    let mut rig = Rig::new(16, MEMORY, 2);
    rig.settle();
    rig.put("k", b"old");
    rig.settle();
    let segments = rig.segments_at();
    rig.disk.set_step(true);
    rig.supersede("k");
    let tombstone = until_held(&mut rig, OpClass::Write, segments);
    rig.disk.release(tombstone);
    rig.turns(1);
    flush(&mut rig);
    rig.supersede("another");
    rig.put("b", b"names the flushed number");
    for _ in 0..200 {
        rig.clock.advance(Duration::from_millis(20));
        rig.turns(1);
    }
    assert!(!held(&rig, OpClass::Write, segments).is_empty());
    flush(&mut rig);
    assert_eq!(rig.kill().counts().removals_recalled, 1);
}

#[test]
fn both_superblocks_record_the_store_set() {
    let several = Several::filled();
    for disk in &several.disks {
        let [a, b] = superblocks(disk);
        assert!(a.membership.epoch > 0);
        assert_eq!(a.membership, b.membership);
    }
}

/// In one half of the journal, every block was written only once. The next snapshot goes to the other half,
/// where every block is written twice, because there is room.
#[test]
fn a_journal_is_doubled_where_there_is_room() {
    let mut rig = Rig::new(16, MEMORY, 3);
    rig.settle();
    rig.purge(PurgeKind::Tag, "t", false);
    let newest = halves(&rig.disk, &rig).pop().unwrap();
    assert!(newest.newest.doubled);
    let disk = rig.disk.kill();
    let block = JournalBlock {
        doubled: false,
        sequence: newest.newest.sequence + 1,
        first: newest.newest.sequence + 1,
        snapshot: 1,
        notes: newest.notes,
        ..newest.newest
    };
    let store = rig.engine.fleet().store(StoreId(0)).unwrap();
    for half in [0, 1] {
        let at = store.space.geometry().journal_at()
            + half * u64::from(store.space.geometry().journal_bytes) / 2;
        let bytes = match half {
            0 => block.encode().unwrap(),
            _ => vec![0; BLOCK as usize],
        };
        disk.write_at(at, &bytes).unwrap();
    }
    let mut again = Rig::open(disk.clone(), MEMORY, 4, options());
    again.settle();
    assert_eq!(again.counts().damaged, 0);
    let newest = halves(&disk, &again).pop().unwrap();
    assert!(newest.newest.doubled, "{newest:?}");
}

/// A power cut during a write of several blocks might keep a later block without the earlier blocks.
#[test]
fn purges_of_several_blocks_are_a_snapshot_in_the_other_half() {
    let mut rig = Rig::new(400, 4 * MEMORY, 5);
    rig.settle();
    rig.purge(PurgeKind::Tag, "t", false);
    let before = halves(&rig.disk, &rig).pop().unwrap().newest.first;
    let tickets: Vec<_> = (0..2)
        .map(|n| tag(&rig, &format!("{n}{}", "x".repeat(2030))))
        .collect();
    rig.settle();
    assert!(tickets.iter().all(|t| t.outcome() == Some(Durable::Yes)));
    let after = halves(&rig.disk, &rig).pop().unwrap().newest;
    assert!(after.first > before && after.snapshot > 1, "{after:?}");
}

#[test]
fn a_store_that_takes_no_writes_acknowledges_no_purge() {
    let mut rig = Rig::new(16, MEMORY, 6);
    rig.settle();
    let broken = FaultRule::new(OpClass::Write, Fault::EIO);
    rig.disk.set_faults(FaultPlan::none().and(broken));
    for n in 0..20 {
        rig.put(&format!("k{n}"), b"body");
        rig.clock.advance(Duration::from_secs(2));
        rig.turns(4);
    }
    assert_eq!(rig.engine.stats().stores[0].health, Health::ReadOnly);
    rig.disk.set_faults(FaultPlan::none());
    let ticket = tag(&rig, "t");
    rig.turns(10);
    assert_eq!(ticket.outcome(), Some(Durable::Failed));
}

/// The note of the purge is written to the journal, but the flush fails, so the note may not be durable.
#[test]
fn a_purge_whose_flush_failed_is_not_acknowledged() {
    let mut rig = Rig::new(16, MEMORY, 7);
    rig.settle();
    let broken = FaultRule::new(OpClass::Flush, Fault::EIO);
    rig.disk.set_faults(FaultPlan::none().and(broken));
    let ticket = tag(&rig, "t");
    rig.turns(20);
    assert_eq!(ticket.outcome(), Some(Durable::Failed));
}

fn two_filled() -> Live {
    let mut live = Live::new(&[16, 16], 3);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    live
}

#[test]
fn a_store_that_was_taken_out_records_it_on_its_disk() {
    let mut live = two_filled();
    assert!(live.remove(1));
    for superblock in superblocks(&live.slots[1].disk) {
        assert!(superblock.floor > LogPosition(0), "{superblock:?}");
        assert_eq!(superblock.membership.epoch, 0);
    }
}

/// The log of a store decides which of its records were removed while it was detached, so the log must be
/// complete.
#[test]
fn a_store_that_leaves_with_something_unwritten_or_unloaded_comes_back_empty() {
    let mut live = two_filled();
    let broken = FaultRule::new(OpClass::Write, Fault::EIO);
    live.slots[1]
        .disk
        .set_faults(FaultPlan::none().and(broken.times(4)));
    (0..4).for_each(|key| live.supersede(key));
    let written = live.remove(1);
    live.slots[1].disk.set_faults(FaultPlan::none());
    assert!(!written);
    let left = live.on_disk();
    live.add(1);
    live.settle();
    assert_eq!(live.on_disk(), left);
    // Now the store leaves while it is still being loaded.
    let mut live = two_filled().crash(None);
    assert!(live.is_open(1));
    let store = live.engine.fleet().store(live.id(1)).unwrap();
    assert!(store.loading.is_on());
    drop(store);
    live.remove(1);
    live.settle();
    let left = live.on_disk();
    live.add(1);
    live.settle();
    assert_eq!(live.on_disk(), left);
}

/// The disk refuses the write which states that the store's contents are dead. All other operations
/// succeed.
#[test]
fn the_others_note_a_store_that_leaves_without_recording_it() {
    let mut live = two_filled();
    let superblocks = 0..2 * SUPERBLOCK_BYTES as u64;
    let broken = FaultRule::new(OpClass::Write, Fault::EIO).within(superblocks);
    live.slots[1].disk.set_faults(FaultPlan::none().and(broken));
    let before = live.engine.purges().purge_sequence();
    live.remove(1);
    assert!(live.engine.purges().purge_sequence() > before);
}

/// Another process that opened the store meanwhile may have stored objects in it.
#[test]
fn a_store_that_somebody_else_opened_meanwhile_comes_back_empty() {
    let mut live = two_filled();
    assert!(live.remove(1));
    let left = live.on_disk();
    let mut other = Live::without(vec![Slot {
        disk: live.slots[1].disk.clone(),
        number: 2,
        writer: None,
    }]);
    other.add(0);
    drop(other);
    live.add(1);
    live.settle();
    assert_eq!(live.on_disk(), left);
}

/// The disk accepts superblocks but no clusters. So the records that were removed while the store was
/// detached are not dead in its log.
#[test]
fn what_comes_back_counts_when_what_it_missed_is_durably_dead() {
    let mut live = two_filled();
    assert!(live.remove(1));
    let left = live.on_disk();
    let detached: Vec<_> = all().difference(&left).copied().take(3).collect();
    detached.iter().for_each(|key| live.supersede(*key));
    let store = live.engine.fleet().store(live.id(0)).unwrap();
    let segments = store.space.geometry().segment_at(0);
    let broken = FaultRule::new(OpClass::Write, Fault::EIO).within(segments..u64::MAX);
    live.slots[1].disk.set_faults(FaultPlan::none().and(broken));
    live.add(1);
    for _ in 0..200 {
        live.clock.advance(Duration::from_millis(50));
        for slot in &mut live.slots {
            slot.writer.as_mut().unwrap().turn();
        }
    }
    live.slots[1].disk.set_faults(FaultPlan::none());
    for superblock in superblocks(&live.slots[1].disk) {
        assert!(superblock.floor > LogPosition(0), "{superblock:?}");
    }
}

/// A removal arrives just when the removal log drops the earlier entries that are confirmed.
#[test]
fn a_removal_in_the_inbox_counts() {
    let mut rig = Rig::new(32, 4 * MEMORY, 9);
    rig.settle();
    for n in 0..300 {
        rig.put(&format!("k{n}"), b"old");
    }
    rig.settle();
    for n in 0..300 {
        let key = format!("k{n}");
        rig.supersede(&key);
        rig.clock
            .advance(Duration::from_millis(if n % 9 == 0 { 2100 } else { 20 }));
        rig.turns(1);
        assert_eq!(rig.kill().text(&key), None, "{key}");
    }
}

/// The damaged superblock may have been the newer of the two, with a generation that must not be used again.
#[test]
fn beside_a_damaged_superblock_no_generation_is_given_twice() {
    let mut rig = Rig::new(16, MEMORY, 10);
    rig.settle();
    let generations = superblocks(&rig.disk).map(|s| s.generation);
    let newest = *generations.iter().max().unwrap();
    let disk = rig.disk.kill();
    disk.corrupt((newest & 1) * SUPERBLOCK_BYTES as u64 + 100, 1, |b| {
        b[0] ^= 1;
    });
    let again = Rig::open(disk.clone(), MEMORY, 11, options());
    assert!(superblocks(&disk).iter().all(|s| s.generation != newest));
    assert!(superblocks(&disk).iter().any(|s| s.generation > newest));
    drop(again);
}
