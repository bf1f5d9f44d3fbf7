//! Build caches with a store on a disk: concurrent writers and readers, and a disk that is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foxy_disk::{Fault, FaultPlan, FaultRule, MemDisk, OpClass};

use super::{CI, ask, bytes, config, get, put, role, sha};
use crate::common::Stored;

/// Starts a build cache with a store of `disk` bytes.
fn on_disk(disk: u64, workers: usize) -> Stored {
    let disk = Arc::new(MemDisk::new(disk, 512, 1));
    Stored::serving(role(64 << 20), disk, config(), 16 << 20, workers)
}

#[test]
fn readers_get_one_of_the_wholes_that_writers_store() {
    let build = on_disk(512 << 20, 2);
    let foxy = &build.foxy;
    const WRITERS: u64 = 3;
    const ROUNDS: u64 = 12;
    let lengths = [100, 40_000, 700_000, 2_500_000];
    let of = |writer: u64, round: u64| {
        let seed = 1 + writer * ROUNDS + round;
        let mut body = seed.to_le_bytes().to_vec();
        body.extend(bytes(seed, lengths[(seed % 4) as usize]));
        body
    };
    let done = AtomicBool::new(false);
    let reads = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let status = put(foxy, "/one", CI, &of(writer, round));
                        assert!(matches!(status, 201 | 204 | 503), "{status}");
                    }
                })
            })
            .collect();
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut whole = 0;
                    while !done.load(Ordering::SeqCst) {
                        let answer = ask(foxy, "GET", "/one", "", b"");
                        // If the object is replaced during the answer, the answer may be truncated.
                        if answer.status == 404 || !answer.whole {
                            continue;
                        }
                        let seed = u64::from_le_bytes(answer.body[..8].try_into().unwrap());
                        let (writer, round) = ((seed - 1) / ROUNDS, (seed - 1) % ROUNDS);
                        assert!(answer.body == of(writer, round), "a mix at {seed}");
                        whole += 1;
                    }
                    whole
                })
            })
            .collect();
        let written = writers.into_iter().map(|writer| writer.join());
        let written = written.collect::<Vec<_>>();
        done.store(true, Ordering::SeqCst);
        let reads: u64 = readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .sum();
        assert!(written.iter().all(Result::is_ok));
        reads
    });
    assert!(reads > 0);
    // After all this, an object can still be stored and read under this path. While the store still has much
    // to write, Foxy may refuse the object with 503.
    build.settle(0);
    let last = of(0, 1);
    assert_eq!(put(foxy, "/one", CI, &last), 204);
    assert_eq!(get(foxy, "/one"), (200, last));
}

#[test]
fn a_full_store_forgets_the_oldest_and_never_gives_a_part() {
    let build = on_disk(64 << 20, 1);
    let foxy = &build.foxy;
    let body = |n: u64| bytes(100 + n, 3 << 20);
    let path = |n: u64| format!("/cas/{}", sha(&body(n)));
    let mut stored = 0;
    for n in 0..40 {
        match put(foxy, &path(n), CI, &body(n)) {
            201 => stored += 1,
            503 => {}
            status => panic!("{status}"),
        }
    }
    assert!(stored >= 30, "{stored}");
    let mut found = 0;
    for n in 0..40 {
        let head = ask(foxy, "HEAD", &path(n), "", b"").status;
        match get(foxy, &path(n)) {
            (200, got) => {
                assert!(got == body(n), "{n}");
                assert_eq!(head, 200);
                found += 1;
            }
            (404, _) => {}
            (status, _) => panic!("{status}"),
        }
    }
    assert!((1..40).contains(&found), "{found}");
}

#[test]
fn a_removal_that_a_power_cut_could_undo_is_no_success() {
    let build = on_disk(64 << 20, 1);
    assert_eq!(put(&build.foxy, "/one", CI, b"text"), 201);
    build.settle(0);
    let rule = FaultRule::new(OpClass::Flush, Fault::EIO);
    build.disk.set_faults(FaultPlan::none().and(rule));
    assert_eq!(ask(&build.foxy, "DELETE", "/one", CI, b"").status, 500);
    assert_eq!(get(&build.foxy, "/one").0, 404);
}
