//! Tests of segments whose summary and clusters cannot be read.

use foxy_disk::{Fault, FaultPlan, FaultRule, Keep, MemDisk, OpClass};
use foxy_format::{BLOCK, Geometry, SLOT_HEADER_BYTES, SegmentState};

use super::rig::{Rig, geometry, options};
use crate::recovery::{Found, read_slots};
use crate::*;

const MEMORY: u64 = 2 << 20;
const SEGMENTS: u64 = 40;
const KEYS: u64 = 30;

fn name(key: u64) -> String {
    format!("{key} key")
}

/// Returns the version that a lookup may return: the even keys were replaced, and every fifth key was
/// removed.
fn latest(key: u64) -> Option<String> {
    match key {
        key if key.is_multiple_of(5) => None,
        key if key.is_multiple_of(2) => Some("two".into()),
        _ => Some("one".into()),
    }
}

/// Writes first versions, replacements and removals, with other objects after each of them. Each of these
/// parts extends over several segments.
fn written() -> Rig {
    let mut rig = Rig::new(SEGMENTS, MEMORY, 3);
    let others = |rig: &mut Rig, label: &str| rig.fill(label, 96);
    (0..KEYS).for_each(|key| {
        rig.put(&name(key), b"one");
    });
    others(&mut rig, "a");
    for key in (0..KEYS).step_by(2) {
        rig.supersede(&name(key));
        rig.put(&name(key), b"two");
    }
    others(&mut rig, "b");
    for key in (0..KEYS).step_by(5) {
        rig.supersede(&name(key));
    }
    others(&mut rig, "c");
    rig
}

fn unreadable(disk: &MemDisk, from: u64, to: u64) {
    let rule = FaultRule::new(OpClass::Read, Fault::EIO).within(from..to);
    disk.set_faults(FaultPlan::none().and(rule));
}

/// The kinds of damage to a segment.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// The entries of the segment's summary are damaged, and the segment cannot be read; its incarnation is
    /// known.
    EntriesAndAll,
    /// The segment's slot is damaged, and the segment cannot be read.
    SlotAndAll,
    /// The entries of the segment's summary are damaged. The beginning of this block of the segment is
    /// damaged too; it may contain a cluster's table.
    EntriesAndBlock(u64),
    /// The beginning of this block is damaged, in a segment that is not sealed. A start reads the clusters of
    /// such a segment.
    Block(u64),
}

impl Damage {
    fn strike(self, geometry: &Geometry, index: u32, disk: &MemDisk) {
        let slot = geometry.slot_at(index);
        let segment = geometry.segment_at(index);
        let spoil = |at| disk.corrupt(at, SLOT_HEADER_BYTES, |b| b.fill(0xa5));
        match self {
            Self::SlotAndAll => spoil(slot),
            Self::Block(_) => {}
            _ => spoil(slot + SLOT_HEADER_BYTES as u64),
        }
        match self {
            Self::EntriesAndBlock(number) | Self::Block(number) => spoil(segment + number * BLOCK),
            _ => unreadable(disk, segment, segment + u64::from(geometry.segment_bytes)),
        }
    }
}

fn hits(rig: &Rig, when: &str) -> u64 {
    let keys = (0..KEYS).filter(|key| {
        let found = rig.text(&name(*key));
        assert!(
            found.is_none() || found == latest(*key),
            "{when}: key {key}"
        );
        found.is_some()
    });
    keys.count() as u64
}

#[test]
fn what_a_lost_segment_removed_stays_removed_and_what_is_removed_of_it_too() {
    let rig = written();
    let store = rig.engine.fleet().stores().iter().next().unwrap().clone();
    let (geometry, slots) = (*store.space.geometry(), read_slots(&store));
    let is_sealed =
        |slot: &Found| matches!(slot, Found::Slot(h) if h.state == SegmentState::Sealed);
    let all = (0..KEYS).filter(|key| latest(*key).is_some()).count() as u64;
    let (mut total, mut lossy) = (0, 0);
    for index in 0..geometry.segments {
        let is_sealed = is_sealed(&slots[index as usize]);
        let blocks = u64::from(geometry.segment_bytes) / BLOCK;
        let whole = [Damage::EntriesAndAll, Damage::SlotAndAll];
        let blocks = (0..blocks).map(|block| match is_sealed {
            true => Damage::EntriesAndBlock(block),
            false => Damage::Block(block),
        });
        for damage in whole.into_iter().chain(blocks) {
            let when = format!("segment {index}, {damage:?}");
            let disk = rig.disk.kill();
            damage.strike(&geometry, index, &disk);
            let mut run = Rig::open(disk.clone(), MEMORY, 4, options());
            run.settle();
            run.put("after", b"body");
            let now = hits(&run, &when);
            total += now;
            lossy += u64::from(now < all);
            (0..KEYS).for_each(|key| {
                run.supersede(&name(key));
            });
            run.settle();
            // From here on, the segment is readable again.
            disk.set_faults(FaultPlan::none());
            for keep in [Keep::All, Keep::Nothing] {
                let again = run.crash(keep);
                assert_eq!(again.text("after").as_deref(), Some("body"), "{when}");
                for key in 0..KEYS {
                    assert_eq!(again.text(&name(key)), None, "{when}: key {key} is back");
                }
            }
        }
    }
    assert!(lossy > 10 && total > 20 * all, "{lossy} {total}");
}

#[test]
fn while_the_disk_does_not_take_that_a_segment_is_lost_every_removal_leaves_a_trace() {
    let rig = written();
    let geometry = *rig
        .engine
        .fleet()
        .stores()
        .iter()
        .next()
        .unwrap()
        .space
        .geometry();
    let disk = rig.disk.kill();
    Damage::EntriesAndAll.strike(&geometry, 0, &disk);
    let mut run = Rig::open(disk.clone(), MEMORY, 4, options());
    let lost = FaultRule::new(OpClass::Read, Fault::EIO)
        .within(geometry.segment_at(0)..geometry.segment_at(1));
    let refused = FaultRule::new(OpClass::Write, Fault::EIO).within(0..8192);
    disk.set_faults(FaultPlan::none().and(lost).and(refused));
    for _ in 0..200 {
        run.writer.turn();
    }
    assert!(!run.writer.is_idle(), "what is lost is not recorded yet");
    (0..KEYS).for_each(|key| {
        run.supersede(&name(key));
    });
    let again = Rig::open(disk.kill(), MEMORY, 5, options());
    again.engine.context().memory.clear();
    let mut again = again;
    again.settle();
    for key in 0..KEYS {
        assert_eq!(again.text(&name(key)), None, "key {key} is back");
    }
    // When the disk accepts the write that records the loss, loading ends.
    disk.set_faults(FaultPlan::none());
    run.settle();
}

#[test]
fn what_was_not_loaded_for_too_many_removals_is_not_loaded_later() {
    let rig = written();
    let disk = rig.disk.kill();
    let few = StoreOptions {
        removed_keys_max: 4,
        load_steps: 1,
        ..options()
    };
    let mut run = Rig::open(disk, MEMORY, 4, few);
    for key in 0..20 {
        run.supersede(&format!("unknown {key}"));
    }
    run.settle();
    assert!(run.counts().load_given_up > 0);
    (0..KEYS).for_each(|key| {
        run.supersede(&name(key));
    });
    run.settle();
    let again = run.kill();
    for key in 0..KEYS {
        assert_eq!(again.text(&name(key)), None, "key {key} is back");
    }
}

/// A segment was prepared for reuse, so its slot has an open header. The next segment has a damaged slot and
/// cannot be read. New objects are then written after a segment whose contents are unknown.
#[test]
fn what_is_stored_after_a_segment_was_lost_that_follows_one_with_an_open_header_is_kept() {
    let mut rig = Rig::new(8, MEMORY, 8);
    let opened = |rig: &Rig| {
        rig.engine
            .fleet()
            .store(StoreId(0))
            .unwrap()
            .space
            .incarnation(0)
            == 9
    };
    for n in 0..2000 {
        if opened(&rig) {
            break;
        }
        rig.put(&format!("filler {n}"), &[b'f'; 1500]);
        rig.settle();
    }
    assert!(opened(&rig), "nothing is written to it yet");
    let geometry = geometry(&rig.engine);
    let disk = rig.disk.kill();
    Damage::SlotAndAll.strike(&geometry, 1, &disk);
    let mut run = Rig::open(disk.clone(), MEMORY, 4, options());
    run.settle();
    run.put("after", b"body");
    run.settle();
    disk.set_faults(FaultPlan::none());
    assert_eq!(run.kill().text("after").as_deref(), Some("body"));
}
