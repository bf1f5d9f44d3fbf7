//! Tests of reads that include the neighbours of an object. If objects are requested together, Foxy needs
//! fewer reads. If objects are requested alone, it reads no extra bytes. No read returns an outdated version
//! of an object.

use std::sync::Arc;

use foxy_base::Rng;
use foxy_disk::{Fault, FaultRule, OpClass};

use super::rig::{Rig, hash};
use crate::*;

const PAGES: u64 = 500;
const OBJECTS: u64 = 11;
const MEMORY: u64 = 1 << 20;

fn key(page: u64, n: u64) -> String {
    format!("{} page {page} object {n}", page % 5)
}

fn body(page: u64, n: u64) -> Vec<u8> {
    format!("{page}/{n} ").repeat(30).into_bytes()
}

/// Makes a store with pages, and clears memory. The objects of a page are stored one after another.
fn pages() -> Rig {
    let mut rig = Rig::new(64, MEMORY, 3);
    for page in 0..PAGES {
        for n in 0..OBJECTS {
            rig.put(&key(page, n), &body(page, n));
        }
        rig.settle();
    }
    rig.engine.context().memory.clear();
    rig
}

/// Returns the object for a request. With `widen`, the read includes the neighbours of the object; without
/// it, the read covers only the object.
fn get(rig: &Rig, key: &str, widen: bool) -> Option<Arc<Object>> {
    for _ in 0..2 {
        let plan = match rig.engine.reads().lookup(hash(key), key.as_bytes()) {
            Lookup::Memory(object) => return Some(object),
            Lookup::Miss => return None,
            Lookup::Disk(plan) if widen => rig.engine.reads().widen(&plan),
            Lookup::Disk(plan) => plan,
        };
        match rig.read(&plan) {
            Ok(buf) => {
                return rig
                    .engine
                    .reads()
                    .finish_read(&plan, key.as_bytes(), buf)
                    .ok();
            }
            Err(error) => match rig.engine.reads().fail_read(&plan, &error) {
                ReadMiss::Moved => {}
                _ => return None,
            },
        }
    }
    None
}

/// Visits random pages with all their objects. Returns the number of device reads.
fn visit(rig: &Rig, pages: u64, widen: bool, seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let before = rig.disk.counts().reads;
    for _ in 0..pages {
        let page = rng.below(PAGES);
        for n in 0..OBJECTS {
            let object = get(rig, &key(page, n), widen).unwrap();
            assert_eq!(object.body()[..], body(page, n)[..]);
        }
        let stats = rig.engine.stats();
        assert!(stats.ram_bytes <= stats.ram_capacity);
    }
    rig.disk.counts().reads - before
}

/// Makes the `ReadAround` rule allow longer reads, whatever reads it has counted before.
fn insist(rig: &Rig) {
    let store = rig.engine.fleet().store(StoreId(0)).unwrap();
    let mut rule = store.around.rule();
    while !rule.is_on() {
        rule.read(7);
    }
}

#[test]
fn a_page_is_read_at_once() {
    let rig = pages();
    let alone = visit(&rig, 300, false, 1);
    rig.engine.context().memory.clear();
    let around = visit(&rig, 300, true, 1);
    assert!(around * 3 < alone, "{around} reads, else {alone}");
    let counts = rig.engine.stats().counts;
    assert!(counts.prefetched >= counts.prefetch_hits);
    assert!(counts.prefetch_hits + around >= alone, "{counts:?}");
    assert_eq!(rig.engine.context().memory.budget().wide(), 0);
}

#[test]
fn what_is_asked_for_alone_is_read_alone() {
    let rig = pages();
    let mut rng = Rng::new(2);
    let mut ask = |times: u64| {
        for _ in 0..times {
            let page = rng.below(PAGES);
            assert!(get(&rig, &key(page, rng.below(OBJECTS)), true).is_some());
        }
        rig.engine.stats().counts.wide_reads
    };
    assert_eq!(ask(2_000), 0);
    insist(&rig);
    let disappointed = ask(2_000);
    assert!((1..=128).contains(&disappointed), "{disappointed}");
    assert_eq!(ask(2_000), disappointed);
}

/// Old versions, purged objects and objects that are already in memory are among the neighbours too.
#[test]
fn what_lies_around_is_taken_only_if_it_is_the_latest() {
    let mut rig = pages();
    for page in 0..PAGES {
        rig.put(&key(page, 3), b"new");
        rig.supersede(&key(page, 4));
        rig.engine
            .purge(hash(&key(page, 5)), key(page, 5).as_bytes());
    }
    rig.settle();
    rig.engine.context().memory.clear();
    let mut brought = 0;
    for page in 0..PAGES {
        insist(&rig);
        assert!(get(&rig, &key(page, 2), true).is_some());
        brought += u64::from(rig.plan(&key(page, 6)).is_none());
        assert!(get(&rig, &key(page, 4), true).is_none());
        assert!(get(&rig, &key(page, 5), true).is_none());
        let new = get(&rig, &key(page, 3), true);
        assert!(new.is_none_or(|object| object.body()[..] == b"new"[..]));
    }
    assert!(brought > PAGES / 2, "{brought} pages");
}

#[test]
fn longer_reads_under_way_have_a_bound() {
    let rig = pages();
    let (mut under_way, mut rng) = (Vec::new(), Rng::new(4));
    for _ in 0..200 {
        insist(&rig);
        if let Some(plan) = rig.plan(&key(rng.below(PAGES), 1)) {
            under_way.push(rig.engine.reads().widen(&plan));
        }
    }
    let bytes: u64 = under_way
        .iter()
        .filter(|p| p.wide)
        .map(|p| u64::from(p.len))
        .sum();
    assert!((1..=MEMORY / 128).contains(&bytes), "{bytes}");
    for plan in under_way {
        rig.engine.reads().late_read(&plan);
    }
    assert_eq!(rig.engine.context().memory.budget().wide(), 0);
}

/// A bad sector beside an object must not make the object unreadable.
#[test]
fn a_longer_read_that_fails_is_made_again_alone() {
    let rig = pages();
    let bad = rig.plan(&key(50, 6)).unwrap();
    let rule = FaultRule::new(OpClass::Read, Fault::EIO).within(bad.at..bad.at + 512);
    rig.disk.set_faults(rule);
    insist(&rig);
    assert!(get(&rig, &key(50, 2), true).is_some());
    assert_eq!(rig.disk.counts().faults, 1);
    assert!(get(&rig, &key(50, 6), true).is_none());
    assert_eq!(rig.counts().read_errors, 1);
}
