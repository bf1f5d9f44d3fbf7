//! Large objects are stored in fragments. If fragments that a request needs are missing, the request is a
//! miss, and the answer is never truncated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::common::{Answer, Foxy, Origin, Stored};
use foxy_disk::{Fault, FaultPlan, FaultRule, OpClass};
use foxy_proxy::Event;
use foxy_store::Lookup;

const LEN: usize = 1_000_003;

fn body() -> Vec<u8> {
    (0..LEN).map(|i| (i % 251) as u8).collect()
}

/// An origin with one long body and without a strong validator, so the rest of the body cannot be requested.
fn origin() -> Origin {
    Origin::start(|asked| {
        let fields =
            "Cache-Control: max-age=60\r\nLast-Modified: Fri, 20 Nov 2026 11:00:00 GMT\r\n";
        let body = body();
        match asked.field("Range").and_then(|r| r.strip_prefix("bytes=")) {
            Some(range) => {
                let (from, to) = range.split_once('-').unwrap();
                let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
                let fields = format!("{fields}Content-Range: bytes {from}-{to}/{LEN}\r\n");
                asked.reply("206 Partial Content", &fields, &body[from..=to]);
            }
            None if asked.field("If-Modified-Since").is_some() => {
                asked.raw(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n"));
            }
            None => asked.reply("200 OK", fields, body),
        }
        true
    })
}

/// Removes fragment `n` of the object under `/large` from the cache.
fn remove_fragment(foxy: &Foxy, origin: &Origin, n: u32) {
    let head = foxy.stored(origin, "/large").unwrap();
    assert!(head.is_large() && n < head.fragment_count());
    let Lookup::Memory(fragment) = foxy.engine.reads().fragment_lookup(&head, n) else {
        panic!("fragment {n} is there");
    };
    foxy.engine.supersede(fragment.hash(), fragment.key());
}

#[test]
fn without_any_one_of_its_fragments_a_large_object_is_a_miss() {
    let (foxy, origin) = (Foxy::forward(), origin());
    foxy.get(&origin, "/large");
    for n in 0..4 {
        remove_fragment(&foxy, &origin, n);
        let again = foxy.get(&origin, "/large");
        assert!(again.whole && again.body == body(), "fragment {n}");
        assert!(again.cache().contains("fwd="), "{}", again.head);
        assert_eq!(origin.asked(), 2 + n as usize);
        let hit = foxy.get(&origin, "/large");
        assert!(hit.cache().contains("hit") && hit.body == body());
    }
    assert_eq!(foxy.proxy.totals().event(Event::Aborted), 0);
}

#[test]
fn a_range_needs_its_own_fragments_only() {
    let (foxy, origin) = (Foxy::forward(), origin());
    foxy.get(&origin, "/large");
    remove_fragment(&foxy, &origin, 2);
    let part = foxy.get_with(&origin, "/large", "Range: bytes=255000-300000\r\n");
    assert!(part.status == 206 && part.body == body()[255_000..=300_000]);
    assert_eq!(origin.asked(), 1, "{}", part.head);
    let part = foxy.get_with(&origin, "/large", "Range: bytes=255000-520000\r\n");
    assert!(part.status == 206 && part.whole && part.body == body()[255_000..=520_000]);
    assert_eq!(origin.asked(), 2);
    let none = foxy.get_with(&origin, "/large", "Cache-Control: only-if-cached\r\n");
    assert_eq!((none.status, origin.asked()), (504, 2));
}

#[test]
fn a_validated_object_that_lacks_fragments_is_fetched() {
    let (foxy, origin) = (Foxy::forward(), origin());
    foxy.get(&origin, "/large");
    remove_fragment(&foxy, &origin, 3);
    foxy.clock.advance(Duration::from_secs(100));
    let again = foxy.get(&origin, "/large");
    assert!(again.status == 200 && again.whole && again.body == body());
    assert_eq!(origin.asked(), 3, "a 304, then the whole");
    assert_eq!(foxy.proxy.totals().event(Event::Aborted), 0);
}

#[test]
fn a_damaged_first_fragment_on_disk_is_a_miss() {
    let (stored, origin) = (Stored::start(16 << 20, 64 << 20, 1), origin());
    let foxy = &stored.foxy;
    foxy.get(&origin, "/large");
    stored.settle(0);
    let hit = foxy.get(&origin, "/large");
    assert!(hit.cache().contains("hit") && hit.body == body());
    let head = foxy.stored(&origin, "/large").unwrap();
    let Lookup::Disk(plan) = foxy.engine.reads().fragment_lookup(&head, 0) else {
        panic!("too large for memory");
    };
    stored.disk.corrupt(plan.at, plan.len as usize, |bytes| {
        bytes.iter_mut().for_each(|b| *b ^= 0x55);
    });
    let again = foxy.get(&origin, "/large");
    assert!(again.whole && again.body == body(), "{}", again.head);
    assert_eq!(origin.asked(), 2);
    assert_eq!(foxy.proxy.totals().event(Event::Aborted), 0);
}

/// An origin whose body has a strong validator. The test sets the version of the body. Version 0 means that
/// the origin is down.
fn versions() -> (Origin, Arc<AtomicU8>) {
    let version = Arc::new(AtomicU8::new(1));
    let now = version.clone();
    let origin = Origin::start(move |asked| {
        let version = now.load(Ordering::SeqCst);
        let tag = format!("\"{version}\"");
        let fields = format!("Cache-Control: max-age=60\r\nETag: {tag}\r\n");
        let range = asked.field("Range").and_then(|r| r.strip_prefix("bytes="));
        let same = asked.field("If-Range").is_none_or(|known| known == tag);
        match range.filter(|_| same) {
            _ if version == 0 => return false,
            Some(range) => {
                let (from, to) = range.split_once('-').unwrap();
                let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
                let fields = format!("{fields}Content-Range: bytes {from}-{to}/{LEN}\r\n");
                asked.reply("206 Partial Content", &fields, vec![version; to + 1 - from]);
            }
            None => asked.reply("200 OK", &fields, vec![version; LEN]),
        }
        true
    });
    (origin, version)
}

#[test]
fn a_hole_that_the_origin_cannot_fill_is_noticed_before_anything_is_promised() {
    let (foxy, (origin, version)) = (Foxy::forward(), versions());
    let get = || foxy.get(&origin, "/large");
    let is = |answer: &Answer, version| {
        answer.whole && answer.body.len() == LEN && answer.body.iter().all(|b| *b == version)
    };
    assert!(is(&get(), 1));
    remove_fragment(&foxy, &origin, 2);
    assert!(is(&get(), 1));
    assert_eq!(origin.asked(), 2, "the hole alone");
    // The stored object is still fresh, but the origin now has another version.
    remove_fragment(&foxy, &origin, 2);
    version.store(2, Ordering::SeqCst);
    assert!(is(&get(), 2), "{}", get().head);
    assert!(is(&get(), 2));
    assert_eq!(origin.asked(), 4, "the hole, then the whole");
    // If missing bytes cannot be fetched, the client sees an error.
    remove_fragment(&foxy, &origin, 2);
    version.store(0, Ordering::SeqCst);
    let none = get();
    assert!(none.status == 502 && none.whole, "{}", none.head);
    version.store(2, Ordering::SeqCst);
    assert!(is(&get(), 2));
    assert_eq!(foxy.proxy.totals().event(Event::Aborted), 0);
}

#[test]
fn a_slow_disk_is_waited_for_in_the_middle_of_what_nobody_else_has() {
    let (stored, origin) = (Stored::start(16 << 20, 64 << 20, 1), origin());
    let foxy = &stored.foxy;
    foxy.get(&origin, "/large");
    stored.settle(0);
    foxy.get(&origin, "/large");
    let slow = FaultRule::new(OpClass::Read, Fault::Delay(Duration::from_secs(3)));
    // Only the second disk read is slow. The client already receives the first fragment during this read.
    stored
        .disk
        .set_faults(FaultPlan::none().and(slow.after(1).times(1)));
    let asked = origin.asked();
    let answer = foxy.get(&origin, "/large");
    assert!(answer.whole && answer.body == body(), "{}", answer.head);
    assert_eq!(origin.asked(), asked);
    assert_eq!(foxy.proxy.totals().event(Event::Aborted), 0);
}
