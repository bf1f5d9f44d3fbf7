//! Hit ratio under space pressure, compared with an exact LRU that has the same number of bytes on
//! disk.

use std::collections::HashMap;
use std::time::Duration;

use foxy_base::Rng;
use foxy_policy::CachePolicy;

use super::rig::{Rig, SEGMENT};

const OBJECTS: usize = 3000;
const REQUESTS: usize = 60_000;

/// Cumulative weights of a Zipf law with exponent 0.75.
fn zipf() -> Vec<f64> {
    let mut sum = 0.0;
    let weights = (1..=OBJECTS).map(|rank| {
        sum += (rank as f64).powf(-0.75);
        sum
    });
    weights.collect()
}

/// Simulates an exact LRU by bytes. Returns the hits of `stream` after the first `warm` requests.
fn lru_hits(stream: &[usize], sizes: &[usize], capacity: usize, warm: usize) -> usize {
    let mut last: HashMap<usize, usize> = HashMap::new();
    let mut order = std::collections::BTreeMap::new();
    let (mut used, mut hits) = (0, 0);
    for (now, &object) in stream.iter().enumerate() {
        if let Some(before) = last.insert(object, now) {
            order.remove(&before);
            hits += usize::from(now >= warm);
        } else {
            used += sizes[object];
        }
        order.insert(now, object);
        while used > capacity
            && let Some((_, victim)) = order.pop_first()
        {
            last.remove(&victim);
            used -= sizes[victim];
        }
    }
    hits
}

#[test]
fn stays_within_four_points_of_exact_lru() {
    let mut rng = Rng::new(5);
    let sizes: Vec<usize> = (0..OBJECTS)
        .map(|_| 300 + (rng.unit().powi(3) * 6000.0) as usize)
        .collect();
    let data: usize = sizes.iter().map(|s| s + 700).sum();
    let segments = (data / 2).div_ceil(SEGMENT as usize) as u64;
    assert!(segments >= 32);
    let weights = zipf();
    let stream: Vec<usize> = (0..REQUESTS)
        .map(|_| {
            let draw = rng.unit() * weights[OBJECTS - 1];
            weights.partition_point(|w| *w < draw).min(OBJECTS - 1)
        })
        .collect();
    // The RAM tier is a tenth of the data.
    let mut rig = Rig::new(segments, data as u64 / 5, 5);
    let warm = REQUESTS / 3;
    let mut hits = 0;
    for (now, &object) in stream.iter().enumerate() {
        let key = format!("{object}");
        if rig.get(&key).is_some() {
            hits += usize::from(now >= warm);
        } else {
            rig.put(&key, &vec![b'x'; sizes[object]]);
        }
        rig.clock.advance(Duration::from_millis(20));
        rig.turns(2);
    }
    let ram = rig.engine.stats().ram_capacity as usize;
    let records: Vec<usize> = sizes
        .iter()
        .map(|s| (s + 512).next_multiple_of(512))
        .collect();
    let lru = lru_hits(
        &stream,
        &records,
        segments as usize * SEGMENT as usize,
        warm,
    );
    let ratio = |hits: usize| 100.0 * hits as f64 / (REQUESTS - warm) as f64;
    let counts = rig.counts();
    let amplification =
        counts.cluster_bytes as f64 / (counts.cluster_bytes - counts.reinserted_bytes) as f64;
    println!(
        "store {:.1} %, lru {:.1} %, ram {ram}, writes x{amplification:.2}",
        ratio(hits),
        ratio(lru)
    );
    assert!(counts.reused > segments * 3, "{counts:?}");
    assert!(
        ratio(hits) > ratio(lru) - 4.0,
        "{:.1} against {:.1}",
        ratio(hits),
        ratio(lru)
    );
    assert!(
        rig.engine
            .core()
            .tables
            .shard(super::rig::hash("0"))
            .read()
            .ram
            .used()
            <= ram as u64
    );
}
