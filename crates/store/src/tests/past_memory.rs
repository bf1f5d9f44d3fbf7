//! Objects that the RAM tier does not keep.

use super::rig::{Rig, hash, object};
use crate::*;

const SMALL: &str = "small";
const LONG: &str = "long";

fn ram(rig: &Rig) -> u64 {
    rig.engine.stats().ram_objects
}

#[test]
fn an_object_put_past_memory_is_read_from_the_disk_and_leaves_no_trace_there() {
    let mut rig = Rig::new(16, 1 << 20, 1);
    let put = rig.engine.put_past_memory(object(SMALL, b"contents"));
    assert_eq!(put.admitted, Admission::Disk);
    assert_eq!(ram(&rig), 0);
    let (_, waits) = rig
        .engine
        .reads()
        .in_memory(hash(SMALL), SMALL.as_bytes())
        .unwrap();
    assert!(waits, "it is in no cluster yet");
    rig.settle();
    assert!(
        rig.engine
            .reads()
            .in_memory(hash(SMALL), SMALL.as_bytes())
            .is_none()
    );
    assert!(rig.engine.is_stored(hash(SMALL)));
    for _ in 0..2 {
        let plan = rig.plan(SMALL).expect("it is on disk only");
        let buf = rig.read(&plan).unwrap();
        let found = rig
            .engine
            .reads()
            .finish_read_if(&plan, SMALL.as_bytes(), buf, |_| false);
        assert_eq!(&found.unwrap().body()[..], b"contents");
        assert_eq!(ram(&rig), 0);
    }
    // An ordinary read puts the object into the RAM tier.
    assert_eq!(rig.text(SMALL).as_deref(), Some("contents"));
    assert_eq!(ram(&rig), 1);
}

#[test]
fn a_long_object_put_past_memory_keeps_its_head_there_alone() {
    let mut rig = Rig::new(16, 4 << 20, 2);
    let body = vec![b'x'; 20_000];
    // After an ordinary put, the RAM tier keeps this object, because it is short enough.
    rig.put(LONG, &body);
    rig.settle();
    assert!(ram(&rig) > 2, "{}", ram(&rig));
    let mut rig = Rig::new(16, 4 << 20, 2);
    let put = rig.engine.put_past_memory(object(LONG, &body));
    assert_eq!(put.admitted, Admission::Disk);
    rig.settle();
    assert_eq!(ram(&rig), 1);
    let head = rig.get(LONG).unwrap();
    let mut found = Vec::new();
    for n in 0..head.fragment_count() {
        let Lookup::Disk(plan) = rig.engine.reads().fragment_lookup(&head, n) else {
            panic!("fragment {n} is not on disk only");
        };
        let buf = rig.read(&plan).unwrap();
        let part = rig
            .engine
            .reads()
            .finish_fragment_if(&plan, &head, n, buf, |_| false);
        found.extend_from_slice(part.unwrap().body());
    }
    assert_eq!(found, body);
    assert_eq!(ram(&rig), 1);
}

#[test]
fn an_object_past_memory_replaces_one_in_memory() {
    let mut rig = Rig::new(16, 1 << 20, 3);
    rig.put(SMALL, b"older");
    rig.settle();
    let _ = rig.engine.put_past_memory(object(SMALL, b"newer"));
    rig.settle();
    assert_eq!(rig.text(SMALL).as_deref(), Some("newer"));
    let mut again = rig.kill();
    again.settle();
    assert_eq!(again.text(SMALL).as_deref(), Some("newer"));
}
