//! Random histories of stores that are added and taken out, while all kinds of changes happen to keys.

use foxy_base::Rng;

use super::live_rig::{HOSTS, KEYS, Live, TAGS};
use crate::*;

/// In this test, stores are added, taken out, drained and grown, and crashes occur, in any order, while keys
/// are stored, removed and purged. A lookup always returns the latest version, and softly purged objects are
/// stale.
#[test]
fn whatever_stores_do_a_lookup_gives_the_latest_or_nothing() {
    let (mut hits, mut stale, mut purges) = (0, 0, 0);
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let mut live = Live::new(&[8, 12, 16], seed * 10);
        for _ in 0..120 {
            turn(&mut live, &mut rng);
            let asked = (live.engine.purges().purge_sequence(), rng.below(KEYS));
            for _ in 0..8 {
                let key = rng.below(KEYS);
                match rng.below(8) {
                    0..4 => live.put(key),
                    4 => live.supersede(key),
                    5 => live.run(1),
                    _ => hits += u64::from(live.check(key)),
                }
            }
            match rng.below(12) {
                0..2 => some_purge(&mut live, &mut rng),
                2 => live.purge_key(rng.below(KEYS)),
                3 => live.sweep(),
                _ => {}
            }
            if rng.chance(0.3) {
                live.put_asked(asked.1, asked.0);
            }
        }
        live.run(10);
        hits += live.on_disk().len() as u64;
        purges += live.purges.len();
        stale += live.stale.get();
    }
    let counted = format!("{hits} hits, {stale} stale, {purges} purges");
    assert!(hits > 4_000 && stale > 200 && purges > 500, "{counted}");
}

/// Makes a purge of many objects, sometimes of everything; it is hard or soft.
fn some_purge(live: &mut Live, rng: &mut Rng) {
    let (key, soft) = (rng.below(KEYS), rng.chance(0.5));
    let (host, tag) = (key % HOSTS, key % TAGS);
    match rng.below(9) {
        0 => live.purge(PurgeKind::All, "", soft),
        1..3 => live.purge(PurgeKind::Url, &format!("http://h{host}.test/{key}"), soft),
        3..5 => live.purge(
            PurgeKind::Prefix,
            &format!("h{host}.test/{}", key / 10),
            soft,
        ),
        5 => live.purge(PurgeKind::Host, &format!("h{host}.test"), soft),
        6 => live.purge(PurgeKind::Expression, &format!("test/{key}$"), soft),
        _ => live.purge(PurgeKind::Tag, &format!("tag {tag}"), soft),
    }
}

/// Makes a random change to the stores.
fn turn(live: &mut Live, rng: &mut Rng) {
    let n = rng.below(live.slots.len() as u64) as usize;
    match rng.below(12) {
        0 if !live.is_open(n) => live.add(n),
        1 if live.is_open(n) && live.open().len() > 1 => {
            live.remove(n);
        }
        2 if live.is_open(n) => {
            let _ = live.engine.fleet().drain_store(live.id(n));
        }
        3 if live.is_open(n) => {
            let _ = live.engine.fleet().resume_store(live.id(n));
        }
        4 => {
            if let Some(mut drain) = live.engine.begin_drain() {
                for _ in 0..rng.below(30) {
                    if drain.step() == DrainStep::Wait {
                        live.run(1);
                    }
                }
            }
        }
        5 if live.is_open(n) && rng.below(4) == 0 => {
            let _ = live.grow(n, 1 + rng.below(3));
        }
        6 => {
            *live = live.crash(None);
        }
        7 => {
            // After these turns the removals are durable, so the crash must not undo them.
            live.run(60);
            let seed = rng.next_u64();
            *live = live.crash(Some(seed));
        }
        8 => live.engine.context().memory.clear(),
        _ => live.run(rng.below(5) as usize),
    }
}
