//! Compares the caches with their slow reference versions and with a plain map, request by request.

use std::collections::HashMap;

use foxy_base::Rng;

use crate::reference::{Kind, Lfu, Naive, Queue, S3, Tiny};
use crate::*;

mod admission;
mod placing;
mod reading;
mod traces;

const CAPACITY: u64 = 4_000;

#[derive(Clone, Copy, Debug)]
enum Step {
    Request(u64, u64),
    Modified(u64, u64),
    Delete(u64),
    Evict,
}

/// A skewed stream with deletions and modifications. Sizes range from 1 to more than the capacity
/// of the cache.
fn stream(seed: u64, steps: usize) -> impl Iterator<Item = Step> {
    let mut rng = Rng::new(seed);
    (0..steps).map(move |_| {
        let key = (rng.unit().powi(3) * 400.0) as u64;
        let mut sizes = Rng::new(key);
        let size = match sizes.below(40) {
            0 => CAPACITY + sizes.below(100),
            1..4 => 1 + sizes.below(CAPACITY),
            _ => 1 + sizes.below(120),
        };
        match rng.below(100) {
            0..4 => Step::Delete(key),
            4..7 => Step::Modified(key, 1 + rng.below(120)),
            7 => Step::Evict,
            _ => Step::Request(key, size),
        }
    })
}

/// Runs a cache and its reference version. Returns the number of hits, so that a test can check that it is
/// not zero.
fn compare(mut cache: impl CachePolicy<u64, u64>, mut naive: impl Naive, seed: u64) -> usize {
    let (mut hits, mut evicted) = (0, Vec::new());
    for (number, step) in stream(seed, 20_000).enumerate() {
        evicted.clear();
        let mut insert = |cache: &mut dyn CachePolicy<u64, u64>, key, size| {
            let stored = cache.insert(key, key, size, &mut evicted).stored;
            assert_eq!(stored, size <= CAPACITY);
            let keys: Vec<u64> = evicted.iter().map(|e| e.key).collect();
            assert!(stored || keys.is_empty());
            keys
        };
        let context = || format!("{} seed {seed} step {number} {step:?}", cache_name(&step));
        match step {
            Step::Request(key, size) => {
                let hit = cache.get(&key).is_some();
                assert_eq!(hit, naive.get(key), "{}", context());
                hits += usize::from(hit);
                if !hit && size <= CAPACITY {
                    let gone = insert(&mut cache, key, size);
                    assert_eq!(gone, naive.insert(key, size), "{}", context());
                }
            }
            Step::Modified(key, size) => {
                naive.replace(key);
                let gone = insert(&mut cache, key, size);
                assert_eq!(gone, naive.insert(key, size), "{}", context());
            }
            Step::Delete(key) => {
                cache.remove(&key);
                naive.remove(key);
            }
            Step::Evict => {
                let gone = cache.evict().map(|e| e.key);
                assert_eq!(gone, naive.evict(), "{}", context());
            }
        }
    }
    hits
}

fn cache_name(step: &Step) -> &'static str {
    match step {
        Step::Request(..) => "request",
        Step::Modified(..) => "modified",
        Step::Delete(_) => "delete",
        Step::Evict => "evict",
    }
}

#[test]
fn lru_fifo_clock_and_sieve_equal_their_models() {
    for seed in 0..8 {
        let queue = |kind| Queue::new(kind, CAPACITY);
        assert!(compare(Lru::new(CAPACITY), queue(Kind::Lru), seed) > 1000);
        assert!(compare(Fifo::new(CAPACITY), queue(Kind::Fifo), seed) > 1000);
        assert!(compare(Clock::new(CAPACITY), queue(Kind::Clock), seed) > 1000);
        assert!(compare(Sieve::new(CAPACITY), queue(Kind::Sieve), seed) > 1000);
    }
}

#[test]
fn s3_fifo_equals_its_model() {
    for seed in 0..12 {
        assert!(compare(S3Fifo::new(CAPACITY), S3::new(CAPACITY), seed) > 1000);
    }
}

#[test]
fn lfu_aging_equals_its_model() {
    for (seed, count_max, mean_max) in [(1, 255, 10), (2, 15, 3), (3, 4, 2), (4, 255, 2)] {
        let cache = Cache::with_rule(CAPACITY, LfuAgingRule::new(count_max, mean_max));
        let naive = Lfu::new(CAPACITY, u64::from(count_max), mean_max);
        assert!(compare(cache, naive, seed) > 1000);
    }
}

/// W-TinyLFU with a sketch for this many objects, and its reference version. There are enough counters that
/// no two keys of the tests share all four of their counters. The reference version counts exactly.
fn tiny(objects: usize) -> (WTinyLfu<u64, u64>, Tiny) {
    let config = WTinyLfuConfig {
        objects,
        ..WTinyLfuConfig::default()
    };
    (
        Cache::with_rule(CAPACITY, WTinyLfuRule::new(config)),
        Tiny::new(CAPACITY, objects as u64),
    )
}

#[test]
fn w_tiny_lfu_equals_its_model() {
    for seed in 0..8 {
        let (cache, naive) = tiny(1 << 14);
        assert!(compare(cache, naive, seed) > 1000);
    }
}

#[test]
fn w_tiny_lfu_ages_as_its_model_does() {
    let (mut cache, mut naive) = tiny(2_048);
    let mut rng = Rng::new(9);
    let mut evicted = Vec::new();
    // The number of requests is five times the number of uses after which counts are halved, so counts are
    // halved several times. The popular keys change during the test.
    for number in 0..100_000u64 {
        let favourite = number / 10_000 * 40;
        let key = favourite + rng.below(rng.clone().below(120) + 1);
        let hit = cache.get(&key).is_some();
        assert_eq!(hit, naive.get(key), "request {number}");
        if !hit {
            evicted.clear();
            let _ = cache.insert(key, key, 1 + key % 50, &mut evicted);
            let gone: Vec<u64> = evicted.iter().map(|e| e.key).collect();
            assert_eq!(gone, naive.insert(key, 1 + key % 50), "request {number}");
        }
    }
}

fn every_policy() -> impl Iterator<Item = AnyCache<u64>> {
    let each = PolicyKind::EACH.into_iter();
    each.map(|kind| kind.build(CAPACITY))
}

/// A plain map of the objects. Every object that the cache evicts is removed from the map. So the map must
/// always agree with the cache.
#[derive(Default)]
struct Told {
    objects: HashMap<u64, (u64, u64)>,
    evicted: Vec<Evicted<u64, u64>>,
    next: u64,
}

impl Told {
    fn insert(&mut self, cache: &mut dyn CachePolicy<u64, u64>, key: u64, size: u64) {
        self.next += 1;
        let inserted = cache.insert(key, self.next, size, &mut self.evicted);
        let old = self.objects.remove(&key).map(|(value, _)| value);
        assert_eq!(inserted.replaced, old, "{}", cache.name());
        if inserted.stored {
            self.objects.insert(key, (self.next, size));
        }
        for gone in self.evicted.drain(..) {
            let known = self.objects.remove(&gone.key);
            assert_eq!(known, Some((gone.value, gone.size)), "{}", cache.name());
        }
    }

    fn check(&self, cache: &dyn CachePolicy<u64, u64>) {
        let used: u64 = self.objects.values().map(|(_, size)| size).sum();
        assert_eq!(cache.used(), used, "{}", cache.name());
        assert_eq!(cache.len(), self.objects.len(), "{}", cache.name());
        assert!(cache.used() <= cache.capacity(), "{}", cache.name());
    }
}

#[test]
fn every_policy_accounts_for_every_object() {
    for mut cache in every_policy() {
        let mut told = Told::default();
        for step in stream(99, 20_000) {
            match step {
                Step::Request(key, size) => {
                    let known = told.objects.get(&key).map(|(value, _)| *value);
                    assert_eq!(cache.peek(&key).copied(), known);
                    assert_eq!(cache.get(&key).copied(), known, "{}", cache.name());
                    if known.is_none() {
                        told.insert(cache.as_mut(), key, size);
                    }
                }
                Step::Modified(key, size) => told.insert(cache.as_mut(), key, size),
                Step::Delete(key) => {
                    let known = told.objects.remove(&key).map(|(value, _)| value);
                    assert_eq!(cache.remove(&key), known);
                }
                Step::Evict => {
                    let gone = cache.evict().map(|gone| gone.key);
                    assert_eq!(gone.is_none(), told.objects.is_empty());
                    gone.map(|key| told.objects.remove(&key));
                }
            }
            told.check(cache.as_ref());
        }
        cache.set_capacity(CAPACITY / 3, &mut told.evicted);
        assert!(cache.used() <= CAPACITY / 3, "{}", cache.name());
        while cache.evict().is_some() {}
        assert_eq!((cache.used(), cache.len()), (0, 0), "{}", cache.name());
    }
}

#[test]
fn what_is_too_large_is_refused_and_its_older_version_goes() {
    for mut cache in every_policy() {
        let mut evicted = Vec::new();
        assert!(cache.insert(1, 10, 50, &mut evicted).stored);
        assert!(cache.insert(2, 20, 50, &mut evicted).stored);
        let refused = cache.insert(1, 11, CAPACITY + 1, &mut evicted);
        let expected = Inserted {
            stored: false,
            replaced: Some(10),
        };
        assert_eq!(refused, expected, "{}", cache.name());
        assert_eq!((cache.peek(&1), cache.peek(&2)), (None, Some(&20)));
        assert!(evicted.is_empty());
    }
}

fn hits(cache: &mut dyn CachePolicy<u64, u64>, requests: impl Iterator<Item = u64>) -> usize {
    let mut evicted = Vec::new();
    let hit = |key: &u64| {
        let hit = cache.get(key).is_some();
        if !hit {
            let _ = cache.insert(*key, 0, 10, &mut evicted);
        }
        hit
    };
    requests.filter(hit).count()
}

#[test]
fn frequency_rules_keep_the_popular_through_a_scan() {
    let requests = || {
        let mut rng = Rng::new(5);
        (0..100_000u64).map(move |n| match n % 2 {
            0 => 1_000_000 + n,
            _ => rng.below(300),
        })
    };
    let mut found: HashMap<&str, usize> = HashMap::new();
    for mut cache in every_policy() {
        found.insert(cache.name(), hits(cache.as_mut(), requests()));
    }
    // The cache has room for 400 objects. Half of the requests are for the popular 300 objects, the other
    // half for new objects.
    for better in ["s3-fifo", "w-tinylfu", "lfu-aging", "sieve"] {
        assert!(
            found[better] * 10 > found["lru"] * 12,
            "{better}: {found:?}"
        );
    }
}

#[test]
fn the_window_gives_to_main_only_what_is_asked_for_more_often() {
    let config = WTinyLfuConfig {
        window_percent: 10,
        objects: 100_000,
        ..WTinyLfuConfig::default()
    };
    let mut cache = Cache::with_rule(1000, WTinyLfuRule::new(config));
    hits(&mut cache, 0..10_000);
    // Every object was requested once. The first objects fill the main part and stay there, and the last
    // objects stay in the window.
    let left = (0..10_000).filter(|key| cache.peek(key).is_some());
    assert!(left.eq((0..90).chain(9_990..10_000)));
    // A newcomer that is requested three times evicts the least recently used object, and stays.
    for key in [50_000, 50_000, 50_000].into_iter().chain(60_000..60_100) {
        hits(&mut cache, std::iter::once(key));
    }
    assert!(cache.peek(&50_000).is_some() && cache.peek(&0).is_none());
}

#[test]
fn a_shared_hit_counts_like_an_exclusive_one() {
    let (mut one, mut two) = (S3Fifo::new(500), S3Fifo::new(500));
    let (mut from_one, mut from_two) = (Vec::new(), Vec::new());
    for step in stream(7, 20_000) {
        let Step::Request(key, size) = step else {
            continue;
        };
        let hit = one.get(&key).is_some();
        assert_eq!(two.get_shared(&key).is_some(), hit);
        if !hit {
            let _ = one.insert(key, (), size, &mut from_one);
            let _ = two.insert(key, (), size, &mut from_two);
        }
    }
    assert!(from_one.len() > 100);
    assert_eq!(from_one, from_two);
}

#[test]
fn values_can_be_changed_in_place() {
    let mut cache: Lru<u128, u32> = Lru::new(100);
    let _ = cache.insert(1 << 100, 5, 10, &mut Vec::new());
    if let Some(value) = cache.get_mut(&(1 << 100)) {
        *value += 1;
    }
    assert_eq!(cache.peek(&(1 << 100)), Some(&6));
    assert_eq!(cache.size_of(&(1 << 100)), Some(10));
}

#[test]
fn a_sketch_counts_and_ages() {
    let mut sketch = Sketch::new(1000);
    for _ in 0..6 {
        sketch.add(&42u64);
    }
    assert_eq!(sketch.estimate(&42u64), 6);
    let known = (1000..2000u64).filter(|key| sketch.estimate(key) > 0);
    assert!(known.count() < 10);
    for key in 0..10_300u64 {
        sketch.add(&((1 << 30) | (key % 16)));
    }
    assert_eq!(sketch.estimate(&42u64), 3, "halved once");
    assert!(sketch.estimate(&(1u64 << 30)) <= 15);
}
