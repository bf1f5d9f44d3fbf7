//! Compares the policies with their slow reference versions on published traces (access logs), request by
//! request. Each trace runs with capacities in objects, and with capacities in bytes. In the runs with bytes,
//! objects may change their size. The traces are not part of the repository. If one is absent, the test
//! prints a message and does not check it.

use std::collections::HashMap;

use foxy_trace::{Method, Options, files::Known, open};

use crate::reference::{Kind, Lfu, Limited, Naive, Queue, S3, Tiny};
use crate::*;

/// Returns the object and the size of each GET with status 200, 206 or 304, and of each GET whose status the
/// log does not contain. If the log does not contain the size, the previous size of the object is used, or 1
/// if there was none.
fn requests(known: Known) -> Option<Vec<(u64, u64)>> {
    let path = known
        .path()
        .map_err(|sentence| eprintln!("not checked: {sentence}"))
        .ok()?;
    let reader = open(&path, Options::default()).unwrap();
    let mut last = HashMap::new();
    let asked = reader
        .map(Result::unwrap)
        .filter(|r| r.method == Method::Get && matches!(r.status, 0 | 200 | 206 | 304));
    let sized = asked.map(|request| {
        let size = last.entry(request.object).or_insert(1);
        if request.size > 0 {
            *size = request.size;
        }
        (request.object, *size)
    });
    Some(sized.collect())
}

/// Returns the hits of a cache. The cache must answer every request like its reference version, and evict the
/// same objects. If the size of an object differs from the stored size, it is a new version: a miss that
/// replaces the object.
fn equal(
    mut cache: impl CachePolicy<u64, u64>,
    mut naive: impl Naive,
    requests: &[(u64, u64)],
) -> usize {
    let (mut hits, mut evicted, name) = (0, Vec::new(), cache.name());
    for (number, &(key, size)) in requests.iter().enumerate() {
        let context = || format!("{name}, request {number}: {key} of {size} bytes");
        let held = cache.get(&key).copied();
        assert_eq!(held.is_some(), naive.get(key), "{}", context());
        if held == Some(size) {
            hits += 1;
            continue;
        }
        if size > cache.capacity() || !naive.takes(size) {
            naive.replace(key);
            let refused = cache.insert(key, size, size, &mut evicted);
            assert!(!refused.stored && evicted.is_empty());
            continue;
        }
        if held.is_some() {
            naive.replace(key);
        }
        assert!(cache.insert(key, size, size, &mut evicted).stored);
        let gone: Vec<u64> = evicted.drain(..).map(|e| e.key).collect();
        assert_eq!(gone, naive.insert(key, size), "{}", context());
    }
    hits
}

/// Returns the hits of these caches at one capacity: LRU, FIFO, SIEVE, S3-FIFO, S3-FIFO that refuses objects
/// larger than its small queue (as its authors' simulator does), LRU-TH, LFU with ageing and W-TinyLFU. Fails
/// if a cache and its reference version differ.
fn hits(requests: &[(u64, u64)], capacity: u64) -> [usize; 8] {
    let queue = |kind| Queue::new(kind, capacity);
    let (small, threshold) = ((capacity / 10).max(2) - 1, capacity / 50 + 1);
    // There are enough counters that no two keys share all four of their counters. The reference version
    // counts exactly.
    let objects = 1 << 22;
    let tiny = WTinyLfuConfig {
        objects,
        ..WTinyLfuConfig::default()
    };
    [
        equal(Lru::new(capacity), queue(Kind::Lru), requests),
        equal(Fifo::new(capacity), queue(Kind::Fifo), requests),
        equal(Sieve::new(capacity), queue(Kind::Sieve), requests),
        equal(S3Fifo::new(capacity), S3::new(capacity), requests),
        equal(
            SizeLimited::with_cache(S3Fifo::new(capacity), small, "s3-fifo"),
            Limited {
                naive: S3::new(capacity),
                most: small,
            },
            requests,
        ),
        equal(
            LruTh::new(capacity, threshold),
            Limited {
                naive: queue(Kind::Lru),
                most: threshold,
            },
            requests,
        ),
        equal(
            LfuAging::with_rule(capacity, LfuAgingRule::new(255, 10)),
            Lfu::new(capacity, 255, 10),
            requests,
        ),
        equal(
            WTinyLfu::with_rule(capacity, WTinyLfuRule::new(tiny)),
            Tiny::new(capacity, objects as u64),
            requests,
        ),
    ]
}

#[test]
fn policies_equal_their_models_on_the_published_traces() {
    for known in Known::ALL {
        let Some(requests) = requests(known) else {
            continue;
        };
        let counted: Vec<_> = requests.iter().map(|(key, _)| (*key, 1)).collect();
        for objects in [30, 300, 2_000] {
            let hits = hits(&counted, objects);
            println!("{} {objects} objects: {hits:?}", known.file_name());
            assert!(hits.iter().all(|n| *n > requests.len() / 20));
        }
        for mebibytes in [1, 16] {
            let hits = hits(&requests, mebibytes << 20);
            println!("{} {mebibytes} MiB: {hits:?}", known.file_name());
            assert!(hits.iter().all(|n| *n > requests.len() / 20));
        }
    }
}
