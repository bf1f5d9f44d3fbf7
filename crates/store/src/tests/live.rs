//! Tests in which stores are added, drained, taken out, attached again and grown while everything runs. Their
//! contents stay. After a crash during a growth, the store is either unchanged or grown.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use foxy_base::KeyHash;
use foxy_disk::Keep;

use super::live_rig::{KEYS, Live, Slot, all};
use super::purges::purge;
use super::rig::hash;
use super::several_rig::dies;
use crate::*;

#[test]
fn a_drained_store_is_empty_of_what_is_wanted_and_goes_without_a_loss() {
    let mut live = Live::new(&[16, 16], 1);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    let id = live.id(0);
    live.engine.fleet().drain_store(id).unwrap();
    assert_eq!(
        (live.health(0).duty, live.health(0).left),
        (Duty::Draining, 1.0)
    );
    assert_eq!(live.on_disk(), all(), "reads go on");
    let records = live.health(0).counts.records;
    (0..10).for_each(|key| live.put(key));
    live.drain();
    live.settle();
    assert_eq!(
        live.health(0).counts.records,
        records,
        "nothing new goes there"
    );
    assert_eq!(
        (live.health(0).duty, live.health(0).left),
        (Duty::Drained, 0.0)
    );
    assert!(live.health(0).counts.moved > 5);
    assert!(live.remove(0));
    assert_eq!(live.engine.stats().stores.len(), 1);
    assert_eq!(live.on_disk(), all(), "everything is on the other store");
    // The contents are the same after a kill of the process, and no engine uses the disk of the store that
    // was taken out.
    let mut again = live.crash(None);
    again.settle();
    assert_eq!(again.on_disk(), all());
}

#[test]
fn a_store_alone_is_not_drained_and_one_that_drains_may_serve_again() {
    let mut live = Live::new(&[16, 16], 1);
    let (first, second) = (live.id(0), live.id(1));
    assert_eq!(
        live.engine.fleet().drain_store(StoreId(9)),
        Err(DutyError::Unknown)
    );
    live.engine.fleet().drain_store(first).unwrap();
    assert_eq!(
        live.engine.fleet().drain_store(second),
        Err(DutyError::Alone)
    );
    live.engine.fleet().resume_store(first).unwrap();
    live.engine.fleet().drain_store(second).unwrap();
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    assert!(live.health(0).counts.records >= KEYS);
}

#[test]
fn a_store_comes_back_with_its_contents_but_for_what_was_removed_meanwhile() {
    for kill in [false, true] {
        let mut live = Live::new(&[16, 16], 3);
        (0..KEYS).for_each(|key| live.put(key));
        live.settle();
        assert!(live.remove(1));
        let left = live.on_disk();
        assert!(left.len() > 5 && left.len() < KEYS as usize - 5);
        // Of the keys on the detached store, some are removed, some are stored again, and the remaining keys
        // stay.
        let detached: Vec<_> = all().difference(&left).copied().collect();
        let (gone, newer) = (&detached[..3], &detached[3..5]);
        gone.iter().for_each(|key| live.supersede(*key));
        newer.iter().for_each(|key| live.put(*key));
        live.settle();
        live.add(1);
        live.settle();
        let expected: BTreeSet<_> = all().into_iter().filter(|k| !gone.contains(k)).collect();
        assert_eq!(live.on_disk(), expected);
        // Records that were removed meanwhile are dead in the log of their store, so they stay removed even
        // if no process remembers the removals.
        let mut again = live.crash(kill.then_some(5));
        again.settle();
        assert_eq!(again.on_disk(), expected, "kill {kill}");
    }
}

#[test]
fn a_sweep_does_not_end_before_it_went_through_a_store_that_comes_meanwhile() {
    for grows in [true, false] {
        let mut live = Live::new(&[16, 16], 3);
        (0..KEYS).for_each(|key| live.put(key));
        live.settle();
        if !grows {
            assert!(live.remove(1));
        }
        live.purge(PurgeKind::Host, "h1.test", false);
        live.settle();
        // If the objects stayed in memory, the sweep would find all of them there.
        live.engine.context().memory.clear();
        let mut sweep = live.engine.purges().sweep().unwrap();
        sweep.step();
        match grows {
            true => {
                live.grow(1, 4).unwrap();
            }
            false => live.add(1),
        }
        for _ in 0..20_000 {
            match sweep.step() {
                SweepStep::Done => break,
                SweepStep::Wait => live.run(1),
                SweepStep::Read(_) => {}
            }
        }
        live.settle();
        assert_eq!(live.engine.purges().active_purges(), 0);
        let left = live.on_disk();
        assert!(left.len() as u64 > KEYS / 2, "{left:?}");
        let mut again = live.crash(None);
        again.settle();
        assert_eq!(again.on_disk(), left);
    }
}

#[test]
fn a_store_that_was_detached_when_the_process_ended_comes_back_empty() {
    let mut live = Live::new(&[16, 16], 3);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    assert!(live.remove(1));
    let left = live.on_disk();
    let detached = *all().difference(&left).next().unwrap();
    live.supersede(detached);
    live.settle();
    let mut again = live.crash(None);
    again.add(1);
    again.settle();
    assert_eq!(again.on_disk(), left);
}

#[test]
fn a_store_that_nobody_remembers_is_taken_in_empty_while_running() {
    let mut live = Live::new(&[16, 16], 3);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    // Another engine opens one disk and removes all objects. Then it opens the other disk.
    let mut other = live.crash(None);
    other.remove(1);
    let slots = std::mem::take(&mut other.slots);
    other = other.heir(slots);
    other.slots[1].disk = live.slots[1].disk.kill();
    other.slots[0].writer = None;
    other.add(0);
    other.settle();
    let left = other.on_disk();
    (0..KEYS).for_each(|key| other.supersede(key));
    other.add(1);
    other.settle();
    assert!(!left.is_empty() && other.on_disk().is_empty());
    (0..KEYS).for_each(|key| other.put(key));
    other.settle();
    assert_eq!(other.on_disk(), all(), "and takes new objects");
    let mut again = other.crash(None);
    again.settle();
    assert_eq!(again.on_disk(), all());
}

/// A drain reads each record from its disk, even if memory has the object already. So memory may contain two
/// copies, and a soft purge must make both of them stale.
#[test]
fn a_soft_purge_makes_stale_each_copy_in_memory() {
    let mut live = Live::new(&[16, 16], 3);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    live.engine.fleet().drain_store(live.id(0)).unwrap();
    live.run(2);
    let mut drain = live.engine.begin_drain().unwrap();
    while drain.step() != DrainStep::Done {}
    assert!(live.health(0).counts.moved > 5);
    live.purge(PurgeKind::Host, "h1.test", true);
    live.sweep();
    live.settle();
    // No disk contains records from before the purge any more, so the purge retires.
    assert!(live.remove(0) && live.remove(1));
    assert!(live.engine.purges().sweep().is_none());
    assert_eq!(live.engine.purges().active_purges(), 0);
    (0..KEYS).for_each(|key| {
        live.check(key);
    });
    assert_eq!(live.stale.get(), KEYS / 4);
}

/// The disk of the only open store fails, so no disk can record that this store is taken out. The store could
/// bring purged objects back at a later start.
#[test]
fn no_purge_is_durable_once_a_store_went_that_nobody_can_note() {
    let mut live = Live::new(&[16, 16], 3);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    assert!(live.remove(1));
    let left = live.on_disk();
    let key = *left.first().unwrap();
    let outcome = |live: &mut Live| {
        let name = Live::name(key);
        let purges = live.engine.purges();
        let all = purge(PurgeKind::Host, "none.test", false);
        let many = purges.purge_many(&all, Places::Reserved).unwrap().1;
        let one = live.engine.purge(hash(&name), name.as_bytes());
        live.run(60);
        [one, many].map(|ticket| ticket.outcome())
    };
    assert_eq!(outcome(&mut live), [Some(Durable::Yes); 2]);
    dies(&live.slots[0].disk, 5);
    (0..8).for_each(|key| live.put(key));
    live.run(400);
    assert!(!live.remove(0));
    assert_eq!(outcome(&mut live), [Some(Durable::Failed); 2]);
    // From now on another store can record that the first store is missing.
    live.add(1);
    live.settle();
    assert_eq!(outcome(&mut live), [Some(Durable::Yes); 2]);
}

#[test]
fn a_store_grows_with_its_contents_and_uses_the_new_room() {
    let mut live = Live::new(&[8], 3);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    let before = live.on_disk();
    assert_eq!(live.health(0).segments, 8);
    for (more, now) in [(5, 13), (1, 14), (20, 34)] {
        assert_eq!(live.grow(0, more).unwrap(), now);
        live.settle();
        assert_eq!(live.on_disk(), before);
    }
    for key in KEYS..8 * KEYS {
        live.put(key);
        live.run(2);
    }
    live.settle();
    let kept = |live: &Live| (0..8 * KEYS).filter(|key| live.check(*key)).count();
    live.engine.context().memory.clear();
    let found = kept(&live);
    assert_eq!(found as u64, 8 * KEYS, "half a megabyte in 34 segments");
    let mut again = live.crash(None);
    again.settle();
    assert_eq!(kept(&again), found);
    // The writes fill the whole store, several times.
    for round in 0..20 {
        for key in 0..8 * KEYS {
            again.put(key);
            if key % 4 == 0 {
                again.run(1);
            }
        }
        again.settle();
        again.engine.context().memory.clear();
        assert!(kept(&again) > 100, "round {round}");
    }
    assert!(again.health(0).counts.reused > 30);
}

#[test]
fn every_crash_of_a_growth_leaves_the_contents() {
    let prepared = || {
        let mut live = Live::new(&[8], 3);
        (0..KEYS).for_each(|key| live.put(key));
        live.settle();
        for key in 0..4 {
            live.supersede(key);
        }
        live.settle();
        live
    };
    let mut whole = prepared();
    let expected = whole.on_disk();
    assert_eq!(expected.len() as u64, KEYS - 4);
    whole.slots[0].disk.set_log(true);
    whole.grow(0, 6).unwrap();
    let operations = whole.slots[0].disk.log().len() as u64;
    assert!(operations > 10, "{operations}");
    let (mut old, mut new) = (0, 0);
    for stop in 0..=operations {
        for seed in 0..3 {
            let mut live = prepared();
            let rule = foxy_disk::FaultRule::new(foxy_disk::OpClass::Any, foxy_disk::Fault::EIO)
                .after(stop);
            live.slots[0]
                .disk
                .set_faults(foxy_disk::FaultPlan::none().and(rule));
            let _ = live.grow(0, 6);
            let crashed = match seed {
                0 => live.slots[0].disk.kill(),
                seed => live.slots[0].disk.crash(Keep::Random(seed)),
            };
            let mut again = live.heir(vec![Slot {
                disk: crashed,
                number: 1,
                writer: None,
            }]);
            again.add(0);
            again.settle();
            assert_eq!(again.on_disk(), expected, "cut before {stop}, {seed}");
            match again.health(0).segments {
                8 => old += 1,
                14 => new += 1,
                other => panic!("{other} segments"),
            }
            // The growth may be tried again, and succeeds.
            if again.health(0).segments == 8 {
                assert_eq!(again.grow(0, 0).unwrap(), 14, "{stop}");
                again.settle();
                assert_eq!(again.on_disk(), expected);
            }
        }
    }
    assert!(old > 10 && new > 3, "{old} {new}");
}

#[test]
fn a_growth_that_cannot_be_says_why_and_changes_nothing() {
    let mut live = Live::new(&[8], 3);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    let found = live.on_disk();
    let problem = live.grow(0, 0).unwrap_err();
    assert!(matches!(problem, GrowError::TooSmall { .. }), "{problem}");
    for _ in 0..foxy_format::GROWTHS_MAX {
        live.grow(0, 1).unwrap();
        live.settle();
    }
    let problem = live.grow(0, 1).unwrap_err();
    assert!(matches!(problem, GrowError::TooOften(_)), "{problem}");
    assert_eq!(live.on_disk(), found);
    live.grow(0, 1).unwrap_err();
}

#[test]
fn what_is_removed_by_someone_who_knows_the_stores_of_before_a_return_stays_removed() {
    let mut live = Live::new(&[16, 16], 3);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    assert!(live.remove(1));
    let there = live.on_disk();
    let key = *all().difference(&there).next().unwrap();
    let (engine, hash) = (live.engine.clone(), hash(&Live::name(key)));
    thread::scope(|scope| {
        // The steps are in the order of `Engine::supersede`. Under the lock of the key's shard, it
        // passes the removal to the stores that are in the list ...
        let part = engine.core().tables.shard(hash).write();
        let back = scope.spawn(|| live.add(1));
        while engine.fleet().stores().len() < 2 {
            thread::yield_now();
        }
        // ... and then to the detached stores. In this test a store comes back between the two
        // steps. (The pause gives the return enough time to continue, if it does not wait for the
        // lock.)
        (0..1_000).for_each(|_| thread::yield_now());
        engine.fleet().detached().note(hash);
        drop(part);
        back.join().unwrap();
    });
    live.latest.remove(&key);
    live.settle();
    let expected: BTreeSet<_> = all().into_iter().filter(|k| *k != key).collect();
    assert_eq!(live.on_disk(), expected);
}

#[test]
fn a_growth_during_which_too_much_is_removed_to_remember_leaves_nothing_to_come_back() {
    for seed in 0..400 {
        let mut live = Live::new(&[16], seed);
        (0..KEYS).for_each(|key| live.put(key));
        live.settle();
        let (engine, over) = (live.engine.clone(), AtomicBool::new(false));
        let runs = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let more = (0..).take_while(|_| !over.load(Ordering::Relaxed));
                more.for_each(|n| {
                    engine.fleet().detached().note(KeyHash(n));
                    runs.store(true, Ordering::Relaxed);
                });
            });
            // On a busy machine, the growth would otherwise end before the thread begins.
            while !runs.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            let grown = live.grow(0, 4);
            over.store(true, Ordering::Relaxed);
            grown.unwrap();
        });
        live.settle();
        // The engine may have forgotten that these records are on the disk.
        (0..KEYS).for_each(|key| live.supersede(key));
        live.settle();
        let too_much = live.health(0).counts.load_given_up > 0;
        let mut again = live.crash(None);
        again.settle();
        assert_eq!(again.on_disk(), BTreeSet::new(), "seed {seed}");
        if too_much {
            return;
        }
    }
    panic!("it was never too much");
}

/// A store that missed purges is drained: an object that these purges may have covered must not be found, on
/// this store or on another store.
#[test]
fn what_a_store_missed_purges_of_does_not_move_to_another() {
    let mut live = Live::new(&[12, 12], 5);
    for key in 0..40 {
        live.put(key);
    }
    live.settle();
    let from = live.engine.fleet().store(live.id(0)).unwrap();
    live.engine.context().memory.clear();
    let found = |live: &Live, key: u64| {
        let name = Live::name(key);
        let hash = hash(&name);
        let entries = live.engine.core().tables.index().lookup(hash);
        entries
            .iter()
            .next()
            .map(|entry| live.engine.fleet().stores().at(entry.address).unwrap().id)
    };
    let there: Vec<_> = (0..40)
        .filter(|key| found(&live, *key) == Some(from.id))
        .collect();
    assert!(there.len() > 5, "{there:?}");
    from.marks.set_purge_floor(u64::MAX);
    live.engine.fleet().drain_store(from.id).unwrap();
    live.drain();
    live.settle();
    live.engine.context().memory.clear();
    for key in there {
        let at = found(&live, key);
        assert!(at.is_none() || at == Some(from.id), "key {key} moved");
    }
}
