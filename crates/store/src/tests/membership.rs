//! Tests of stores that are opened together. A store that missed removals must never be trusted, whatever
//! happened in earlier runs. Some starts fail or are interrupted.

use std::collections::BTreeSet;

use foxy_base::Rng;
use foxy_disk::{Fault, FaultPlan, FaultRule, MemDisk, OpClass};

use super::several_rig::{KEYS, Several, disk};
use crate::*;

/// Lets all operations of this class on the disk fail, except the first `after` operations.
fn fails(disk: &MemDisk, class: OpClass, after: u64) {
    let rule = FaultRule::new(class, Fault::EIO).after(after);
    disk.set_faults(FaultPlan::none().and(rule));
}

fn repaired(disks: &[MemDisk]) -> Vec<MemDisk> {
    disks.iter().for_each(|d| d.set_faults(FaultPlan::none()));
    disks.iter().map(MemDisk::kill).collect()
}

/// Tries starts of `disks` until a start succeeds. In each start, one disk fails, each time at a later
/// operation than in the start before. After each failed start, `then` gets the disks that were used, with
/// the fault still in place.
fn failing_starts(several: &Several, disks: &[MemDisk], mut then: impl FnMut(&[MemDisk])) -> u64 {
    let mut failed = 0;
    for victim in 0..disks.len() {
        for class in [OpClass::Any, OpClass::Write] {
            for after in 0.. {
                let disks = repaired(disks);
                fails(&disks[victim], class, after);
                if several.try_kill(disks.clone()).is_ok() {
                    break;
                }
                failed += 1;
                then(&disks);
            }
        }
    }
    failed
}

#[test]
fn a_start_that_fails_on_one_store_costs_no_other_its_contents() {
    let several = Several::filled();
    // One more store is added, so that there is a new membership to record.
    let mut disks = several.killed_disks();
    disks.push(disk(16, 3));
    let failed = failing_starts(&several, &disks, |disks| {
        let disks = repaired(disks);
        assert_eq!(several.kill(disks.clone()).hits(), KEYS);
        let mut reversed = repaired(&disks);
        reversed.reverse();
        assert_eq!(several.kill(reversed).hits(), KEYS);
    });
    assert!(failed > 20, "{failed}");
}

#[test]
fn after_a_start_that_failed_before_all_were_open_any_of_the_stores_serves_alone() {
    let several = Several::filled();
    let disks = several.killed_disks();
    let each: Vec<_> = (0..2)
        .map(|n| several.kill(vec![disks[n].kill()]).hits())
        .collect();
    assert_eq!(each.iter().sum::<u64>(), KEYS);
    for after in 0..4 {
        let disks = repaired(&disks);
        fails(&disks[1], OpClass::Any, after);
        assert!(several.try_kill(disks.clone()).is_err());
        for (n, disk) in repaired(&disks).into_iter().enumerate() {
            assert_eq!(several.kill(vec![disk]).hits(), each[n]);
        }
    }
}

#[test]
fn a_store_that_was_missing_for_a_run_brings_nothing_back_and_costs_its_own_objects_alone() {
    let (mut alone, absent, missing) = Several::filled().without_the_second();
    // The store's objects are replaced and purged while it is absent.
    for (n, key) in missing.iter().enumerate() {
        alone.put(*key);
        if n % 2 == 0 {
            alone.supersede(*key);
        }
    }
    alone.run(60);
    let expected = KEYS - (missing.len() as u64).div_ceil(2);
    let mut disks = alone.killed_disks();
    disks.push(absent.kill());
    for _ in 0..2 {
        let mut both = alone.kill(disks);
        assert_eq!(both.hits(), expected);
        disks = both.killed_disks();
        disks.reverse();
    }
}

#[test]
fn a_crash_while_a_store_that_was_missing_is_taken_in_brings_nothing_back() {
    let (mut alone, absent, missing) = Several::filled().without_the_second();
    for key in &missing {
        alone.put(*key);
        alone.supersede(*key);
    }
    alone.run(60);
    let kept = KEYS - missing.len() as u64;
    let disks = [alone.disks[0].kill(), absent.kill()];
    let failed = failing_starts(&alone, &disks, |disks| {
        assert_eq!(alone.kill(repaired(disks)).hits(), kept);
    });
    assert!(failed > 20, "{failed}");
}

#[test]
fn stores_that_served_one_without_the_other_and_then_the_other_way_round_both_begin_empty() {
    let several = Several::filled();
    let [first, second]: [MemDisk; 2] = several.killed_disks().try_into().unwrap();
    let mut one = several.kill(vec![first]);
    one.put_all();
    // The second store does not know what was replaced in the first store, and the first store does not
    // know what is now replaced in the second store.
    let mut other = Several::open(vec![second]);
    other.put_all();
    let mut disks = one.killed_disks();
    disks.extend(other.killed_disks());
    for _ in 0..2 {
        let mut both = Several::open(repaired(&disks));
        assert_eq!(both.hits(), 0);
        both.put_all();
        both.forget_memory();
        assert_eq!(both.hits(), KEYS, "and both take objects");
        disks.reverse();
    }
}

#[test]
fn a_store_from_another_machine_begins_empty_and_costs_the_others_nothing() {
    let several = Several::filled();
    let mut foreign = Several::open(vec![disk(16, 7), disk(16, 8), disk(16, 9)]);
    foreign.put_all();
    let last = foreign.killed_disks().pop();
    let mut disks = several.killed_disks();
    disks.extend(last);
    assert_eq!(several.kill(disks).hits(), KEYS);
}

/// The first store runs alone and replaces the objects of the second store. Then both stores are opened.
fn left_out_and_back(both: &Several, what: &str) {
    let (mut alone, absent, missing) = both.without_the_second();
    for key in &missing {
        alone.put(*key);
    }
    alone.run(60);
    for key in &missing[..5] {
        alone.supersede(*key);
    }
    alone.run(60);
    let mut disks = alone.killed_disks();
    disks.push(absent.kill());
    assert_eq!(alone.kill(disks).hits(), KEYS - 5, "{what}");
}

#[test]
fn a_store_that_was_new_at_the_last_start_is_known_to_the_others() {
    // The first store has run alone before. At the next start, the second disk does not contain a store yet.
    let first = Several::open(vec![disk(16, 1)]);
    let mut disks = first.killed_disks();
    disks.push(disk(16, 2));
    let mut both = first.kill(disks);
    both.put_all();
    left_out_and_back(&both, "new at a start");
}

#[test]
fn a_store_that_was_added_while_running_is_known_to_the_others() {
    let mut both = Several::open(vec![disk(16, 1)]);
    both.add(disk(16, 2)).unwrap();
    both.put_all();
    // The added store is in the configuration at the next start, and has its former contents.
    assert_eq!(both.kill(both.killed_disks()).hits(), KEYS);
    left_out_and_back(&both, "added");
}

#[test]
fn an_added_store_takes_nothing_before_the_others_have_recorded_it() {
    let mut both = Several::open(vec![disk(16, 1)]);
    both.run(20);
    both.add(disk(16, 2)).unwrap();
    (0..KEYS).for_each(|key| {
        both.put(key);
    });
    both.disks[1].set_log(true);
    // Only the writer of the second store runs turns, as if the thread of the first store were busy.
    for _ in 0..100 {
        both.clock.advance(std::time::Duration::from_millis(50));
        both.writers[1].turn();
    }
    assert!(both.disks[1].log().is_empty(), "{:?}", both.disks[1].log());
    assert_eq!(both.hits(), KEYS, "what waits is in memory");
    both.run(60);
    assert!(both.store(1).counts.records > 5);
}

#[test]
fn an_added_store_that_cannot_record_that_it_is_there_gives_up_what_waits_for_it() {
    let mut both = Several::open(vec![disk(16, 1)]);
    both.run(20);
    both.add(disk(16, 2)).unwrap();
    fails(&both.disks[1], OpClass::Write, 0);
    both.put_all();
    assert_ne!(both.store(1).health, Health::Good);
    assert_eq!(both.engine.stats().pending_bytes, 0);
    both.put_all();
    both.forget_memory();
    assert_eq!(both.hits(), KEYS, "all of them are on the other store");
}

#[test]
fn a_store_whose_superblocks_cannot_be_read_is_not_taken_for_a_new_one() {
    let (mut alone, absent, missing) = Several::filled().without_the_second();
    missing.iter().for_each(|key| alone.supersede(*key));
    alone.run(60);
    // The store that knows of the removals cannot be read when `Engine::compare_memberships` compares the
    // stores, but could be read when it is opened.
    let disks = [alone.disks[0].kill(), absent.kill()];
    let attempts = FaultRule::new(OpClass::Read, Fault::EIO).times(4);
    disks[0].set_faults(FaultPlan::none().and(attempts));
    let problem = alone.try_kill(disks.to_vec()).map(|_| ()).unwrap_err();
    assert!(matches!(problem, OpenError::Io { .. }), "{problem}");
    assert_eq!(
        alone.kill(repaired(&disks)).hits(),
        KEYS - missing.len() as u64
    );
}

/// Returns the stores of a run, in their order. At least one of them is from the last run, so it knows
/// what the last run did.
fn some_of(rng: &mut Rng, last: &BTreeSet<usize>, all: usize) -> Vec<usize> {
    let known: Vec<_> = last.iter().copied().collect();
    let sure = known[rng.below(known.len() as u64) as usize];
    let mut picked: Vec<_> = (0..all).filter(|n| *n == sure || rng.chance(0.6)).collect();
    if rng.chance(0.5) {
        picked.reverse();
    }
    picked
}

#[test]
fn whichever_stores_meet_a_lookup_gives_the_latest_or_nothing() {
    let (mut hits, mut failed) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut disks: Vec<_> = (0..4).map(|n| disk(10, seed * 10 + n)).collect();
        let mut last: BTreeSet<_> = (0..4).collect();
        let mut run = Several::open(vec![disk(10, seed)]);
        for _ in 0..14 {
            let picked = some_of(&mut rng, &last, disks.len());
            let knows = |picked: &[usize]| picked.iter().any(|n| last.contains(n));
            let later = rng.chance(0.3) && knows(&picked[..picked.len() - 1]);
            let begins = picked.len() - usize::from(later);
            if rng.chance(0.5) {
                let victim = picked[rng.below(begins as u64) as usize];
                fails(&disks[victim], OpClass::Any, rng.below(60));
            }
            let of = |picked: &[usize]| picked.iter().map(|n| disks[*n].clone()).collect();
            let started = run.try_kill(of(&picked[..begins]));
            disks.iter().for_each(|d| d.set_faults(FaultPlan::none()));
            if let Ok(started) = started {
                run = started;
                last = picked[..begins].iter().copied().collect();
                run.work(&mut rng, 60);
                if later {
                    let n = picked[begins];
                    run.add(disks[n].clone()).unwrap();
                    last.insert(n);
                }
                run.work(&mut rng, 100);
                run.run(if rng.chance(0.5) { 60 } else { 0 });
                hits += run.hits();
            } else {
                failed += 1;
            }
            disks = disks.iter().map(MemDisk::kill).collect();
        }
    }
    assert!(hits > 8_000 && failed > 60, "{hits} {failed}");
}
