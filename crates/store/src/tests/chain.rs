//! The chain of clusters, in which each cluster contains its number and the checksum of its predecessor. The
//! tests cover gaps that are no damage, gaps that are damage, and the confirmation of removals.

#[expect(clippy::duplicate_mod, reason = "the golden test has its own")]
#[path = "../../../../golden/read.rs"]
mod frozen;

use std::time::Duration;

use foxy_disk::{Disk, Fault, FaultPlan, FaultRule, MemDisk, OpClass};
use foxy_format::{BLOCK, ClusterHeader, EXTENSION_CHAIN, SUPERBLOCK_BYTES, Superblock};

use super::rig::{Rig, geometry, options};
use crate::*;

const MEMORY: u64 = 1 << 20;

/// Advances the time in small steps, as a busy thread would see it.
fn pass(rig: &mut Rig, millis: u64) {
    for _ in 0..millis / 10 {
        rig.clock.advance(Duration::from_millis(10));
        rig.turns(1);
    }
}

fn settled(seed: u64) -> Rig {
    let mut rig = Rig::new(16, MEMORY, seed);
    rig.settle();
    rig.put("k", b"old");
    rig.settle();
    rig
}

/// Returns the headers of the clusters in the first segment, in order of place.
fn headers(rig: &Rig) -> Vec<(u64, ClusterHeader)> {
    let geometry = geometry(&rig.engine);
    let begin = geometry.segment_at(0);
    let blocks = u64::from(geometry.segment_bytes) / BLOCK;
    let places = (0..blocks).map(|n| begin + n * BLOCK);
    let read = places.map(|at| (at, rig.disk.peek(at, geometry.cluster_bytes as usize)));
    let decoded = read.filter_map(|(at, bytes)| {
        let decoded = ClusterHeader::decode(&bytes, geometry.segment_bytes);
        Some((at, decoded.ok()?.0))
    });
    decoded.collect()
}

#[test]
fn clusters_are_numbered_without_gaps_and_name_the_one_before() {
    let mut rig = settled(1);
    for n in 0..5 {
        rig.put(&format!("{n}"), b"body");
        rig.settle();
    }
    let mut rig = rig.kill();
    rig.put("after a kill", b"body");
    rig.settle();
    assert!(rig.writer.drain(Duration::from_secs(1)));
    let mut rig = rig.kill();
    rig.put("after a drain", b"body");
    rig.settle();
    let headers = headers(&rig);
    assert!(headers.len() > 6);
    for ((at, before), (_, header)) in headers.iter().zip(&headers[1..]) {
        assert_eq!(header.link.number, before.link.number + 1);
        let sum = foxy_format::chain_sum(&rig.disk.peek(*at, 64)).unwrap();
        let known = [sum, foxy_format::CHAIN_UNKNOWN].contains(&header.link.before);
        assert!(known, "{header:?}");
        assert!(header.link.flushed < header.link.number);
    }
    assert_eq!(rig.kill().counts().damaged, 0);
}

/// A cluster could not be written. Its contents are written at another place, and a later cluster names
/// the failed cluster as given up.
#[test]
fn a_cluster_that_could_not_be_written_is_no_damage() {
    let mut rig = settled(2);
    let end = headers(&rig).last().unwrap().0 + BLOCK;
    let broken = FaultRule::new(OpClass::Write, Fault::EIO).within(end..end + BLOCK);
    rig.disk.set_faults(FaultPlan::none().and(broken));
    rig.supersede("k");
    rig.put("lost", b"body");
    pass(&mut rig, 1500);
    assert!(rig.counts().write_errors > 0);
    rig.disk.set_faults(FaultPlan::none());
    for n in 0..4 {
        rig.put(&format!("later {n}"), b"body");
        rig.settle();
    }
    let numbers: Vec<_> = headers(&rig).iter().map(|(_, h)| h.link.number).collect();
    assert!(
        numbers.windows(2).any(|pair| pair[1] != pair[0] + 1),
        "{numbers:?}"
    );
    let mut again = rig.kill();
    for _ in 0..3 {
        assert_eq!(again.counts().damaged, 0);
        assert_eq!(again.text("k"), None);
        for n in 0..4 {
            assert!(again.text(&format!("later {n}")).is_some());
        }
        again.put("one more", b"body");
        again.settle();
        again = again.kill();
    }
}

/// A cluster was flushed, but a start does not find it. Then all records before the cluster are dead, and the
/// records after it are valid. The next start finds no new damage.
#[test]
fn a_damaged_cluster_makes_what_is_older_dead_and_is_counted_once() {
    let mut rig = settled(3);
    for key in ["a", "b", "c"] {
        rig.put(key, b"body");
        rig.settle();
    }
    let at = headers(&rig)[2].0;
    let disk = rig.disk.kill();
    disk.corrupt(at + 13, 1, |b| b[0] ^= 1);
    let mut again = Rig::open(disk, MEMORY, 4, options());
    again.settle();
    let found = |rig: &Rig| ["k", "a", "b", "c"].map(|key| rig.text(key).is_some());
    assert_eq!(found(&again), [false, false, false, true]);
    assert_eq!(again.counts().damaged, 1);
    again.put("d", b"body");
    again.settle();
    let last = again.kill();
    assert_eq!(found(&last), [false, false, false, true]);
    assert_eq!(last.text("d").as_deref(), Some("body"));
    assert_eq!(last.counts().damaged, 0);
}

/// When the log is at rest, a removal causes one more cluster, which confirms the removal. Until then the
/// removal is in the removal log.
#[test]
fn a_removal_is_active_until_a_durable_cluster_confirms_it() {
    let mut rig = settled(5);
    let replayed = |rig: &Rig| rig.kill().counts().removals_recalled;
    rig.supersede("k");
    let mut seen = Vec::new();
    for _ in 0..600 {
        pass(&mut rig, 10);
        let clusters = headers(&rig).len();
        let step = (clusters, replayed(&rig));
        if seen.last() != Some(&step) {
            seen.push(step);
        }
    }
    // The tombstone comes first, then the empty cluster, then the flush that makes the empty cluster
    // durable.
    let begin = seen[0].0;
    let expected = [(begin, 1), (begin + 1, 1), (begin + 2, 1), (begin + 2, 0)];
    assert_eq!(seen, expected);
    // Before the tombstone is confirmed, damage of its cluster undoes no removal.
    let mut rig = settled(6);
    rig.supersede("k");
    pass(&mut rig, 100);
    let (at, header) = *headers(&rig).last().unwrap();
    assert!(header.entries > 0);
    let disk = rig.disk.kill();
    disk.corrupt(at, 1, |b| b[0] ^= 1);
    let mut again = Rig::open(disk, MEMORY, 4, options());
    again.settle();
    assert_eq!(again.text("k"), None);
}

/// While objects are written, their clusters confirm removals: no additional cluster is written.
#[test]
fn a_busy_log_writes_no_clusters_to_confirm_removals() {
    let mut rig = settled(7);
    let mut puts = 0;
    for n in 0..600 {
        rig.put(&format!("{}", n % 7), &[b'x'; 300]);
        puts += 1;
        pass(&mut rig, 50);
    }
    let counts = rig.counts();
    assert!(puts > 500 && counts.tombstones > 100, "{counts:?}");
    assert!(
        counts.clusters - counts.tombstone_clusters > 10,
        "{counts:?}"
    );
    let empty = headers(&rig).iter().filter(|(_, h)| h.entries == 0).count();
    assert_eq!(empty, 0);
    let log = rig.kill().counts().removals_recalled;
    assert!(
        log < 120,
        "{log} removals are active though most are confirmed"
    );
}

/// The slot of a segment contained the open header of its next incarnation, and is damaged now. Nothing on
/// the disk shows the open header any more, and supersessions since then were not logged.
#[test]
fn a_damaged_slot_does_not_bring_an_earlier_incarnation_back() {
    let mut rig = Rig::new(8, MEMORY, 8);
    rig.put("k", b"old");
    rig.settle();
    let mut opened = None;
    for n in 0..2000 {
        rig.put(&format!("filler {n}"), &[b'f'; 1500]);
        rig.engine.context().memory.clear();
        rig.settle();
        rig.engine.context().memory.clear();
        if rig.plan("k").is_none() {
            opened = Some(n);
            break;
        }
    }
    assert!(opened.is_some());
    let incarnation = rig
        .engine
        .fleet()
        .store(StoreId(0))
        .unwrap()
        .space
        .incarnation(0);
    assert_eq!(incarnation, 9, "opened, and nothing written to it");
    // The index does not know the record, so this removal is not logged.
    rig.supersede("k");
    rig.settle();
    let geometry = geometry(&rig.engine);
    for index in 0..geometry.segments {
        let disk = rig.disk.kill();
        disk.corrupt(geometry.slot_at(index) + 9, 1, |b| b[0] ^= 1);
        let mut again = Rig::open(disk, MEMORY, 9, options());
        // Turns are run only until the store is loaded. In later turns, reuse would take the segment again.
        while again.engine.stats().stores[0].loading {
            again.turns(1);
        }
        assert_eq!(again.text("k"), None, "slot {index}");
    }
}

/// The store was written by a version without the extension `chain`. Both superblocks name the
/// extension before the first cluster with a link is written.
#[test]
fn a_store_without_a_chain_begins_one_with_its_contents_kept() {
    let path = frozen::path(env!("CARGO_MANIFEST_DIR"), "v1");
    let bytes = frozen::unhex(&std::fs::read_to_string(path).unwrap());
    let disk = MemDisk::new(bytes.len() as u64, 512, 1);
    disk.write_at(0, &bytes).unwrap();
    let mut rig = Rig::open(disk.kill(), 2 << 20, 9, options());
    for at in [0, SUPERBLOCK_BYTES as u64] {
        let block = Superblock::decode(&rig.disk.peek(at, SUPERBLOCK_BYTES)).unwrap();
        assert_eq!(block.extensions, EXTENSION_CHAIN);
    }
    rig.settle();
    let there = |rig: &Rig| {
        (0..400)
            .filter(|n| rig.text(&format!("tiny {n}")).is_some())
            .count()
    };
    assert_eq!(there(&rig), 400);
    for n in 0..3 {
        rig.put(&format!("new {n}"), b"linked");
        rig.settle();
    }
    let again = rig.kill();
    assert_eq!(there(&again), 400);
    assert_eq!(again.text("new 2").as_deref(), Some("linked"));
    assert_eq!(again.counts().damaged, 0);
}
