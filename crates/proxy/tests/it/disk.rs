//! Hits that come from a store's disk.

use crate::common::{Origin, Stored, until};
use foxy_disk::{Fault, FaultPlan, FaultRule, OpClass};
use foxy_proxy::{Event, Outcome};
use foxy_store::Health;

/// Number of requested objects. All objects together are far larger than the memory.
const OBJECTS: usize = 400;

fn body(path: &str) -> Vec<u8> {
    let n = path.len() * 1000 + 9000;
    path.bytes().cycle().take(n).collect()
}

#[test]
fn what_left_memory_comes_from_disk_byte_for_byte() {
    let stored = Stored::start(2 << 20, 64 << 20, 2);
    let foxy = &stored.foxy;
    let origin = Origin::start(|asked| {
        let body = body(asked.path());
        asked.reply("200 OK", "Cache-Control: max-age=86400\r\n", body);
        true
    });
    for n in 0..OBJECTS {
        let path = format!("/{n}");
        assert!(foxy.get(&origin, &path).body == body(&path));
        // The test waits for the writer, because objects that do not fit into the writer's queue are not
        // stored.
        stored.settle(400_000);
    }
    let misses = origin.asked();
    for n in 0..OBJECTS {
        let path = format!("/{n}");
        assert!(foxy.get(&origin, &path).body == body(&path), "{path}");
    }
    let totals = foxy.proxy.totals();
    let again = origin.asked() - misses;
    assert!(
        again < OBJECTS / 20,
        "{again} of {OBJECTS} were fetched again"
    );
    assert!(
        totals.outcome(Outcome::DiskHit) > OBJECTS as u64 / 2,
        "{totals:?}"
    );
    assert_eq!(totals.event(Event::DiskReadMisses), 0);
}

/// An origin whose bodies depend only on the paths.
fn origin() -> Origin {
    Origin::start(|asked| {
        let body = body(asked.path());
        asked.reply("200 OK", "Cache-Control: max-age=86400\r\n", body);
        true
    })
}

/// Puts [`OBJECTS`] objects on disk. The memory is too small for all of them.
fn filled() -> (Stored, Origin) {
    let (stored, origin) = (Stored::start(2 << 20, 64 << 20, 2), origin());
    for n in 0..OBJECTS {
        stored.foxy.get(&origin, &format!("/{n}"));
        stored.settle(400_000);
    }
    stored.settle(0);
    (stored, origin)
}

fn ask_for_all(stored: &Stored, origin: &Origin) {
    for n in 0..OBJECTS {
        let path = format!("/{n}");
        let answer = stored.foxy.get(origin, &path);
        assert!(answer.status == 200 && answer.whole, "{path}: {answer:?}");
        assert!(answer.body == body(&path), "{path}");
    }
}

#[test]
fn a_disk_that_fails_or_lies_costs_no_request() {
    for fault in [
        Fault::EIO,
        Fault::Short(512),
        Fault::Misdirected(1 << 20),
        Fault::BitRot(3),
    ] {
        let (stored, origin) = filled();
        let rule = FaultRule::new(OpClass::Read, fault).chance(0.5);
        stored.disk.set_faults(FaultPlan::none().and(rule));
        ask_for_all(&stored, &origin);
        ask_for_all(&stored, &origin);
        let totals = stored.foxy.proxy.totals();
        assert!(totals.event(Event::DiskReadMisses) > 0, "{fault:?}");
        assert_eq!(totals.event(Event::Aborted), 0, "{fault:?}");
    }
}

/// From now on, every read of the disk takes half a second.
fn answer_late(stored: &Stored) {
    let late = Fault::Delay(std::time::Duration::from_millis(500));
    let rule = FaultRule::new(OpClass::Read, late);
    stored.disk.set_faults(FaultPlan::none().and(rule));
}

#[test]
fn a_disk_asked_for_too_much_is_asked_for_less_and_every_request_answered() {
    let (stored, origin) = filled();
    answer_late(&stored);
    // These reads run one after the other, so they show each worker that the disk is slow. Many reads at the
    // same time would not show this. They would all end together, and a worker estimates the duration of a
    // read by the time between two ends.
    for n in 300..308 {
        let answer = stored.foxy.get(&origin, &format!("/{n}"));
        assert!(answer.whole && answer.body == body(&format!("/{n}")), "{n}");
    }
    for wave in 0..3 {
        std::thread::scope(|scope| {
            for n in wave * 60..wave * 60 + 60 {
                let (stored, origin) = (&stored, &origin);
                scope.spawn(move || {
                    let path = format!("/{n}");
                    let answer = stored.foxy.get(origin, &path);
                    assert!(answer.whole && answer.body == body(&path), "{path}");
                });
            }
        });
    }
    let totals = stored.foxy.proxy.totals();
    assert!(totals.event(Event::DiskReadsDeclined) > 0, "{totals:?}");
}

#[test]
fn requests_for_one_object_share_its_read() {
    let (stored, origin) = filled();
    answer_late(&stored);
    let event = |event| stored.foxy.proxy.totals().event(event);
    // The store's writer also reads the disk. The test subtracts these reads, which the writer counts.
    let reads = || {
        let by_writer = stored.foxy.engine.stats().stores[0].counts.reads;
        stored.disk.counts().reads.saturating_sub(by_writer)
    };
    let before = (reads(), event(Event::DiskReads));
    // Sixteen requests for one object are sent at the same time. They share a disk read if they arrive while
    // the read for the first of them is under way. The loop ends as soon as this has happened.
    for n in 0..20 {
        std::thread::scope(|scope| {
            for _ in 0..16 {
                let (foxy, origin) = (&stored.foxy, &origin);
                scope.spawn(move || {
                    let path = format!("/{n}");
                    let answer = foxy.get(origin, &path);
                    assert!(answer.whole && answer.body == body(&path), "{path}");
                });
            }
        });
        if event(Event::DiskReadsShared) > 0 {
            break;
        }
    }
    assert!(event(Event::DiskReadsShared) > 0, "each read for itself");
    let own = event(Event::DiskReads) - before.1;
    // A shared read counts as one read. Disk and proxy count a read at different moments. So the test waits
    // until both counts are equal.
    until(|| reads() - before.0 == own);
}

#[test]
fn a_store_that_goes_offline_leaves_a_proxy_that_works_from_memory() {
    let (stored, origin) = filled();
    let always = |on| FaultRule::new(on, Fault::EIO);
    let plan = FaultPlan::none()
        .and(always(OpClass::Read))
        .and(always(OpClass::Write))
        .and(always(OpClass::Flush));
    stored.disk.set_faults(plan);
    ask_for_all(&stored, &origin);
    ask_for_all(&stored, &origin);
    let health = stored.foxy.engine.stats().stores[0].health;
    assert_eq!(health, Health::Offline);
    stored.foxy.get(&origin, "/new");
    let again = stored.foxy.get(&origin, "/new");
    assert!(again.cache().contains("memory-hit"), "{}", again.head);
}

#[test]
fn a_disk_that_never_answers_is_not_waited_for() {
    let (stored, origin) = filled();
    let stuck = FaultRule::new(OpClass::Read, Fault::Stuck);
    stored.disk.set_faults(FaultPlan::none().and(stuck));
    let asked = origin.asked();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (foxy, origin) = (&stored.foxy, &origin);
            scope.spawn(move || {
                let path = format!("/{n}");
                assert!(foxy.get(origin, &path).body == body(&path), "{path}");
            });
        }
    });
    assert!(origin.asked() > asked, "some of them were on disk");
    stored.disk.unstick();
    stored.disk.set_faults(FaultPlan::none());
    ask_for_all(&stored, &origin);
}
