//! Tests of the table: comparisons with an exact model, the limits of the table, and lookups while writers
//! change the table.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use foxy_base::Rng;
use proptest::prelude::*;

use super::*;

fn hash(n: u64) -> KeyHash {
    let mut rng = Rng::new(n);
    KeyHash(u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()))
}

fn entry(sectors: u64) -> Entry {
    let class = SizeClass::for_bytes(1 + sectors % 100_000).expect("below the greatest class");
    Entry::new(Address::from_sectors(sectors).expect("36 bits"), class)
        .with_hint(sectors as u16 & 0xfff)
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u64),
    InsertIfAbsent(u64),
    Remove(u64),
    RemoveIf(u64, bool),
    ReplaceIf(u64, bool),
    Touch(u64, bool),
    TakeFreq(u64),
    Sweep(u64),
}

fn op() -> impl Strategy<Value = Op> {
    // The keys form groups of three. The keys of a group have the same hash bits: they collide.
    let key = 0..120u64;
    prop_oneof![
        4 => key.clone().prop_map(Op::Insert),
        1 => key.clone().prop_map(Op::InsertIfAbsent),
        1 => key.clone().prop_map(Op::Remove),
        2 => (key.clone(), any::<bool>()).prop_map(|(k, b)| Op::RemoveIf(k, b)),
        2 => (key.clone(), any::<bool>()).prop_map(|(k, b)| Op::ReplaceIf(k, b)),
        3 => (key.clone(), any::<bool>()).prop_map(|(k, b)| Op::Touch(k, b)),
        1 => key.prop_map(Op::TakeFreq),
        1 => (0..40u64).prop_map(Op::Sweep),
    ]
}

/// The number that `key` shares with its colliding keys. For the table, colliding keys are the same key:
/// their hashes differ only in bits that the table does not store.
fn collision_class(key: u64) -> u64 {
    key / 3
}

fn colliding_hash(key: u64) -> KeyHash {
    KeyHash(hash(collision_class(key)).0 ^ u128::from(key))
}

/// The address of `key` in the model if `right`, else an address that was never used.
fn address(model: &BTreeMap<u64, Entry>, key: u64, right: bool) -> Address {
    match model.get(&collision_class(key)) {
        Some(entry) if right => entry.address,
        _ => Address::MAX,
    }
}

fn apply(index: &Index, model: &mut BTreeMap<u64, Entry>, step: u64, op: &Op) {
    let new = entry(step);
    match *op {
        Op::Insert(key) => {
            let old = model.insert(collision_class(key), new);
            let expected = old.map_or(Insert::Stored, Insert::Replaced);
            assert_eq!(index.insert(colliding_hash(key), new), expected);
        }
        Op::InsertIfAbsent(key) => {
            let expected = match model.get(&collision_class(key)) {
                Some(there) => Insert::Present(*there),
                None => Insert::Stored,
            };
            model.entry(collision_class(key)).or_insert(new);
            assert_eq!(index.insert_if_absent(colliding_hash(key), new), expected);
        }
        Op::Remove(key) => {
            let removed = index.remove(colliding_hash(key));
            assert_eq!(removed.first(), model.remove(&collision_class(key)));
        }
        Op::RemoveIf(key, right) => {
            let at = address(model, key, right);
            let expected = model
                .get(&collision_class(key))
                .copied()
                .filter(|e| e.address == at);
            assert_eq!(index.remove_if(colliding_hash(key), at), expected);
            model.retain(|_, e| e.address != at);
        }
        Op::ReplaceIf(key, right) => {
            let at = address(model, key, right);
            let there = model
                .get_mut(&collision_class(key))
                .filter(|e| e.address == at);
            let expected = there.map(|e| *e = new).is_some();
            assert_eq!(index.replace_if(colliding_hash(key), at, new), expected);
        }
        Op::Touch(key, right) => {
            let at = address(model, key, right);
            index.touch(colliding_hash(key), at);
            if let Some(e) = model
                .get_mut(&collision_class(key))
                .filter(|e| e.address == at)
            {
                e.freq = (e.freq + 1).min(3);
            }
        }
        Op::TakeFreq(key) => {
            let at = address(model, key, true);
            let there = model.get_mut(&collision_class(key));
            let expected = there.map(|e| std::mem::take(&mut e.freq));
            assert_eq!(index.take_freq(colliding_hash(key), at), expected);
        }
        Op::Sweep(from) => {
            let sectors = from * 20..from * 20 + 60;
            let before = model.len();
            model.retain(|_, e| !sectors.contains(&e.address.sectors()));
            assert_eq!(index.sweep(sectors).run(), (before - model.len()) as u64);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_operation_equals_the_model(ops in prop::collection::vec(op(), 1..800)) {
        let (index, mut model) = (Index::new(), BTreeMap::new());
        for (step, op) in ops.iter().enumerate() {
            apply(&index, &mut model, step as u64, op);
        }
        prop_assert_eq!(index.len(), model.len() as u64);
        for key in 0..120 {
            let found = index.lookup(colliding_hash(key));
            prop_assert_eq!(found.iter().next(), model.get(&collision_class(key)).copied());
            prop_assert!(found.iter().count() <= 1);
        }
    }
}

#[test]
fn growth_loses_nothing_and_costs_little() {
    let index = Index::new();
    let mut checked = 0;
    for n in 0..300_000 {
        assert_eq!(index.insert(hash(n), entry(n)), Insert::Stored);
        if n % 50_000 == 49_999 {
            for k in 0..=n {
                assert_eq!(index.lookup(hash(k)).first(), Some(entry(k)), "{k} of {n}");
            }
            checked += 1;
        }
    }
    let stats = index.stats();
    assert_eq!((checked, stats.len, stats.dropped), (6, 300_000, 0));
    let directory = SHARDS as u64 * Chunks::base_bytes();
    let per_entry = (stats.memory_bytes - directory) as f64 / 300_000.0;
    assert!(per_entry < 15.6, "{per_entry} bytes per entry");
    let hits = (0..300_000).filter(|n| !index.lookup(hash(1 << 40 | n)).is_empty());
    assert!(hits.count() <= 3, "false hits");
}

#[test]
fn room_made_ahead_is_the_room_that_is_needed() {
    let (ahead, grown) = (Index::new(), Index::new());
    let _ = ahead.insert(hash(1), entry(1));
    (0..LANES).for_each(|lane| ahead.reserve(lane, 100_000));
    let reserved = ahead.memory_bytes();
    for n in 0..100_000 {
        assert!(ahead.insert(hash(n), entry(n)).is_stored());
        assert!(grown.insert(hash(n), entry(n)).is_stored());
    }
    assert!(ahead.memory_bytes() <= reserved + reserved / 50);
    assert!(ahead.memory_bytes() <= grown.memory_bytes() * 102 / 100);
    assert!(ahead.stats().displaced * 2 < grown.stats().displaced);
    for n in 0..100_000 {
        assert_eq!(ahead.lookup(hash(n)).first(), Some(entry(n)));
    }
    let limited = Index::with_limit(1 << 20);
    (0..LANES).for_each(|lane| limited.reserve(lane, u64::MAX >> 20));
    assert!(limited.memory_bytes() <= 1 << 20);
}

#[test]
fn memory_follows_contents_in_small_steps() {
    let index = Index::new();
    let mut last = index.memory_bytes();
    assert!(last < 512 << 10, "{last} bytes when empty");
    for n in 0..200_000 {
        let _ = index.insert(hash(n), entry(n));
        let now = index.memory_bytes();
        assert!(
            now - last <= (last / 8).max(4096),
            "a step of {}",
            now - last
        );
        last = now;
    }
}

#[test]
fn another_limit_stops_an_index_or_lets_it_go_on() {
    let index = Index::with_limit(1 << 20);
    let fill = |from: u64| {
        for n in from..from + 30_000 {
            let _ = index.insert(hash(n), entry(n));
        }
        index.stats()
    };
    index.set_limit(256 << 10);
    let small = fill(0);
    assert!(small.memory_bytes <= 256 << 10 && small.dropped > 0);
    // The index does not grow beyond the limit of the constructor.
    index.set_limit(u64::MAX);
    let large = fill(100_000);
    assert!(large.dropped == small.dropped && large.memory_bytes > 256 << 10);
    fill(200_000);
    assert!(fill(300_000).memory_bytes <= 1 << 20);
    // The new limit is below the memory in use, and the index keeps its memory.
    let before = index.stats();
    index.set_limit(1);
    let after = fill(400_000);
    assert_eq!(after.memory_bytes, before.memory_bytes);
}

#[test]
fn a_full_index_drops_and_counts_and_keeps_what_it_has() {
    let index = Index::with_limit(1 << 20);
    let mut kept = Vec::new();
    for n in 0..80_000 {
        match index.insert(hash(n), entry(n)) {
            Insert::Stored => kept.push(n),
            Insert::Dropped => {}
            other => panic!("{other:?}"),
        }
    }
    let stats = index.stats();
    assert!(stats.memory_bytes <= 1 << 20 && stats.dropped > 0);
    assert_eq!(stats.dropped + stats.len, 80_000);
    assert!(
        stats.len * 100 >= stats.slots * 95,
        "filled well: {stats:?}"
    );
    for n in &kept {
        assert_eq!(index.lookup(hash(*n)).first(), Some(entry(*n)));
    }
    // Existing entries can still be replaced, and freed slots are used again.
    assert!(matches!(
        index.insert(hash(kept[0]), entry(7)),
        Insert::Replaced(_)
    ));
    for n in &kept[..1000] {
        assert!(!index.remove(hash(*n)).is_empty());
    }
    let stored = (100_000..100_500).filter(|n| index.insert(hash(*n), entry(*n)).is_stored());
    assert!(stored.count() > 450);
}

#[test]
fn a_sweep_in_steps_is_exact_among_writers() {
    let index = Index::new();
    for n in 0..100_000 {
        let _ = index.insert(hash(n), entry(n));
    }
    let mut sweep = index.sweep(20_000..40_000);
    let mut next = 1_000_000;
    while !sweep.step(64) {
        // Insertions move entries while the sweep runs. Still no entry of the range may survive.
        for _ in 0..100 {
            let _ = index.insert(hash(next), entry(next));
            next += 1;
        }
    }
    drop(sweep);
    let mut left = 0;
    index.for_each_in(20_000..40_000, |_| left += 1);
    assert_eq!(left, 0);
    for n in (0..20_000).chain(40_000..100_000).chain(1_000_000..next) {
        assert_eq!(index.lookup(hash(n)).first(), Some(entry(n)));
    }
    assert_eq!(index.len(), 80_000 + next - 1_000_000);
}

#[test]
fn readers_never_miss_what_is_there_nor_see_what_is_gone() {
    let index = Index::new();
    for n in 0..2_000 {
        let _ = index.insert(hash(n), entry(n));
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (index, done) = (&index, &done);
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                while !done.load(Ordering::Relaxed) {
                    let n = rng.below(2_000);
                    let found = index.lookup(hash(n)).first();
                    assert_eq!(found.map(|e| e.address), Some(entry(n).address));
                    index.touch(hash(n), entry(n).address);
                }
            });
        }
        let wrong = (10_000..60_000u64).filter(|n| {
            let (hash, entry) = (hash(*n), entry(*n));
            let stored = index.insert(hash, entry).is_stored();
            let removed = n % 3 == 0 && index.remove_if(hash, entry.address).is_some();
            !stored || removed != (n % 3 == 0) || index.lookup(hash).is_empty() != removed
        });
        let wrong = wrong.count();
        // The readers are stopped before any assertion, because a failure would leave them running.
        done.store(true, Ordering::Relaxed);
        assert_eq!(wrong, 0);
    });
    assert!(index.stats().displaced > 0);
}

/// In a full index a hash finds a free slot after one of its neighbours (the entries in the slots that it
/// could use) was evicted, and no other entry is removed. This holds even if all neighbours have the same
/// address.
#[test]
fn an_evicted_neighbour_makes_room() {
    let index = Index::with_limit(200 << 10);
    let short = |n: u64| {
        let class = SizeClass::for_bytes(16).unwrap();
        let address = Address::from_sectors(7).unwrap();
        Entry::new(address, class).with_hint((n % 4096) as u16)
    };
    let refused = |n: &u64| index.insert(hash(*n), short(*n)) == Insert::Dropped;
    let full = (0..100_000).find(refused).unwrap();
    let count = index.len();
    assert!(index.room() < 1000, "less than the next step of growth");
    let before: Vec<_> = index.neighbours(hash(full)).collect();
    assert!(before.len() >= 5, "{before:?}");
    let least = before[3];
    assert!(!index.evict(
        hash(full),
        Entry {
            hint: least.hint ^ 1,
            ..least
        }
    ));
    assert!(
        index.evict(hash(full), Entry { freq: 2, ..least }),
        "uses do not matter"
    );
    assert_eq!(index.len(), count - 1);
    let after: Vec<_> = index.neighbours(hash(full)).collect();
    let left: Vec<_> = before.into_iter().filter(|e| *e != least).collect();
    assert_eq!(after, left);
    assert!(index.insert(hash(full), short(full)).is_stored());
    assert_eq!(index.len(), count);
}

/// A neighbour that was used stays longer than unused neighbours. When it is evicted, the uses of the others
/// are set back to 0, so no neighbour stays for ever.
#[test]
fn uses_are_forgotten_when_a_used_neighbour_is_evicted() {
    let index = Index::new();
    assert!(index.insert(hash(1), entry(1)).is_stored());
    index.touch(hash(1), entry(1).address);
    let used: Vec<_> = index.neighbours(hash(1)).collect();
    assert_eq!(
        used,
        [Entry {
            freq: 1,
            ..entry(1)
        }]
    );
    // Inserts further entries until the two buckets of `hash(1)` contain three entries.
    let beside = || index.neighbours(hash(1)).count();
    for n in 2..1_000_000 {
        let near = index
            .neighbours(hash(n))
            .any(|e| e.address == entry(1).address);
        if near && beside() < 3 {
            assert!(index.insert(hash(n), entry(n)).is_stored());
            index.touch(hash(n), entry(n).address);
        }
    }
    let before: Vec<_> = index.neighbours(hash(1)).collect();
    assert!(before.len() >= 3 && before.iter().all(|entry| entry.freq == 1));
    assert!(index.evict(hash(1), before[0]));
    let after: Vec<_> = index.neighbours(hash(1)).collect();
    assert_eq!(after.len(), before.len() - 1);
    assert!(after.iter().all(|entry| entry.freq == 0));
}

#[test]
fn size_classes_cover_and_do_not_over_read() {
    for bytes in (0..8_000_000u64).step_by(509) {
        let class = SizeClass::for_bytes(bytes).unwrap();
        assert!(class.bytes() >= bytes);
        let rounded = bytes.next_multiple_of(SECTOR_BYTES).max(SECTOR_BYTES);
        assert!(class.bytes() * 100 <= rounded * 108, "{bytes}: {class:?}");
        assert_eq!(SizeClass::from_number(class.number()), Some(class));
    }
    assert!(SizeClass::MAX.bytes() >= 8 << 20);
    assert_eq!(
        SizeClass::for_bytes(SizeClass::MAX.bytes()),
        Some(SizeClass::MAX)
    );
    assert_eq!(SizeClass::for_bytes(SizeClass::MAX.bytes() + 1), None);
    assert_eq!(
        (SizeClass::from_number(0), SizeClass::from_number(128)),
        (None, None)
    );
}

#[test]
fn addresses_are_36_bits_of_512_bytes() {
    assert_eq!(Address::from_sectors(1 << 36), None);
    assert_eq!(Address::from_bytes(513), None);
    assert_eq!(Address::from_bytes(1024).map(Address::sectors), Some(2));
    assert_eq!(Address::MAX.bytes() + 512, 32 << 40);
    assert_eq!(Address::all().end, 1 << 36);
}

/// Keys replace each other if they were chosen so that the index cannot distinguish them. With a secret these
/// keys behave like other keys.
#[test]
fn chosen_keys_are_like_others_to_an_index_with_a_secret() {
    let chosen = |n: u64| KeyHash(0xabcd << 96 | u128::from(n));
    let stored = |index: &Index| {
        for n in 1..200 {
            let _ = index.insert(chosen(n), entry(n));
        }
        index.len()
    };
    assert_eq!(stored(&Index::new()), 1);
    let secret = Index::new().with_secret(0x1234_5678_9abc_def1);
    assert_eq!(stored(&secret), 199);
    assert!(secret.lookup(chosen(200)).is_empty());
    let found = secret.lookup(chosen(7)).first();
    assert_eq!(found.map(|e| e.address), Some(entry(7).address));
    let removed = secret.remove_if(chosen(7), entry(7).address);
    assert!(removed.is_some() && secret.lookup(chosen(7)).is_empty());
    // Another secret leads to other buckets.
    let other = Index::new().with_secret(0x9876_5432_1fed_cba9);
    let lanes = (1..200).filter(|n| secret.lane(chosen(*n)) != other.lane(chosen(*n)));
    assert!((60..140).contains(&lanes.count()));
}
