//! Loading with two lanes at the same time (each fills its own part of the index), and with many entries in
//! one step.

use std::collections::BTreeSet;

use super::rig::{Rig, hash, options};
use crate::*;

const MEMORY: u64 = 2 << 20;
const KEYS: u32 = 9000;

/// Makes a store with about twenty segments of tiny objects. Of the objects, a third are put again, and some
/// are removed.
fn written() -> (Rig, BTreeSet<u32>) {
    let mut rig = Rig::new(64, MEMORY, 5);
    let mut put = |range: std::ops::Range<u32>, step: usize, version: &str| {
        for (n, number) in range.step_by(step).enumerate() {
            rig.put(&format!("{number}"), version.as_bytes());
            if n % 64 == 63 {
                rig.settle();
            }
        }
        rig.settle();
    };
    put(0..KEYS, 1, "1");
    put(0..KEYS, 3, "2");
    let gone: BTreeSet<u32> = (0..KEYS).step_by(7).collect();
    for n in &gone {
        rig.supersede(&n.to_string());
    }
    rig.settle();
    (rig, gone)
}

fn at_once(load_steps: usize) -> StoreOptions {
    StoreOptions {
        load_steps,
        ..options()
    }
}

fn expected(n: u32, gone: &BTreeSet<u32>) -> Option<&'static str> {
    match n {
        n if gone.contains(&n) => None,
        n if n % 3 == 0 => Some("2"),
        _ => Some("1"),
    }
}

#[test]
fn many_segments_at_once_give_what_one_after_the_other_gives() {
    let (rig, gone) = written();
    let sealed = rig.counts().sealed;
    let mut loaded = Vec::new();
    for steps in [64, 1] {
        let mut again = Rig::open(rig.disk.kill(), MEMORY, 6, at_once(steps));
        again.settle();
        let counts = again.counts();
        assert!(counts.load_slots >= sealed, "{counts:?}");
        loaded.push((counts.loaded, counts.load_skipped));
        for n in 0..KEYS {
            let text = again.text(&n.to_string());
            assert_eq!(text.as_deref(), expected(n, &gone), "{n} at {steps}");
        }
    }
    assert_eq!(loaded[0], loaded[1]);
}

#[test]
fn what_is_removed_while_loading_stays_removed() {
    let (rig, mut gone) = written();
    let mut again = Rig::open(rig.disk.kill(), MEMORY, 7, at_once(64));
    let late: Vec<u32> = (0..KEYS).step_by(5).collect();
    std::thread::scope(|scope| {
        let (engine, late) = (again.engine.clone(), &late);
        let removing = scope.spawn(move || {
            for n in late {
                let key = n.to_string();
                engine.supersede(hash(&key), key.as_bytes());
            }
        });
        again.settle();
        removing.join().unwrap();
    });
    again.settle();
    gone.extend(late);
    // The contents are checked now, and again after another start.
    for rig in [&again, &again.kill()] {
        for n in 0..KEYS {
            assert_eq!(
                rig.text(&n.to_string()).as_deref(),
                expected(n, &gone),
                "{n}"
            );
        }
    }
}
