//! The concurrent core under loom: every interleaving of small scenarios (2 slots a line, 2
//! lines to begin with). `RUSTFLAGS="--cfg loom" cargo test -p foxy-index --release`

use loom::sync::Arc;
use loom::thread;

use crate::address::Address;
use crate::bits::{FP_BITS, Fingerprint};
use crate::entry::{Entry, Insert};
use crate::shard::{Budget, Shard};
use crate::size_class::SizeClass;

fn entry(units: u64) -> Entry {
    Entry::new(
        Address::from_units(units).expect("36 bits"),
        SizeClass::from_number(1).expect("a class"),
    )
}

/// Different keys whose first place is line 0 of 2.
fn fp(n: u64) -> Fingerprint {
    Fingerprint(((n * 0x5_1234_5671) << 2) & ((1 << FP_BITS) - 1))
}

fn check(scenario: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(scenario);
}

fn shard_with(keys: u64, budget: &Budget) -> Arc<Shard> {
    let shard = Arc::new(Shard::new());
    for n in 1..=keys {
        assert_eq!(shard.insert(fp(n), entry(n), false, budget), Insert::Stored);
    }
    shard
}

#[test]
fn a_present_key_is_found_while_the_table_grows() {
    check(|| {
        let budget = Budget::new(u64::MAX, 0);
        let shard = shard_with(3, &budget);
        let reader = shard.clone();
        let reading = thread::spawn(move || {
            assert_eq!(reader.lookup(fp(1)).first(), Some(entry(1)));
        });
        let _ = shard.insert(fp(4), entry(4), false, &budget);
        reading.join().unwrap();
    });
}

#[test]
fn a_present_key_is_found_while_entries_are_displaced() {
    check(|| {
        // No memory to grow: the fourth insertion has to push others about.
        let budget = Budget::new(0, 0);
        let shard = shard_with(3, &budget);
        let reader = shard.clone();
        let reading = thread::spawn(move || {
            for n in [1, 2] {
                assert_eq!(reader.lookup(fp(n)).first(), Some(entry(n)));
            }
        });
        let _ = shard.insert(fp(4), entry(4), false, &budget);
        let _ = shard.remove(fp(3), None);
        let _ = shard.insert(fp(5), entry(5), false, &budget);
        reading.join().unwrap();
    });
}

#[test]
fn a_replaced_key_shows_its_old_or_its_new_place() {
    check(|| {
        let budget = Budget::new(u64::MAX, 0);
        let shard = shard_with(2, &budget);
        let reader = shard.clone();
        let reading = thread::spawn(move || {
            let first = reader.lookup(fp(1)).first().unwrap().address.units();
            let second = reader.lookup(fp(1)).first().unwrap().address.units();
            assert!((first == 1 || first == 9) && (second == 9 || first == 1));
        });
        assert!(shard.replace_if(fp(1), entry(1).address, entry(9)));
        reading.join().unwrap();
        assert_eq!(shard.lookup(fp(1)).first(), Some(entry(9)));
    });
}

#[test]
fn a_slot_that_changes_its_key_never_mixes_the_two() {
    check(|| {
        let budget = Budget::new(u64::MAX, 0);
        let shard = shard_with(1, &budget);
        let reader = shard.clone();
        let reading = thread::spawn(move || {
            for n in [1, 2] {
                let found = reader.lookup(fp(n)).first();
                assert!(found.is_none_or(|e| e.address == entry(n).address));
            }
        });
        assert!(
            shard
                .remove(fp(1), Some(entry(1).address))
                .first()
                .is_some()
        );
        assert!(shard.lookup(fp(1)).is_empty());
        let _ = shard.insert(fp(2), entry(2), false, &budget);
        reading.join().unwrap();
    });
}

#[test]
fn a_touch_never_brings_back_what_was_removed() {
    check(|| {
        let budget = Budget::new(u64::MAX, 0);
        let shard = shard_with(1, &budget);
        let toucher = shard.clone();
        let touching = thread::spawn(move || toucher.touch(fp(1), entry(1).address));
        let _ = shard.remove(fp(1), Some(entry(1).address));
        touching.join().unwrap();
        assert!(shard.lookup(fp(1)).is_empty());
    });
}

#[test]
fn two_writers_leave_one_entry_of_a_key() {
    check(|| {
        let budget = Arc::new(Budget::new(u64::MAX, 0));
        let shard = shard_with(1, &budget);
        let (other, other_budget) = (shard.clone(), budget.clone());
        let writing = thread::spawn(move || {
            let _ = other.insert(fp(2), entry(20), false, &other_budget);
        });
        let _ = shard.insert(fp(2), entry(21), false, &budget);
        writing.join().unwrap();
        assert_eq!(shard.lookup(fp(2)).iter().count(), 1);
        assert_eq!(shard.remove(fp(2), None).iter().count(), 1);
        assert_eq!(shard.len(), 1);
    });
}
