//! Sparse objects: fragments are put in any order, and compared with a model of the bytes that are
//! there.

use std::collections::BTreeMap;

use bytes::Bytes;
use foxy_base::{FieldBlock, Rng};
use foxy_disk::{BufPool, MemDisk};

use super::rig::{Rig, hash, options};
use crate::{Lookup, NewLarge, ObjectMeta, Places, StoreOptions};

const SEED: u64 = 0x5ba5e;

fn new(key: &'static str) -> NewLarge {
    NewLarge {
        key: key.into(),
        hash: hash(key),
        group: 1,
        meta: ObjectMeta::default(),
        vary: Bytes::new(),
        tags: Bytes::new(),
        fields: FieldBlock::empty(),
        length: None,
    }
}

fn byte(at: u64) -> u8 {
    (at % 251) as u8
}

#[test]
fn fragments_come_in_any_order_and_only_whole_ones_stay() {
    let mut rig = Rig::new(32, 4 << 20, 9);
    let unit = u64::from(rig.engine.fragment_bytes());
    let length = unit * 12 + 77;
    let head = rig.engine.put_sparse(&new("s"), length).object;
    let mut rng = Rng::new(SEED);
    let mut there = BTreeMap::new();
    for _ in 0..12 {
        let from = rng.below(length);
        let to = (from + rng.below(3 * unit)).min(length);
        let mut put = rig.engine.put_fragments(&head, from);
        let mut at = from;
        while at < to {
            let piece = (at + 1 + rng.below(unit)).min(to);
            let bytes: Vec<u8> = (at..piece).map(byte).collect();
            put.append(&bytes);
            at = piece;
        }
        for n in 0..head.fragment_count() {
            let (start, end) = (u64::from(n) * unit, (u64::from(n + 1) * unit).min(length));
            if from <= start && end <= to {
                there.insert(n, ());
            }
        }
        rig.settle();
        for n in 0..head.fragment_count() {
            let found = rig.fragment(&head, n);
            assert_eq!(found.is_some(), there.contains_key(&n), "fragment {n}");
            assert_eq!(rig.engine.has_fragment(&head, n), found.is_some());
            if let Some(found) = found {
                let start = u64::from(n) * unit;
                let right = found
                    .body()
                    .iter()
                    .zip(start..)
                    .all(|(b, at)| *b == byte(at));
                assert!(right, "fragment {n}");
            }
        }
    }
}

#[test]
fn a_version_that_is_replaced_can_be_read_to_its_end() {
    let mut rig = Rig::new(32, 4 << 20, 10);
    let unit = u64::from(rig.engine.fragment_bytes());
    let head = rig.engine.put_sparse(&new("s"), unit * 3).object;
    let mut put = rig.engine.put_fragments(&head, 0);
    put.append(&vec![1; unit as usize]);
    assert_eq!(put.readable(), Some(unit));
    rig.supersede("s");
    put.append(&vec![2; unit as usize]);
    assert_eq!(put.readable(), Some(2 * unit));
    // A lookup finds only the new version; a reader with the old head reads the old bytes.
    let newer = rig.engine.put_sparse(&new("s"), unit * 3).object;
    put.append(&vec![3; unit as usize]);
    assert_eq!(put.readable(), Some(3 * unit));
    rig.settle();
    assert_eq!(rig.get("s").unwrap().meta().version, newer.meta().version);
    for n in 0..3 {
        let body = rig.fragment(&head, n).unwrap().body().clone();
        assert!(body.iter().all(|b| u32::from(*b) == n + 1));
        assert!(rig.fragment(&newer, n).is_none());
    }
    // Bytes beyond the length are ignored.
    let head = rig.engine.put_sparse(&new("s"), unit + 1).object;
    let mut put = rig.engine.put_fragments(&head, 0);
    put.append(&vec![1; 2 * unit as usize]);
    assert_eq!(put.readable(), Some(unit + 1));
    assert_eq!(rig.fragment(&head, 1).unwrap().body().len(), 1);
}

#[test]
fn reuse_keeps_what_is_read_of_a_replaced_version_and_nothing_longer() {
    let mut rig = Rig::new(32, 1 << 20, 11);
    let unit = u64::from(rig.engine.fragment_bytes());
    let length = unit * 6 + 5;
    let head = rig.engine.put_sparse(&new("s"), length).object;
    let mut put = rig.engine.put_fragments(&head, 0);
    put.append(&(0..length).map(byte).collect::<Vec<u8>>());
    drop(put);
    rig.settle();
    assert!(rig.put("s", b"newer").admitted.is_visible());
    // The whole log is overwritten three times.
    for round in ["a", "b", "c"] {
        rig.fill(round, 1000);
        for n in 0..head.fragment_count() {
            let found = rig.fragment(&head, n).expect("held");
            let start = u64::from(n) * unit;
            let mut right = found.body().iter().zip(start..);
            assert!(right.all(|(b, at)| *b == byte(at)), "fragment {n}");
        }
    }
    assert!(rig.counts().reused > 60, "{:?}", rig.counts());
    let mut unheld = (*head).clone();
    drop(head);
    assert!(rig.engine.has_fragment(&unheld, 0));
    unheld.hold = None;
    rig.fill("d", 2000);
    assert!((0..7).all(|n| !rig.engine.has_fragment(&unheld, n)));
}

#[test]
fn reuse_keeps_what_is_read_of_a_present_version() {
    let mut rig = Rig::new(32, 1 << 20, 13);
    let unit = u64::from(rig.engine.fragment_bytes());
    let head = rig.engine.put_sparse(&new("s"), unit * 6).object;
    let mut put = rig.engine.put_fragments(&head, 0);
    put.append(&(0..unit * 6).map(byte).collect::<Vec<u8>>());
    drop(put);
    rig.settle();
    // As with a slow reader, the head is requested again and again, and the last fragments are not requested
    // yet.
    for round in 0..1000 {
        rig.fill(&format!("{round}"), 5);
        assert!(rig.get("s").is_some());
    }
    assert!(rig.counts().reused > 60, "{:?}", rig.counts());
    assert!((0..6).all(|n| rig.fragment(&head, n).is_some()));
}

#[test]
fn a_purged_version_is_not_put_any_further() {
    let rig = Rig::new(32, 4 << 20, 12);
    let unit = u64::from(rig.engine.fragment_bytes());
    let head = rig.engine.put_sparse(&new("s"), unit * 2).object;
    let mut put = rig.engine.put_fragments(&head, 0);
    put.append(&vec![1; unit as usize]);
    let all = super::purges::purge(crate::PurgeKind::All, "", false);
    let _ticket = rig
        .engine
        .purges()
        .purge_many(&all, Places::Reserved)
        .unwrap();
    put.append(&vec![1; unit as usize]);
    assert_eq!(put.readable(), None);
}

/// Read buffers have size classes. A fragment of the usual size fits into a buffer with little waste, so it
/// stays where it was read. A copy would cost more than the read.
#[test]
fn a_fragment_stays_in_the_buffer_it_was_read_into() {
    let options = StoreOptions {
        segment_bytes: Some(4 << 20),
        cluster_bytes: StoreOptions::default().cluster_bytes,
        ..options()
    };
    let disk = MemDisk::new(64 << 20, 4096, 3);
    let mut rig = Rig::open(disk, 64 << 20, 3, options);
    let unit = rig.engine.fragment_bytes() as usize;
    let head = rig.engine.put_sparse(&new("s"), 8 * unit as u64).object;
    let mut put = rig.engine.put_fragments(&head, 0);
    for n in 0..8 {
        put.append(&vec![n; unit]);
    }
    drop(put);
    rig.settle();
    let mut again = rig.kill();
    again.settle();
    let head = again.get("s").unwrap();
    let pool = BufPool::new(1 << 20);
    for n in 0..8 {
        let Lookup::Disk(plan) = again.engine.reads().fragment_lookup(&head, n) else {
            panic!("fragment {n} is not on disk");
        };
        let mut buf = pool.take(plan.len as usize);
        buf.copy_from_slice(&again.read(&plan).unwrap());
        let within = buf.as_ptr_range();
        let found = again
            .engine
            .reads()
            .finish_fragment(&plan, &head, n, buf)
            .unwrap();
        assert_eq!(found.body()[..], vec![n as u8; unit][..]);
        assert!(within.contains(&found.body().as_ptr()), "{n} was copied");
    }
}
