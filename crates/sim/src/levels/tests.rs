//! Compares the levels with a second implementation of two LRU levels (`Cascade`), and checks that the disk
//! operations of the levels are consistent with each other.

use std::collections::HashMap;

use foxy_trace::{
    Flags,
    analysis::Cascade,
    generate::{ZipfWeb, ZipfWebConfig},
};

use super::*;

fn ask(object: u64, size: u64) -> Request {
    Request {
        object,
        size,
        server: 7,
        ..Request::default()
    }
}

fn run(levels: &mut Levels, requests: &[Request]) -> (Vec<Outcome>, Vec<DiskOp>) {
    let mut ops = Vec::new();
    let outcomes = requests
        .iter()
        .map(|r| levels.request(r, &mut ops))
        .collect();
    (outcomes, ops)
}

fn short(ops: &[DiskOp]) -> String {
    ops.iter()
        .map(|op| {
            let kind = match op.kind {
                DiskOpKind::Read => 'r',
                DiskOpKind::Write => 'w',
                DiskOpKind::Delete => 'd',
            };
            format!("{kind}{}:{} ", op.object, op.size)
        })
        .collect()
}

#[test]
fn levels_by_hand() {
    let mut levels = Levels::new(LevelsConfig::lru(10, 25));
    let requests: Vec<_> = [(1, 10), (1, 10), (2, 10), (1, 10), (3, 10), (2, 10), (3, 9)]
        .map(|(o, s)| ask(o, s))
        .into();
    let (outcomes, ops) = run(&mut levels, &requests);
    use Outcome::{DiskHit, Miss, Modified, RamHit};
    assert_eq!(
        outcomes,
        [Miss, RamHit, Miss, DiskHit, Miss, Miss, Modified]
    );
    assert_eq!(
        short(&ops),
        "w1:10 w2:10 r1:10 d2:10 w3:10 d1:10 w2:10 d3:10 w3:9 "
    );
    assert_eq!(levels.counts().disk_ops(), ops.len() as u64);
    assert_eq!((levels.disk_used(), levels.disk_objects()), (19, 2));
    assert!(ops.iter().all(|op| op.server == 7));
}

#[test]
fn what_no_level_sees_and_what_the_disk_refuses() {
    let config = LevelsConfig {
        disk_policy: PolicyKind::LruTh(5),
        ..LevelsConfig::lru(0, 100)
    };
    let mut levels = Levels::new(config);
    let private = Request {
        flags: Flags::UNCACHEABLE,
        ..ask(1, 5)
    };
    let requests = [
        private,
        ask(2, 0),
        ask(3, 6),
        ask(3, 6),
        ask(4, 5),
        ask(4, 0),
        ask(4, 6),
        ask(4, 5),
    ];
    let (outcomes, ops) = run(&mut levels, &requests);
    use Outcome::{Bypass, DiskHit, Miss, Modified};
    assert_eq!(
        outcomes,
        [Bypass, Bypass, Miss, Miss, Miss, DiskHit, Modified, Miss]
    );
    assert_eq!(short(&ops), "w4:5 r4:5 d4:5 w4:5 ");
    assert_eq!(levels.counts().bypassed, 2);
}

#[test]
fn water_marks_delete_in_batches() {
    let config = LevelsConfig {
        watermarks: Some(Watermarks {
            low: 0.5,
            high: 0.8,
        }),
        ..LevelsConfig::lru(0, 100)
    };
    let mut levels = Levels::new(config);
    let requests: Vec<_> = (0..9).map(|o| ask(o, 10)).collect();
    let (_, ops) = run(&mut levels, &requests);
    let writes: String = (0..8).map(|o| format!("w{o}:10 ")).collect();
    assert_eq!(short(&ops), writes + "d0:10 d1:10 d2:10 w8:10 ");
}

fn stream(requests: u64) -> impl Iterator<Item = Request> {
    let config = ZipfWebConfig {
        requests,
        objects: 30_000,
        modified: 0.02,
        ..Default::default()
    };
    ZipfWeb::new(config, 5)
}

#[test]
fn lru_levels_count_as_the_exact_cascade_does() {
    let (ram, disk) = (8 << 20, 60 << 20);
    let (mut levels, mut cascade, mut ops) = (
        Levels::new(LevelsConfig::lru(ram, disk)),
        Cascade::new(ram, disk),
        Vec::new(),
    );
    for request in stream(60_000) {
        levels.request(&request, &mut ops);
        cascade.add(request.object, request.size);
    }
    let (ours, theirs) = (levels.counts(), cascade.report());
    assert_eq!(
        (
            ours.requests,
            ours.ram_hits,
            ours.disk_hits,
            ours.misses,
            ours.deletes
        ),
        (
            theirs.requests,
            theirs.memory_hits,
            theirs.disk_hits,
            theirs.misses,
            theirs.deletes
        )
    );
    assert!(ours.modified > 100 && ours.deletes > 1_000 && ours.disk_hits > 1_000);
}

#[test]
fn every_policy_gives_a_consistent_stream() {
    for policy in PolicyKind::EACH {
        for watermarks in [
            None,
            Some(Watermarks {
                low: 0.8,
                high: 0.9,
            }),
        ] {
            let config = LevelsConfig {
                ram: 4 << 20,
                ram_policy: policy,
                disk: 30 << 20,
                disk_policy: policy,
                watermarks,
            };
            consistent(config);
        }
    }
}

/// Checks that no present object is written, that no absent object is read or deleted, and that capacity
/// is never exceeded.
fn consistent(config: LevelsConfig) {
    let (mut levels, mut ops, mut live) = (Levels::new(config), Vec::new(), HashMap::new());
    for request in stream(30_000) {
        ops.clear();
        levels.request(&request, &mut ops);
        for op in &ops {
            match op.kind {
                DiskOpKind::Read => assert_eq!(live.get(&op.object), Some(&op.size)),
                DiskOpKind::Write => assert_eq!(live.insert(op.object, op.size), None),
                DiskOpKind::Delete => assert_eq!(live.remove(&op.object), Some(op.size)),
            }
        }
        let bytes: u64 = if levels.counts().requests.is_multiple_of(997) {
            live.values().sum()
        } else {
            levels.disk_used()
        };
        assert_eq!(bytes, levels.disk_used());
        assert!(bytes <= config.disk);
    }
    assert_eq!(live.len(), levels.disk_objects(), "{config:?}");
    let counts = levels.counts();
    assert_eq!(
        counts.ram_hits + counts.disk_hits + counts.misses,
        counts.requests
    );
    assert!(
        counts.deletes > 0 && counts.disk_hits > 0,
        "{config:?} {counts:?}"
    );
}

#[test]
fn the_quick_form_of_lru_over_lru_is_the_plain_one() {
    for (ram, disk) in [
        (8 << 20, 60 << 20),
        (0, 10 << 20),
        (20 << 20, 5 << 20),
        (9_000, 7_000),
    ] {
        for watermarks in [None, Watermarks::new(0.7, 0.9).ok()] {
            let config = LevelsConfig {
                watermarks,
                ..LevelsConfig::lru(ram, disk)
            };
            let (mut quick, mut plain) = (Levels::new(config), Levels::new(config));
            plain.store = Store::any(&config);
            for (number, mut request) in stream(30_000).enumerate() {
                if number % 50 == 0 {
                    request.size = 0;
                }
                let (mut a, mut b) = (Vec::new(), Vec::new());
                let outcomes = (
                    quick.request(&request, &mut a),
                    plain.request(&request, &mut b),
                );
                assert_eq!(outcomes.0, outcomes.1, "{number} of {config:?}");
                assert_eq!(a, b, "{number} of {config:?}");
                assert_eq!(quick.disk_used(), plain.disk_used());
            }
            assert_eq!(quick.counts(), plain.counts());
            assert_eq!(quick.disk_objects(), plain.disk_objects());
        }
    }
}
