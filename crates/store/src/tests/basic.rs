//! The normal operation of a store.

use foxy_disk::Keep;

use super::rig::{Rig, body, hash, object, version_of};
use crate::*;

const MEMORY: u64 = 8 << 20;

#[test]
fn an_engine_without_a_store_serves_from_memory() {
    let clock = std::sync::Arc::new(foxy_base::ManualClock::new(foxy_base::WallTime(0)));
    let engine = Engine::new(EngineConfig::new(MEMORY, 1), clock);
    let put = engine.put(object("a", b"one"));
    assert_eq!(put.admitted, Admission::Memory(DropReason::NoStore));
    let Lookup::Memory(found) = engine.reads().lookup(hash("a"), b"a") else {
        panic!("not in memory")
    };
    assert_eq!(found.body(), &b"one"[..]);
    // A lookup with another key that has the same hash is a miss. (In practice, no two keys have the
    // same hash.)
    assert!(matches!(
        engine.reads().lookup(hash("a"), b"b"),
        Lookup::Miss
    ));
    assert!(engine.supersede(hash("a"), b"a") && !engine.supersede(hash("a"), b"a"));
    assert!(matches!(
        engine.reads().lookup(hash("a"), b"a"),
        Lookup::Miss
    ));
    assert_eq!(engine.purge(hash("a"), b"a").outcome(), Some(Durable::Yes));
    let large = engine.put(object("large", &vec![7; 900 << 10]));
    assert!(!large.admitted.is_visible(), "more than the RAM tier takes");
    let large = engine.put(NewObject {
        body: vec![7; 260 << 10].into(),
        ..object("l", b"")
    });
    assert!(large.object.is_large() || !large.admitted.is_visible());
}

#[test]
fn objects_are_visible_at_once_and_after_a_restart() {
    let mut rig = Rig::new(16, MEMORY, 1);
    for n in 0..40 {
        let put = rig.put(&format!("k{n}"), &body(n, 1, 3000));
        assert_eq!(put.admitted, Admission::Disk);
        assert!(rig.get(&format!("k{n}")).is_some());
    }
    rig.settle();
    assert_eq!(rig.engine.stats().pending_bytes, 0);
    for again in [rig.kill(), rig.crash(Keep::Nothing)] {
        for n in 0..40 {
            let found = again.get(&format!("k{n}"));
            let found = found.unwrap_or_else(|| panic!("k{n} lost: {:?}", again.engine.stats()));
            assert_eq!(version_of(n, found.body(), 3000), 1);
        }
        assert_eq!(again.engine.stats().counts.disk_hits, 40);
    }
}

#[test]
fn facts_and_fields_survive() {
    let mut rig = Rig::new(16, MEMORY, 2);
    let mut fields = foxy_base::FieldBlockBuilder::default();
    fields.push(b"ETag", b"\"x\"").unwrap();
    let mut new = object("facts", b"body");
    new.fields = fields.finish();
    new.vary = bytes::Bytes::from_static(b"accept-language\nde");
    new.tags = bytes::Bytes::from_static(b"t1 t2");
    new.meta = ObjectMeta {
        status: 203,
        flags: 5,
        request_time: foxy_base::WallTime(11),
        response_time: foxy_base::WallTime(12),
        expires: foxy_base::WallTime(i64::MAX - 1),
        rules: [9; 64],
        nonce: 77,
        purge_sequence: 3,
        ..ObjectMeta::default()
    };
    let put = rig.engine.put(new.clone());
    rig.settle();
    let found = rig.kill().get("facts").unwrap();
    assert_eq!(found.meta(), put.object.meta());
    assert_eq!(
        (found.fields(), found.vary(), found.tags()),
        (&new.fields, &new.vary, &new.tags)
    );
    assert_eq!((found.group(), found.total_length()), (new.group, 4));
}

#[test]
fn a_drained_store_needs_no_scan_and_goes_on_in_its_segment() {
    let mut rig = Rig::new(16, MEMORY, 3);
    rig.fill("a", 10);
    assert!(rig.writer.drain(std::time::Duration::from_secs(1)));
    let mut again = rig.crash(Keep::Nothing);
    // The start searches the clusters of one segment only: the segment that is ready to be written.
    assert_eq!(again.counts().load_scans, 1);
    assert!(again.get("filler a 3").is_some());
    again.fill("b", 5);
    assert_eq!(again.counts().sealed, 0, "a new segment was begun");
    let last = again.kill();
    assert!(last.get("filler a 3").is_some() && last.get("filler b 4").is_some());
}

#[test]
fn space_is_reused_in_sequence_and_old_objects_go() {
    let mut rig = Rig::new(8, 256 << 10, 4);
    rig.put("first", b"1");
    rig.fill("x", 400);
    let counts = rig.counts();
    assert!(counts.reused > 4, "{counts:?}");
    assert!(rig.engine.stats().disk_objects < 300);
    assert!(rig.plan("filler x 0").is_none());
    let again = rig.kill();
    assert!(again.get("first").is_none());
    assert!(again.get("filler x 399").is_some());
}

#[test]
fn used_records_survive_reuse_and_unused_ones_do_not() {
    let mut rig = Rig::new(8, 2 << 20, 5);
    rig.put("hot", b"hot body");
    rig.put("cold", b"cold body");
    for round in 0..12 {
        rig.fill(&format!("r{round}"), 40);
        assert_eq!(
            rig.text("hot").as_deref(),
            Some("hot body"),
            "round {round}"
        );
        // Only disk hits and presence in the RAM tier count as uses, so the object is removed from the
        // RAM tier.
        rig.engine
            .core()
            .tables
            .shard(hash("hot"))
            .write()
            .ram_remove_for_test(hash("hot"));
        rig.engine
            .core()
            .tables
            .shard(hash("cold"))
            .write()
            .ram_remove_for_test(hash("cold"));
    }
    let counts = rig.counts();
    assert!(counts.reinserted > 0 && counts.reused > 4, "{counts:?}");
    assert!(rig.get("cold").is_none());
    assert_eq!(rig.kill().text("hot").as_deref(), Some("hot body"));
}

#[test]
fn large_objects_come_back_whole() {
    let mut rig = Rig::new(32, MEMORY, 6);
    let data: Vec<u8> = (0..100_000u32).map(|i| (i * 7) as u8).collect();
    let put = rig.put("large", &data);
    assert_eq!(put.admitted, Admission::Disk);
    assert!(put.object.is_large());
    rig.settle();
    for rig in [&rig, &rig.kill()] {
        let head = rig.get("large").unwrap();
        assert_eq!(head.total_length(), 100_000);
        assert!(rig.engine.has_all_fragments(&head));
        let mut whole = Vec::new();
        for n in 0..head.fragment_count() {
            whole.extend_from_slice(rig.fragment(&head, n).unwrap().body());
        }
        assert!(whole == data);
        assert!(rig.fragment(&head, head.fragment_count()).is_none());
    }
    // A later version has its own fragments.
    let old = rig.get("large").unwrap();
    let newer = rig.put("large", &vec![1; 50_000]).object;
    assert_ne!(old.meta().version, newer.meta().version);
    assert_eq!(rig.fragment(&newer, 0).unwrap().body()[0], 1);
}

#[test]
fn an_aborted_or_false_large_object_leaves_nothing() {
    let mut rig = Rig::new(32, MEMORY, 7);
    let new = |length| NewLarge {
        key: "l".into(),
        hash: hash("l"),
        group: 1,
        meta: ObjectMeta::default(),
        vary: bytes::Bytes::new(),
        tags: bytes::Bytes::new(),
        fields: foxy_base::FieldBlock::empty(),
        length,
    };
    let mut put = rig.engine.put_large(new(None));
    assert!(put.append(&[1; 40_000]));
    put.abort();
    let mut put = rig.engine.put_large(new(Some(50_000)));
    assert!(put.append(&[1; 40_000]));
    assert_eq!(
        put.finish().admitted,
        Admission::Refused(DropReason::Incomplete)
    );
    rig.settle();
    assert_eq!(
        (
            rig.engine.stats().disk_objects,
            rig.engine.stats().pending_bytes
        ),
        (0, 0)
    );
    let mut put = rig.engine.put_large(new(Some(1 << 40)));
    assert!(!put.append(b"x"));
    assert_eq!(
        put.finish().admitted,
        Admission::Refused(DropReason::TooLarge)
    );
    // An object that turns out to be small is stored whole.
    let mut put = rig.engine.put_large(new(None));
    put.append(b"small");
    let put = put.finish();
    assert!(!put.object.is_large() && put.admitted == Admission::Disk);
}

/// A 304 arrives late. Another version was stored in between, and neither version is in memory.
#[test]
fn a_late_refresh_does_not_put_an_old_version_over_a_newer_one() {
    let mut rig = Rig::new(32, MEMORY, 9);
    rig.settle();
    rig.put("k", b"one");
    rig.settle();
    rig.engine.context().memory.clear();
    let old = rig.get("k").unwrap();
    let refresh = |rig: &Rig| {
        let meta = ObjectMeta {
            expires: foxy_base::WallTime(5_000_000_000),
            ..*old.meta()
        };
        let none = bytes::Bytes::new;
        let fields = foxy_base::FieldBlock::empty();
        rig.engine.refresh(&old, meta, none(), none(), fields)
    };
    rig.engine.context().memory.clear();
    assert!(refresh(&rig).is_some(), "read from where the index leads");
    rig.settle();
    rig.put("k", b"two");
    rig.settle();
    rig.engine.context().memory.clear();
    assert!(refresh(&rig).is_none());
    assert_eq!(rig.text("k").as_deref(), Some("two"));
}

#[test]
fn refreshing_a_head_keeps_the_body() {
    let mut rig = Rig::new(32, MEMORY, 8);
    let data = vec![3; 40_000];
    let put = rig.put("large", &data);
    rig.settle();
    let meta = ObjectMeta {
        expires: foxy_base::WallTime(5_000_000_000),
        flags: 9,
        ..*put.object.meta()
    };
    let none = bytes::Bytes::new;
    let fields = foxy_base::FieldBlock::empty;
    let refreshed = rig
        .engine
        .refresh(&put.object, meta, none(), none(), fields())
        .unwrap();
    rig.settle();
    let again = rig.kill();
    let head = again.get("large").unwrap();
    assert_eq!(head.meta(), refreshed.object.meta());
    assert!(again.engine.has_all_fragments(&head) && again.fragment(&head, 1).is_some());
    assert!(
        rig.engine
            .refresh(&put.object, meta, none(), none(), fields())
            .is_none(),
        "no longer current"
    );
}

#[test]
fn pending_objects_are_bounded_and_dropped_beyond() {
    let rig = Rig::new(16, 1 << 20, 9);
    let admitted: Vec<_> = (0..400)
        .map(|n| rig.put(&format!("k{n}"), &[0; 4000]).admitted)
        .collect();
    let stats = rig.engine.stats();
    assert!(stats.pending_bytes <= 1 << 19);
    assert!(stats.counts.drop_pending > 0);
    assert!(admitted.contains(&Admission::Memory(DropReason::PendingFull)));
    // Every object that was admitted to disk can be read from memory.
    for (n, admission) in admitted.iter().enumerate() {
        assert!(*admission != Admission::Disk || rig.get(&format!("k{n}")).is_some());
    }
}

#[test]
fn a_ticket_tells_what_a_power_cut_cannot_undo() {
    let mut rig = Rig::new(16, MEMORY, 10);
    rig.settle();
    rig.put("a", b"1");
    let ticket = rig.engine.sync();
    assert!(!ticket.is_done());
    rig.turns(6);
    assert_eq!(ticket.outcome(), Some(Durable::Yes));
    assert_eq!(rig.crash(Keep::Nothing).text("a").as_deref(), Some("1"));
    let ticket = rig.engine.purge(hash("a"), b"a");
    assert!(rig.get("a").is_none());
    rig.turns(6);
    assert_eq!(ticket.outcome(), Some(Durable::Yes));
    assert!(rig.crash(Keep::Nothing).get("a").is_none());
}
