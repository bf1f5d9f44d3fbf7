//! Tests of the order of use, of dirty blocks, and of runs. Touching a run must have the same effect as
//! touching its blocks one by one.

use super::*;

#[test]
fn the_least_recently_used_block_leaves() {
    let mut cache = Cache::new(3);
    for key in 1..=3 {
        assert_eq!(cache.insert(key), None);
    }
    assert!(cache.touch(1));
    assert!(cache.set_dirty(2, SimTime::ZERO));
    assert_eq!(cache.insert(4), Some((2, true)));
    assert_eq!(cache.insert(5), Some((3, false)));
    assert!(cache.remove(1) && !cache.remove(1));
    assert_eq!(cache.insert(6), None);
    assert_eq!(cache.insert(7), Some((4, false)));
    assert_eq!(cache.dirty(), 0);
}

#[test]
fn dirt_is_counted_once_and_found_by_age_and_place() {
    let mut cache = Cache::new(4);
    for key in 0..4 {
        cache.insert(key);
        assert!(cache.set_dirty(key, SimTime::from_nanos(key)));
        assert!(cache.set_dirty(key, SimTime::from_nanos(99)));
    }
    assert_eq!(cache.dirty(), 4);
    assert_eq!(cache.dirty_since(SimTime::from_nanos(1)), [0, 1]);
    assert_eq!(cache.sweep(0.5, 1.0), [2, 3]);
    assert!(cache.set_clean(3) && !cache.set_clean(3) && !cache.is_dirty(3) && cache.is_dirty(2));
    assert_eq!(cache.sweep(0.0, 1.0), [0, 1, 2]);
    assert!(!cache.set_dirty(9, SimTime::ZERO));
}

/// Scanning a run has the same effect as touching its blocks one by one.
#[test]
fn a_scanned_run_is_its_blocks_touched_in_order() {
    let mut rng = foxy_base::Rng::new(3);
    let (mut scanned, mut touched) = (Cache::new(60), Cache::new(60));
    let (mut whole, mut broken) = (0, 0);
    for step in 0..60_000u64 {
        let (run, count) = (rng.below(3), 1 + rng.below(5));
        match rng.below(6) {
            0 | 1 => {
                if scanned.touch_run(run as u32, count) {
                    whole += 1;
                    assert!((0..count).all(|page| touched.touch(run << 32 | page)));
                } else {
                    broken += 1;
                }
            }
            2 => {
                let key = run << 32 | (count - 1);
                assert_eq!(scanned.insert_in_run(key), touched.insert(key), "{step}");
            }
            3 => assert_eq!(scanned.touch(count), touched.touch(count)),
            _ => {
                let key = 9 << 32 | rng.below(90);
                assert_eq!(scanned.dirty_victim(), touched.dirty_victim());
                assert_eq!(scanned.insert(key), touched.insert(key), "{step}");
                let now = SimTime::from_nanos(step);
                assert_eq!(scanned.set_dirty(key, now), touched.set_dirty(key, now));
            }
        }
        if rng.chance(0.002) {
            let key = run << 32 | count;
            assert_eq!(scanned.remove(key), touched.remove(key));
        }
    }
    assert!(whole > 1_000 && broken > 500, "{whole} {broken}");
    assert_eq!(scanned.sweep(0.0, 1.0), touched.sweep(0.0, 1.0));
}
