//! The memory budget changes while the engine runs.

use super::rig::Rig;

const LARGE: u64 = 64 << 20;
const SMALL: u64 = 2 << 20;

fn key(n: usize) -> String {
    format!("{n}")
}

/// Makes an engine with a store that has 1,000 objects of 8 KiB.
fn filled() -> Rig {
    let mut rig = Rig::new(512, LARGE, 3);
    for n in 0..1_000 {
        rig.put(&key(n), &[b'x'; 8 << 10]);
        rig.turns(2);
    }
    rig
}

#[test]
fn the_ram_tier_follows_the_budget_and_objects_stay_on_disk() {
    let rig = filled();
    let before = rig.engine.stats();
    assert!(before.ram_bytes > SMALL, "{before:?}");

    rig.engine.set_memory(SMALL);
    let small = rig.engine.stats();
    assert_eq!(small.memory.budget, SMALL);
    assert!(small.ram_capacity < SMALL && small.ram_bytes <= small.ram_capacity);
    for n in 0..1_000 {
        assert!(rig.get(&key(n)).is_some(), "{n}");
    }

    rig.engine.set_memory(LARGE);
    assert!(rig.engine.stats().ram_capacity >= before.ram_capacity);
}

#[test]
fn as_much_waits_to_be_written_as_the_budget_of_now_allows() {
    let mut rig = Rig::new(64, LARGE, 3);
    let mut waiting = |budget: u64| {
        rig.engine.set_memory(budget);
        for n in 0..2_000 {
            rig.put(&key(n), &[b'x'; 8 << 10]);
        }
        let (waits, allowed) = (
            rig.engine.stats().pending_bytes,
            rig.engine.stats().memory.pending,
        );
        assert!(waits <= allowed && waits + (16 << 10) > allowed);
        rig.settle();
        assert_eq!(rig.engine.stats().pending_bytes, 0);
        allowed
    };
    assert!(waiting(SMALL) < waiting(LARGE));
    assert_eq!(waiting(SMALL), SMALL / 2);
}
