//! Keys that the index cannot distinguish: neither key brings an old version of the other key back.

use foxy_disk::{Keep, MemDisk};

use super::rig::{Rig, hash, options};
use super::rules::{SMALL_MEMORY, forget_ram, put_dropped, sync};
use crate::*;

/// Stores an object under a key whose hash differs from the hash of the key `twin` in the bits `flip`.
fn put_colliding(rig: &Rig, key: &str, flip: u128, body: &[u8]) -> Put {
    let mut new = super::rig::object(key, body);
    new.hash = foxy_base::KeyHash(hash("twin").0 ^ flip);
    rig.engine.put(new)
}

/// Returns a bit of the hash of the key `twin` that the index does not keep.
fn colliding_flip() -> u128 {
    let entry = |units| {
        let class = foxy_index::SizeClass::for_bytes(512).unwrap();
        foxy_index::Entry::new(foxy_index::Address::from_sectors(units).unwrap(), class)
    };
    let index = foxy_index::Index::new();
    assert!(index.insert(hash("twin"), entry(1)).is_stored());
    let flip = (0..128).map(|bit| 1u128 << bit).find(|flip| {
        let colliding = foxy_base::KeyHash(hash("twin").0 ^ flip);
        !index.lookup(colliding).is_empty()
    });
    flip.expect("a bit that the index does not keep")
}

/// Stores two versions of the key `twin`, and then its colliding key `other twin`. The removal of the first
/// version is lost. Each of the three records is in its own sealed segment; the last segment is open.
fn colliding_keys_in_segments(rig: &mut Rig, flip: u128) -> MemDisk {
    rig.settle();
    rig.put("twin", b"one");
    rig.fill("first", 40);
    forget_ram(rig, "twin");
    // The index entry is removed, but the removal is not logged, as if a power cut had lost the removal.
    rig.engine.core().tables.index().remove(hash("twin"));
    rig.put("twin", b"two");
    rig.fill("second", 40);
    forget_ram(rig, "twin");
    // The entry of the second version is removed too. Otherwise `other twin` would push this entry out of
    // the index, and the record of the second version would be dead.
    rig.engine.core().tables.index().remove(hash("twin"));
    put_colliding(rig, "other twin", flip, b"other");
    rig.fill("third", 40);
    rig.disk.kill()
}

/// When a record is loaded, a colliding key already has the record's place in the index. The index does not
/// know the record from then on, so the record is dead, and older records of its key count as removed.
#[test]
fn a_record_without_a_place_in_the_index_is_dead() {
    let flip = colliding_flip();
    let mut rig = Rig::new(16, SMALL_MEMORY, 31);
    let disk = colliding_keys_in_segments(&mut rig, flip);
    let mut rig = Rig::open(disk, SMALL_MEMORY, 32, options());
    rig.settle();
    assert_eq!(rig.text("twin"), None, "the colliding key has the place");
    // The key is superseded while the index does not know it; then the colliding key is removed as well.
    rig.supersede("twin");
    put_dropped(&rig, "other twin");
    let again = rig.kill();
    assert_eq!(again.text("twin"), None);
}

/// Adds entries that belong to no key, until the index takes no more.
fn fill_index(rig: &Rig) {
    let class = foxy_index::SizeClass::for_bytes(512).unwrap();
    let mut refused = 0;
    for n in 0..10_000_000u64 {
        let nowhere = foxy_index::Address::from_sectors(1 << 35 | n).unwrap();
        let entry = foxy_index::Entry::new(nowhere, class);
        let taken = rig
            .engine
            .core()
            .tables
            .index()
            .insert(hash(&format!("filler {n}")), entry);
        refused = if taken.is_stored() { 0 } else { refused + 1 };
        if refused == 1000 {
            return;
        }
    }
    panic!("the index has no limit");
}

/// A record that finds no room in the index when its cluster is written becomes dead as well.
#[test]
fn a_record_that_the_full_index_does_not_take_is_dead() {
    let mut rig = Rig::new(16, 64 << 10, 33);
    fill_index(&rig);
    rig.put("k", b"not in the index");
    rig.settle();
    assert_eq!(rig.counts().index_displaced, 1, "the index is full");
    forget_ram(&rig, "k");
    // The key is superseded while the index does not know it. Then a start whose index has room loads
    // the store.
    rig.supersede("k");
    let mut again = Rig::open(rig.disk.kill(), SMALL_MEMORY, 34, options());
    again.settle();
    assert_eq!(again.text("k"), None);
    assert_eq!(again.counts().load_skipped, 1, "the record was there");
}

#[test]
fn nothing_older_takes_the_place_of_a_colliding_key_that_goes_while_loading() {
    let flip = colliding_flip();
    let mut rig = Rig::new(16, SMALL_MEMORY, 33);
    let disk = colliding_keys_in_segments(&mut rig, flip);
    let slow = StoreOptions {
        load_steps: 1,
        ..options()
    };
    let mut found = false;
    // In each round the colliding key is removed after a different number of turns of the writer.
    for turns in 0..40 {
        let mut rig = Rig::open(disk.kill(), SMALL_MEMORY, 34, slow.clone());
        rig.turns(turns);
        let colliding = foxy_base::KeyHash(hash("twin").0 ^ flip);
        // Only the colliding key's entry is removed, as if its record were damaged.
        for entry in rig.engine.core().tables.index().lookup(colliding) {
            rig.engine
                .core()
                .tables
                .index()
                .remove_if(colliding, entry.address);
            found = true;
        }
        rig.settle();
        let text = rig.text("twin");
        assert_ne!(text.as_deref(), Some("one"), "after {turns} turns");
    }
    assert!(found);
}

#[test]
fn a_colliding_key_pushed_out_of_the_index_does_not_come_back_out_of_date() {
    let mut rig = Rig::new(16, SMALL_MEMORY, 18);
    let flip = colliding_flip();
    // Both objects wait for the writer at the same time. When the second object is committed, the entry of
    // the first object is already in the index. The index cannot distinguish the two keys, so the second
    // entry replaces the first entry.
    rig.settle();
    put_colliding(&rig, "twin", 0, b"old");
    put_colliding(&rig, "other twin", flip, b"other");
    rig.settle();
    assert_eq!(rig.counts().index_displaced, 1);
    forget_ram(&rig, "twin");
    // The first object is not in the index any more, so the index does not know it when it is replaced.
    put_dropped(&rig, "twin");
    forget_ram(&rig, "twin");
    sync(&mut rig);
    rig.settle();
    assert_eq!(rig.crash(Keep::Nothing).text("twin"), None);
}

/// Keys that the index cannot distinguish without a secret are distinct with a secret.
#[test]
fn the_secret_of_the_engine_is_the_index_s() {
    let flip = colliding_flip();
    let clock = std::sync::Arc::new(foxy_base::ManualClock::new(foxy_base::WallTime::from_secs(
        1,
    )));
    for (index_secret, apart) in [(0, false), (77, true)] {
        let config = EngineConfig {
            index_secret,
            ..EngineConfig::new(SMALL_MEMORY, 1)
        };
        let engine = Engine::new(config, clock.clone());
        let class = foxy_index::SizeClass::for_bytes(512).unwrap();
        let place = foxy_index::Address::from_sectors(1).unwrap();
        let entry = foxy_index::Entry::new(place, class);
        let _ = engine.core().tables.index().insert(hash("twin"), entry);
        let colliding = foxy_base::KeyHash(hash("twin").0 ^ flip);
        assert_eq!(
            engine.core().tables.index().lookup(colliding).is_empty(),
            apart
        );
    }
}
