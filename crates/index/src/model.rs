//! Tests the concurrent core of the index under loom, in every interleaving of small scenarios (2 slots in a
//! bucket, 4 buckets at the start): `RUSTFLAGS="--cfg loom" cargo test -p foxy-index --lib`

use loom::sync::Arc;
use loom::thread;

use crate::address::Address;
use crate::arena::Arena;
use crate::bits::{Extent, FP_BITS, Fingerprint};
use crate::entry::{Entry, IndexStats, Insert};
use crate::shard::Shard;
use crate::size_class::SizeClass;

fn entry(sectors: u64) -> Entry {
    Entry::new(
        Address::from_sectors(sectors).expect("36 bits"),
        SizeClass::from_number(1).expect("a class"),
    )
}

/// The `nth` fingerprint whose two buckets are `buckets`, in a shard of four buckets.
fn fp_in(buckets: [u32; 2], nth: usize) -> Fingerprint {
    let fits = |fp: &Fingerprint| [fp, &fp.other()].map(|fp| fp.bucket(Extent::of(4))) == buckets;
    let all = (1..).map(|n: u64| Fingerprint((n * 0x5_1234_5671) & ((1 << FP_BITS) - 1)));
    all.filter(fits).nth(nth).expect("there is always one more")
}

/// The fingerprint of key `n`. All these keys have the same two buckets.
fn fp(n: u64) -> Fingerprint {
    fp_in([0, 1], n as usize)
}

fn check(scenario: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(scenario);
}

/// An empty shard that may use `limit` bytes of memory in addition to its first buckets.
fn shard_within(limit: u64) -> Arc<Shard> {
    let arena = Arena::new(limit, 0, None);
    Arc::new(Shard::new(std::sync::Arc::new(arena)))
}

fn shard_with(keys: u64) -> Arc<Shard> {
    let shard = shard_within(u64::MAX);
    for n in 1..=keys {
        assert_eq!(shard.insert(fp(n), entry(n), false), Insert::Stored);
    }
    shard
}

#[test]
fn a_present_key_is_found_while_the_table_grows() {
    check(|| {
        let shard = shard_within(u64::MAX);
        // The seventh entry in eight slots causes a split of bucket 0; bucket 4 is the new bucket.
        let keys = [[0, 1], [0, 1], [2, 3], [2, 3], [2, 1], [2, 3], [0, 3]];
        let keys: Vec<Fingerprint> = (0..7).map(|n| fp_in(keys[n], n * 3)).collect();
        for (n, fp) in keys[..6].iter().enumerate() {
            let _ = shard.insert(*fp, entry(n as u64 + 1), false);
        }
        let moves = keys
            .iter()
            .position(|fp| fp.bucket(Extent::of(5)) == 4 || fp.other().bucket(Extent::of(5)) == 4);
        let moves = moves.expect("a key of bucket 0 with its third bit set");
        let (reader, key) = (shard.clone(), keys[moves]);
        let reading = thread::spawn(move || {
            let found = reader.lookup(key).first();
            assert_eq!(found, Some(entry(moves as u64 + 1)));
        });
        let _ = shard.insert(keys[6], entry(7), false);
        reading.join().unwrap();
    });
}

#[test]
fn a_present_key_is_found_while_it_is_displaced() {
    for movable in [[0, 3], [3, 0]] {
        check(move || {
            // There is no memory to grow, so the last insertion must push `movable` from bucket 0 to
            // bucket 3.
            let shard = shard_within(0);
            let put = |fp, n| assert!(shard.insert(fp, entry(n), false).is_stored());
            put(fp_in([3, 2], 0), 1);
            put(fp_in([3, 2], 1), 2);
            put(fp_in([2, 3], 2), 3);
            put(fp_in([2, 3], 3), 4);
            let movable = fp_in(movable, 4);
            put(movable, 5);
            for n in 6..9 {
                put(fp(n), n);
            }
            for n in 0..4 {
                let buckets = if n < 2 { [3, 2] } else { [2, 3] };
                assert!(!shard.remove(fp_in(buckets, n), None).is_empty());
            }
            let reader = shard.clone();
            let reading = thread::spawn(move || {
                assert_eq!(reader.lookup(movable).first(), Some(entry(5)));
            });
            put(fp(9), 9);
            let mut stats = IndexStats::default();
            shard.add_stats(&mut stats);
            assert_eq!(stats.displaced, 1);
            reading.join().unwrap();
        });
    }
}

#[test]
fn a_replaced_key_shows_its_old_or_its_new_place() {
    check(|| {
        let shard = shard_with(2);
        let reader = shard.clone();
        let reading = thread::spawn(move || {
            let first = reader.lookup(fp(1)).first().unwrap().address.sectors();
            let second = reader.lookup(fp(1)).first().unwrap().address.sectors();
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
        let shard = shard_within(u64::MAX);
        // The two keys have the same slot, the same tag and the same bits in the word. They differ
        // in the bits beside the word.
        let keys = [fp(1), Fingerprint(fp(1).0 ^ 1 << 5)];
        let in_word = |fp: Fingerprint| (fp.tag(), fp.stored().0);
        assert_eq!(keys.map(in_word), [in_word(fp(1)); 2]);
        let _ = shard.insert(keys[0], entry(1), false);
        let reader = shard.clone();
        let reading = thread::spawn(move || {
            for (n, key) in (1..).zip(keys) {
                let found = reader.lookup(key).first();
                assert!(found.is_none_or(|e| e == entry(n)));
            }
        });
        let removed = shard.remove(keys[0], Some(entry(1).address));
        assert!(removed.first().is_some());
        assert!(shard.lookup(keys[0]).is_empty());
        let _ = shard.insert(keys[1], entry(2), false);
        reading.join().unwrap();
    });
}

#[test]
fn a_touch_never_brings_back_what_was_removed() {
    check(|| {
        let shard = shard_with(1);
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
        let shard = shard_with(1);
        let other = shard.clone();
        let writing = thread::spawn(move || {
            let _ = other.insert(fp(2), entry(20), false);
        });
        let _ = shard.insert(fp(2), entry(21), false);
        writing.join().unwrap();
        assert_eq!(shard.lookup(fp(2)).iter().count(), 1);
        assert_eq!(shard.remove(fp(2), None).iter().count(), 1);
        assert_eq!(shard.len(), 1);
    });
}
