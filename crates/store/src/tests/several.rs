//! Several stores under one engine; one of them dies, is slow, or has another size.

use std::time::Duration;

use foxy_base::Rng;
use foxy_disk::FaultPlan;

use super::rig::hash;
use super::several_rig::{KEYS, Several, dies, disk};
use crate::*;

#[test]
fn when_one_store_dies_the_other_goes_on_and_the_oracle_holds() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let mut several = Several::open(vec![disk(16, seed), disk(24, seed + 50)]);
        several.work(&mut rng, 600);
        several.run(40);
        let victim = (seed % 2) as usize;
        dies(&several.disks[victim], 5);
        several.work(&mut rng, 1_500);
        several.run(60);
        assert_ne!(several.store(victim).health, Health::Good, "seed {seed}");
        let living = 1 - victim;
        assert_eq!(several.store(living).health, Health::Good);
        let records = several.store(living).counts.records;
        for key in 0..KEYS {
            assert_eq!(several.put(key), Admission::Disk, "seed {seed}");
        }
        several.run(60);
        assert!(several.store(living).counts.records >= records + KEYS);
        several.forget_memory();
        assert_eq!(several.hits(), KEYS, "all of them are on the living store");
        // From now on, only the living store knows of removals.
        (0..KEYS / 2).for_each(|key| several.supersede(key));
        several.run(60);
        // The dead store is there again at the next start with its former contents; the order of the
        // disks varies.
        let mut disks = several.killed_disks();
        disks.iter().for_each(|d| d.set_faults(FaultPlan::none()));
        for _ in 0..2 {
            // Until a read finds that a record is dead, the record's entry may occupy the place of a valid
            // entry in the index.
            let hits = several.kill(disks.clone()).hits();
            assert!((KEYS / 8..=KEYS / 2).contains(&hits), "seed {seed}: {hits}");
            disks.reverse();
        }
    }
}

#[test]
fn stores_of_different_sizes_take_objects_by_their_sizes() {
    let mut several = Several::open(vec![disk(64, 1), disk(16, 2)]);
    for key in 0..600 {
        several.put(key);
        if key % 8 == 0 {
            several.run(2);
        }
    }
    several.run(60);
    let taken = |n: usize| several.store(n).counts.records as f64;
    let share = taken(1) / (taken(0) + taken(1));
    // The second store has 16 of 80 segments; the weight of a store is its capacity in whole MiB.
    assert!((0.1..0.35).contains(&share), "{share}");
}

/// While more bytes arrive than the stores can write, each store has room in proportion to its speed.
#[test]
fn new_objects_go_to_the_store_that_has_room_for_its_speed() {
    let several = Several::open(vec![disk(8, 1), disk(8, 2)]);
    let engine = &several.engine;
    let set = |n: usize, speed: u64, waits: u64| {
        let stores = engine.fleet().stores();
        stores[n].load.set(waits, speed);
        stores[n].id
    };
    let routed = || {
        let mut to: Vec<_> = (0..200)
            .filter_map(|key| engine.mover().routes().route(key))
            .map(|s| s.id)
            .collect();
        to.sort_unstable_by_key(|id| id.0);
        to.dedup();
        to
    };
    // Half of the memory for pending objects is 256 KiB, and a tenth of that half belongs to the slow
    // store.
    let (slow, fast) = (set(0, 1 << 20, 0), set(1, 9 << 20, 0));
    assert_eq!(routed(), [slow, fast]);
    set(0, 1 << 20, 30_000);
    assert_eq!(routed(), [fast]);
    set(1, 9 << 20, 250_000);
    assert_eq!(routed(), [slow, fast], "neither has room by its speed");
    // The speed of the fast store is not known: each store must leave a quarter of that memory to the other
    // store.
    set(1, 0, 250_000);
    assert_eq!(routed(), [slow, fast]);
    set(1, 0, 400_000);
    assert_eq!(routed(), [slow]);
    for n in 0..2 {
        set(n, 0, 0);
    }
}

#[test]
fn a_slow_store_is_left_alone_for_a_while_and_keeps_its_objects() {
    let mut several = Several::filled();
    several.forget_memory();
    let plan = (0..KEYS).find_map(|key| {
        let name = Several::name(key);
        match several.engine.reads().lookup(hash(&name), name.as_bytes()) {
            Lookup::Disk(plan) if plan.store == StoreId(0) => Some(plan),
            _ => None,
        }
    });
    let plan = plan.unwrap();
    several.engine.reads().give_up_read(&plan);
    assert_eq!(several.store(0).health, Health::Slow);
    let hits = several.hits();
    assert!(hits > 0 && hits < KEYS, "the other store's: {hits}");
    let records = several.store(0).counts.records;
    for key in KEYS..KEYS + 30 {
        assert_eq!(several.put(key), Admission::Disk);
    }
    several.run(60);
    assert_eq!(several.store(0).counts.records, records);
    assert_eq!(
        several.store(0).health,
        Health::Slow,
        "the read is still out"
    );
    several.engine.reads().late_read(&plan);
    several.clock.advance(Duration::from_secs(2));
    assert_eq!(several.store(0).health, Health::Good);
    several.forget_memory();
    assert_eq!(several.hits(), KEYS, "nothing was dropped");
}
