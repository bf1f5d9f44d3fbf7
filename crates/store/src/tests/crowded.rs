//! Tests of starts with less memory than the index needs for all objects.

use super::rig::{Rig, options};
use foxy_disk::MemDisk;

const KEYS: usize = 60_000;
/// Enough memory for all objects.
const LARGE: u64 = 64 << 20;
/// Enough memory for the index entries of about half of the objects.
const SMALL: u64 = 1 << 20;

fn name(n: usize) -> String {
    format!("k{n}")
}

/// Calls `each` for every key in turn. After each group of `together` keys, the writer runs until it has no
/// work left.
fn with_all(rig: &mut Rig, together: usize, each: impl Fn(&Rig, &str)) {
    for n in 0..KEYS {
        each(rig, &name(n));
        if n % together == together - 1 {
            rig.settle();
        }
    }
    rig.settle();
}

fn put(rig: &Rig, key: &str) {
    rig.put(key, b"x");
}

fn supersede(rig: &Rig, key: &str) {
    rig.supersede(key);
}

/// Returns a disk with all objects; the object with the highest number is the newest.
fn written() -> MemDisk {
    let mut rig = Rig::new(700, LARGE, 41);
    with_all(&mut rig, 1000, put);
    rig.disk.kill()
}

fn start(disk: MemDisk, memory: u64) -> Rig {
    let mut rig = Rig::open(disk, memory, 42, options());
    rig.settle();
    rig
}

/// The number of objects that lookups find.
fn found(rig: &Rig) -> usize {
    (0..KEYS).filter(|n| rig.get(&name(*n)).is_some()).count()
}

#[test]
fn what_a_full_index_has_no_room_for_is_dead_by_one_floor() {
    let rig = start(written(), SMALL);
    let counts = rig.counts();
    assert!(counts.load_unplaced > 0, "the index has no room for all");
    assert_eq!(counts.load_given_up, 0, "nothing is damaged");
    let loaded = counts.loaded as usize;
    let left = KEYS - loaded;
    assert!(counts.removals_logged as usize * 2 < left, "{counts:?}");
    assert_eq!(found(&rig), loaded);
    assert!(rig.get(&name(KEYS - 1)).is_some() && rig.get(&name(0)).is_none());
    // With enough room, the next start finds most of the objects that this start loaded. Older objects stay
    // dead.
    let again = start(rig.disk.kill(), LARGE);
    assert!(found(&again) > loaded / 4 * 3, "{loaded}");
    assert!(again.get(&name(0)).is_none());
}

/// The index does not know the objects for which it found no room, so their removal is not logged.
#[test]
fn what_a_full_index_had_no_room_for_does_not_come_back_out_of_date() {
    let mut rig = start(written(), SMALL);
    with_all(&mut rig, 1000, supersede);
    assert_eq!(found(&start(rig.disk.kill(), LARGE)), 0);
}

/// The index of a running engine is full, so some new objects displace older objects. A displaced object does
/// not return.
#[test]
fn new_objects_find_room_in_a_full_index_and_what_gave_way_is_dead() {
    let mut rig = Rig::new(700, SMALL, 43);
    with_all(&mut rig, 100, put);
    let displaced = rig.counts().index_displaced as usize;
    assert!(displaced > KEYS / 8, "the index is full: {displaced}");
    rig.engine.context().memory.clear();
    let newest = (KEYS - 4000..KEYS).filter(|n| rig.get(&name(*n)).is_some());
    let newest = newest.count();
    assert!((150..500).contains(&newest), "one in sixteen: {newest}");
    let there = found(&rig);
    assert_eq!(there + displaced, KEYS);
    let again = start(rig.disk.kill(), LARGE);
    assert_eq!(found(&again), there, "and no others");
    // The index does not know the displaced objects, so their removals are not logged.
    with_all(&mut rig, 1000, supersede);
    assert_eq!(found(&start(rig.disk.kill(), LARGE)), 0);
}
