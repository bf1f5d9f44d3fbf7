//! Tables that are valid but do not belong to their place: misdirected writes, earlier incarnations, former
//! stores.

use foxy_disk::{Disk, Fault, FaultPlan, FaultRule, MemDisk, OpClass};
use foxy_format::{
    BLOCK, ChainLink, ClusterHeader, Entry, EntryKind, LogPosition, SLOT_HEADER_BYTES,
    SUPERBLOCK_BYTES, SegmentState, SlotHeader, StoreUuid, Superblock, UNIT, encode_slot,
};

use super::rig::{Rig, SEGMENT};
use crate::StoreId;
use crate::recovery::{Found, read_slot, scan_segment};
use crate::shared::{OpenSegment, StoreShared, summary};

const MEMORY: u64 = 1 << 20;

/// Makes a store with some clusters in its first segment.
fn written() -> (Rig, std::sync::Arc<StoreShared>) {
    let mut rig = Rig::new(16, MEMORY, 1);
    rig.settle();
    for n in 0..4 {
        rig.put(&format!("{n}"), b"body");
        rig.settle();
    }
    let store = rig.engine.fleet().store(StoreId(0)).unwrap();
    (rig, store)
}

fn clusters(store: &StoreShared, index: u32, incarnation: Option<u64>) -> usize {
    let scan = scan_segment(store, index, incarnation).unwrap();
    scan.map_or(0, |scan| scan.clusters.len())
}

/// Writes an empty cluster at block `block` of segment 0; `change` changes its header.
fn write(disk: &MemDisk, store: &StoreShared, block: u32, change: impl Fn(&mut ClusterHeader)) {
    let per_block = (BLOCK / UNIT) as u32;
    let mut header = ClusterHeader {
        uuid: store.space.uuid(),
        sequence: store.space.incarnation(0),
        segment: 0,
        offset_units: block * per_block,
        len_units: per_block,
        entries: 0,
        link: ChainLink::default(),
    };
    change(&mut header);
    let mut bytes = header.encode(&[]);
    bytes.resize(BLOCK as usize, 0);
    let at = store.space.geometry().segment_at(0) + u64::from(block) * BLOCK;
    disk.write_at(at, &bytes).unwrap();
}

#[test]
fn a_cluster_is_valid_in_its_own_place_incarnation_and_store() {
    let (rig, store) = written();
    let incarnation = Some(store.space.incarnation(0));
    let before = clusters(&store, 0, incarnation);
    assert!(before >= 4);
    let last = SEGMENT / BLOCK as u32 - 1;
    write(&rig.disk, &store, last, |_| {});
    assert_eq!(
        clusters(&store, 0, incarnation),
        before + 1,
        "as it should be"
    );
    let segments = u64::from(store.space.geometry().segments);
    let wrong: [&dyn Fn(&mut ClusterHeader); 4] = [
        &|header| header.uuid = StoreUuid(*b"a former store!!"),
        &|header| header.segment = 3,
        &|header| header.offset_units -= 256,
        &|header| header.sequence += segments,
    ];
    for (n, change) in wrong.into_iter().enumerate() {
        write(&rig.disk, &store, last, change);
        assert_eq!(clusters(&store, 0, incarnation), before, "{n}");
    }
}

/// The cluster begins inside the range of a longer cluster of an earlier incarnation.
#[test]
fn a_cluster_within_the_length_of_one_of_an_earlier_incarnation_is_found() {
    let (rig, store) = written();
    let incarnation = store.space.incarnation(0);
    let before = clusters(&store, 0, Some(incarnation));
    let last = SEGMENT / BLOCK as u32 - 1;
    let segments = u64::from(store.space.geometry().segments);
    write(&rig.disk, &store, last - 1, |header| {
        header.len_units *= 2;
        header.sequence += segments;
    });
    write(&rig.disk, &store, last, |_| {});
    assert_eq!(clusters(&store, 0, Some(incarnation)), before + 1);
}

#[test]
fn a_slot_of_another_segment_or_store_says_nothing() {
    let (rig, store) = written();
    let slot = rig
        .disk
        .peek(store.space.geometry().slot_at(0), SLOT_HEADER_BYTES);
    assert!(matches!(read_slot(&store, 0), Found::Slot(_)));
    assert_eq!(read_slot(&store, 9), Found::Nothing);
    let header = SlotHeader::decode(&slot).unwrap();
    let uuid = StoreUuid(*b"a former store!!");
    let mut foreign = encode_slot(&SlotHeader { uuid, ..header }, &[]);
    foreign.resize(BLOCK as usize, 0);
    rig.disk
        .write_at(store.space.geometry().slot_at(0), &foreign)
        .unwrap();
    assert_eq!(read_slot(&store, 0), Found::Nothing);
    let mut block = slot;
    block.resize(BLOCK as usize, 0);
    rig.disk
        .write_at(store.space.geometry().slot_at(9), &block)
        .unwrap();
    assert_eq!(read_slot(&store, 9), Found::Damaged);
}

#[test]
fn a_segment_that_is_read_at_the_third_attempt_is_not_lost() {
    let (rig, store) = written();
    let begin = store.space.geometry().segment_at(0);
    let disk = rig.disk.kill();
    let rule = FaultRule::new(OpClass::Read, Fault::EIO).within(begin..begin + 64);
    disk.set_faults(FaultPlan::none().and(rule.times(2)));
    let mut again = Rig::open(disk, MEMORY, 2, super::rig::options());
    again.settle();
    assert_eq!(again.text("0").as_deref(), Some("body"));
    assert_eq!(again.counts().load_given_up, 0);
}

/// Both superblocks contain the floor, so that damage of one superblock does not undo the floor.
#[test]
fn a_floor_after_damage_is_in_both_superblocks() {
    let (rig, store) = written();
    let disk = rig.disk.kill();
    disk.corrupt(store.space.geometry().segment_at(0) + 13, 1, |b| b[0] ^= 1);
    let again = Rig::open(disk.clone(), MEMORY, 3, super::rig::options());
    assert_eq!(again.counts().damaged, 1);
    let bytes = disk.peek(0, 2 * SUPERBLOCK_BYTES);
    for superblock in Superblock::decode_both(&bytes) {
        assert!(superblock.unwrap().floor > LogPosition(0));
    }
}

fn is_sealed(store: &StoreShared, index: u32) -> bool {
    matches!(read_slot(store, index), Found::Slot(h) if h.state == SegmentState::Sealed)
}

#[test]
fn no_summary_vouches_for_clusters_whose_flush_failed() {
    let (mut rig, store) = written();
    let broken = FaultRule::new(OpClass::Flush, Fault::EIO);
    rig.disk.set_faults(FaultPlan::none().and(broken));
    for n in 0..80 {
        rig.put(&format!("filler {n}"), &[b'f'; 2000]);
        rig.turns(3);
    }
    rig.clock.advance(std::time::Duration::from_secs(3));
    rig.turns(20);
    assert!(rig.counts().write_errors > 0);
    assert!((0..4).all(|index| !is_sealed(&store, index)));
}

#[test]
fn no_summary_is_written_while_a_cluster_is_under_way() {
    let (mut rig, store) = written();
    let begin = store.space.geometry().segment_at(0);
    rig.disk.set_step(true);
    let mut first = None;
    for n in 0..200 {
        rig.put(&format!("filler {n}"), &[b'f'; 2000]);
        rig.clock.advance(std::time::Duration::from_millis(100));
        rig.turns(2);
        for op in rig.disk.held() {
            if op.class == OpClass::Write && op.at >= begin {
                first.get_or_insert(op.id);
            }
            if first != Some(op.id) {
                rig.disk.release(op.id);
            }
        }
    }
    assert!(first.is_some() && rig.counts().clusters > 8);
    assert!(!is_sealed(&store, 0));
}

#[test]
fn a_summary_without_room_beside_the_clusters_is_left_out() {
    let (_rig, store) = written();
    let mut full = OpenSegment::empty(0, store.space.incarnation(0));
    full.used_units = SEGMENT / UNIT as u32;
    let entry = Entry {
        hash: foxy_base::KeyHash(1),
        offset_units: 256,
        len_units: 1,
        kind: EntryKind::Object,
    };
    full.entries = vec![entry; 1000];
    let summary = summary(store.space.geometry(), store.space.uuid(), &full, false);
    let header = SlotHeader::decode(&summary.slot).unwrap();
    assert_eq!(header.state, SegmentState::SealedOverflow);
    assert!(summary.spill.is_none());
}
