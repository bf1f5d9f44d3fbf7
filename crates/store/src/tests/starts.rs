//! Tests of starts with disks that are not as a store left them: wiped, formatted anew, without a valid
//! journal, or out of date in a way that only the caller of the engine knows.

use foxy_disk::{Fault, FaultPlan, FaultRule, MemDisk, OpClass};
use foxy_format::SegmentState;

use super::purges::tagged;
use super::rig::{Rig, geometry, hash, options};
use crate::recovery::{Found, read_slots};
use crate::*;

const MEMORY: u64 = 2 << 20;

/// Makes a store of several segments.
fn filled(seed: u64) -> Rig {
    let mut rig = Rig::new(40, MEMORY, seed);
    rig.put("k", b"body");
    rig.fill("a", 400);
    rig
}

fn other() -> StoreOptions {
    StoreOptions {
        uuid: Some(*b"another store id"),
        ..options()
    }
}

fn wipe(disk: &MemDisk, from: u64, to: u64) {
    disk.corrupt(from, (to - from) as usize, |b| b.fill(0));
}

/// All slots belong to the former store. If they were taken for damaged slots, every segment would be
/// read.
#[test]
fn a_new_store_does_not_search_what_another_left() {
    let rig = filled(1);
    let geometry = geometry(&rig.engine);
    let disk = rig.disk.kill();
    wipe(&disk, 0, geometry.slot_at(0));
    let kept = disk.peek(geometry.slot_at(0), 64);
    // A wiped beginning must not be taken for an empty disk.
    let refused = Rig::try_open(disk.clone(), MEMORY, 2, other())
        .err()
        .unwrap();
    assert!(matches!(refused, OpenError::Wiped { .. }), "{refused}");
    assert!(refused.is_of_the_disk());
    assert!(
        disk.peek(geometry.slot_at(0), 64) == kept,
        "nothing was changed"
    );
    let force = StoreOptions {
        force_format: true,
        ..other()
    };
    let mut again = Rig::open(disk, MEMORY, 2, force);
    again.settle();
    assert_eq!(again.counts().damaged, 0);
    let mut again = Rig::open(again.disk.kill(), MEMORY, 3, other());
    again.settle();
    assert_eq!(again.counts().load_scans, 1, "the open segment alone");
    // A slot of the former store has become readable again, or was never cleared.
    let at = geometry.slot_at(5);
    let disk = again.disk.kill();
    disk.corrupt(at, 4096, |b| b.copy_from_slice(&rig.disk.peek(at, 4096)));
    let mut last = Rig::open(disk, MEMORY, 4, other());
    last.settle();
    assert_eq!((last.counts().damaged, last.counts().load_scans), (0, 1));
    assert_eq!(last.text("k"), None);
}

/// A file system left bytes where the slots of the store will be. These bytes are not slots of a store.
#[test]
fn formatting_clears_the_slots() {
    let len = 40 * (64 + 4) * 1024 + (64 << 10);
    let disk = MemDisk::new(len, 512, 1);
    // The beginning and the end of the disk are empty, as after `wipefs` and a partition tool.
    let geometry = geometry(&filled(1).engine);
    let slots = geometry.slot_at(1)..geometry.segment_at(0);
    let middle = 1 << 20..len - (1 << 20);
    disk.corrupt(middle.start, (middle.end - middle.start) as usize, |b| {
        b.fill(0x5a);
    });
    let force = StoreOptions {
        force_format: true,
        ..options()
    };
    disk.corrupt(slots.start, (slots.end - slots.start) as usize, |b| {
        b.fill(0x5a);
    });
    let mut rig = Rig::open(disk, MEMORY, 1, force);
    rig.settle();
    let rig = rig.kill();
    assert_eq!(rig.counts().damaged, 0);
    let slots = read_slots(&rig.engine.fleet().store(StoreId(0)).unwrap());
    let open = |slot: &&Found| matches!(slot, Found::Slot(h) if h.state == SegmentState::Open);
    let used = slots.iter().filter(|slot| **slot != Found::Nothing);
    assert_eq!(used.clone().count(), used.filter(open).count());
}

/// A journal without a complete half has lost purges, whatever else is in it. The same applies to a
/// journal with an unreadable half.
#[test]
fn a_journal_that_is_gone_is_damage() {
    let purged = |rig: &mut Rig| {
        let sequence = rig.engine.purges().purge_sequence();
        rig.engine.put(tagged("t", b"body", "tag", sequence));
        rig.settle();
        rig.purge(PurgeKind::Tag, "tag", false);
        rig.settle();
    };
    let mut rig = filled(5);
    purged(&mut rig);
    let geometry = geometry(&rig.engine);
    let journal = geometry.journal_at()..geometry.removals_at();
    let half = (journal.end - journal.start) / 2;
    let zeros = rig.disk.kill();
    wipe(&zeros, journal.start, journal.end);
    let mut damaged = vec![(zeros, "zeros")];
    for n in 0..2 {
        let disk = rig.disk.kill();
        let from = journal.start + n * half;
        let rule = FaultRule::new(OpClass::Read, Fault::EIO).within(from..from + half);
        disk.set_faults(FaultPlan::none().and(rule));
        damaged.push((disk, "a half that cannot be read"));
    }
    for (disk, what) in damaged {
        let mut again = Rig::open(disk.clone(), MEMORY, 6, options());
        again.settle();
        assert!(again.get("t").is_none(), "{what}: the purged object");
        assert!(again.get("k").is_none(), "{what}: it may be purged as well");
        assert!(again.counts().damaged > 0, "{what}");
        let sequence = again.engine.purges().purge_sequence();
        again.engine.put(tagged("new", b"body", "other", sequence));
        again.settle();
        // The half is readable again. The blocks that were written since the damage was found are valid.
        disk.set_faults(FaultPlan::none());
        again.clock.advance(std::time::Duration::from_secs(1));
        again.turns(10);
        purged(&mut again);
        for _ in 0..2 {
            again = again.kill();
            assert!(
                again.get("t").is_none() && again.get("k").is_none(),
                "{what}"
            );
            assert!(again.get("new").is_some(), "{what}");
        }
    }
}

#[test]
fn a_store_that_is_known_to_be_out_of_date_begins_empty() {
    let rig = filled(7);
    let uuid = rig.engine.stats().stores[0].uuid;
    assert_eq!(identity(&rig.disk.kill(), &options()).unwrap(), Some(uuid));
    let clock = rig.clock.clone();
    let open = |disk: MemDisk, names: [u8; 16]| {
        let engine = Engine::new(EngineConfig::new(MEMORY, 8), clock.clone());
        engine.fleet().begin_empty([names]);
        let writer = engine.open_store(std::sync::Arc::new(disk), options());
        let mut writer = writer.unwrap();
        for _ in 0..1000 {
            writer.turn();
        }
        let found = matches!(engine.reads().lookup(hash("k"), b"k"), Lookup::Disk(_));
        (found, writer)
    };
    assert!(open(rig.disk.kill(), *b"some other store").0);
    let disk = rig.disk.kill();
    let (found, writer) = open(disk.clone(), uuid);
    assert!(!found);
    drop(writer);
    // The store itself now records that its contents are dead.
    assert!(!open(disk.kill(), *b"some other store").0);
}

#[test]
fn purges_fail_while_nothing_notes_what_a_missing_store_misses() {
    let rig = filled(9);
    rig.engine.fleet().lose_purges();
    let ticket = rig.engine.purge(hash("k"), b"k");
    assert_eq!(ticket.outcome(), Some(Durable::Failed));
    assert!(rig.get("k").is_none(), "it is purged for now");
    let all = super::purges::purge(PurgeKind::All, "", false);
    let (_, ticket) = rig
        .engine
        .purges()
        .purge_many(&all, Places::Reserved)
        .unwrap();
    assert_eq!(ticket.outcome(), Some(Durable::Failed));
    assert!(!rig.engine.sync().is_done(), "objects are none of that");
}

/// The device reports that it wrote a superblock, but did not write it: a start must not continue with
/// the old superblock.
#[test]
fn a_superblock_that_was_not_written_is_noticed() {
    let rig = filled(10);
    for fault in [Fault::Lost, Fault::Misdirected(512 << 10)] {
        let disk = rig.disk.kill();
        let lost = FaultRule::new(OpClass::Write, fault)
            .within(0..8192)
            .times(1);
        disk.set_faults(FaultPlan::none().and(lost));
        let refused = Rig::try_open(disk.clone(), MEMORY, 2, options()).err();
        let refused = refused.expect("the superblock is not there");
        assert!(refused.is_of_the_disk(), "{refused}");
        let mut again = Rig::open(disk, MEMORY, 3, options());
        again.settle();
    }
}
