//! Inspecting a store changes nothing, and reports what a restart would load.

use std::sync::Arc;
use std::time::Duration;

use foxy_disk::{Disk, MemDisk};

use super::purges::tagged;
use super::rig::{Rig, options};
use crate::*;

const MEMORY: u64 = 2 << 20;

fn image(disk: &MemDisk) -> Vec<u8> {
    let mut bytes = vec![0; disk.len() as usize];
    disk.read_at(0, &mut bytes).unwrap();
    bytes
}

fn verified(rig: &Rig, disk: &MemDisk) -> Verification {
    let mut steps = 0;
    let found = verify(Arc::new(disk.clone()), rig.clock.clone(), |done, all| {
        assert!(done <= all);
        steps += 1;
    });
    assert!(steps > 1);
    found.unwrap()
}

/// Makes a store with 80 objects: one of them is large, some are replaced, and one is purged but not
/// swept.
fn sample() -> Rig {
    let mut rig = Rig::new(16, MEMORY, 1);
    for n in (0..79).chain(20..30) {
        rig.fetch(&format!("forward GET http://a.test/{n}"), "t");
        rig.turns(2);
    }
    rig.fetch("forward GET http://b.test/", "u");
    let large = tagged(
        "forward GET http://c.test/",
        &[7; 40_000],
        "",
        rig.engine.purges().purge_sequence(),
    );
    rig.engine.put(large);
    rig.settle();
    rig.purge(PurgeKind::Tag, "u", false);
    rig
}

#[test]
fn nothing_is_written_and_everything_is_found() {
    let mut rig = sample();
    for drained in [false, true] {
        if drained {
            assert!(rig.writer.drain(Duration::from_secs(5)));
        }
        let disk = rig.disk.kill();
        let before = image(&disk);
        let found = verified(&rig, &disk);
        assert_eq!((found.objects, found.purged), (80, 1));
        assert_eq!(found.object_bytes, 79 * 700 + 40_000);
        assert!(found.is_whole() && found.fragments >= 2, "{found:?}");
        let tables = inspect(&disk).unwrap();
        assert_eq!(
            tables.segments.len() as u32,
            tables.superblock.geometry.segments
        );
        assert!(
            tables
                .journal
                .iter()
                .flatten()
                .any(|half| half.notes.len() == 1)
        );
        if drained {
            let all = tables.segments.iter();
            let objects: u64 = all.map(|s| s.entries[0] + s.entries[1]).sum();
            assert!(objects >= 91, "{objects}");
        }
        assert_eq!(image(&disk), before, "it was only read");
        // This is what a restart loads.
        let mut again = Rig::open(disk, MEMORY, 2, options());
        again.settle();
        let there = |n: u64| {
            again
                .get(&format!("forward GET http://a.test/{n}"))
                .is_some()
        };
        assert!((0..79).all(there));
    }
}

#[test]
fn damages_are_counted() {
    let rig = sample();
    let disk = rig.disk.kill();
    let segments = rig.segments_at();
    // The flips are in the body of a record, and in a superblock.
    disk.corrupt(segments + 9000, 1, |b| b[0] ^= 1);
    disk.corrupt(100, 1, |b| b[0] ^= 1);
    let found = verified(&rig, &disk);
    assert!(!found.is_whole());
    assert_eq!(found.damaged + found.damaged_dead, 1, "{found:?}");
    let tables = inspect(&disk).unwrap();
    assert_eq!(tables.superblocks.iter().filter(|s| s.is_ok()).count(), 1);
}

#[test]
fn what_is_no_store_is_said_to_be_none() {
    let clock = Rig::new(16, MEMORY, 1).clock;
    let empty = Arc::new(MemDisk::new(1 << 20, 512, 1));
    let before = image(&empty);
    let refused = verify(empty.clone(), clock, |_, _| {});
    assert!(matches!(refused, Err(OfflineError::NoStore { .. })));
    assert_eq!(image(&empty), before);
}
