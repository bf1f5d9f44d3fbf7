//! Each rule of purging has its own test here. `purge_model.rs` tests all rules together.

use std::time::Duration;

use bytes::Bytes;
use foxy_base::FieldBlockBuilder;
use foxy_disk::{Keep, MemDisk};

use super::rig::{Rig, SEGMENT, geometry, object, options};
use crate::*;

const MEMORY: u64 = 512 << 10;

pub(super) fn purge(kind: PurgeKind, text: &str, soft: bool) -> Purge {
    Purge {
        kind,
        text: text.as_bytes().to_vec(),
        partition: String::new(),
        soft,
    }
}

pub(super) fn tagged(key: &str, body: &[u8], tags: &str, sequence: u64) -> NewObject {
    let mut fields = FieldBlockBuilder::default();
    fields.push(b"Cache-Tag", tags.as_bytes()).unwrap();
    let mut new = object(key, body);
    new.fields = fields.finish();
    new.meta.purge_sequence = sequence;
    new
}

impl Rig {
    /// Stores an object that was fetched just now.
    pub(super) fn fetch(&self, key: &str, tags: &str) {
        let sequence = self.engine.purges().purge_sequence();
        let body = [b'b'; 700];
        let put = self.engine.put(tagged(key, &body, tags, sequence));
        assert!(put.admitted.is_visible());
    }

    /// Makes a purge, and runs turns of the writer until the purge is acknowledged.
    pub(super) fn purge(&mut self, kind: PurgeKind, text: &str, soft: bool) -> u64 {
        let (number, ticket) = self
            .engine
            .purges()
            .purge_many(&purge(kind, text, soft), Places::Reserved)
            .unwrap();
        for _ in 0..20 {
            self.writer.turn();
        }
        assert_eq!(ticket.outcome(), Some(Durable::Yes), "without any time");
        number
    }

    /// Makes a complete sweep, if one is due.
    pub(super) fn sweep(&mut self) -> bool {
        let Some(mut sweep) = self.engine.purges().sweep() else {
            return false;
        };
        for _ in 0..10_000 {
            match sweep.step() {
                SweepStep::Done => return true,
                SweepStep::Wait => {
                    self.writer.turn();
                }
                SweepStep::Read(_) => {}
            }
        }
        panic!("a sweep without end");
    }

    pub(super) fn forget_memory(&self) {
        self.engine.context().memory.clear();
    }
}

const KEYS: [&str; 6] = [
    "forward GET http://a.test/x/1",
    "forward GET http://a.test/x/2?q",
    "forward GET http://a.test:81/x/1",
    "site GET http://b.test/x/1",
    "forward GET http://a.test/x/1\n0000000000000007\nen",
    "forward GET https://c.test/y",
];

/// Returns the state of each key after a purge: gone, stale or present.
fn left(rig: &Rig) -> String {
    KEYS.iter()
        .map(|key| match rig.get(key) {
            None => '-',
            Some(object) if object.is_soft_purged() => 's',
            Some(_) => '+',
        })
        .collect()
}

fn covers(kind: PurgeKind, text: &str, soft: bool, expected: &str) {
    for place in ["memory", "disk", "restart"] {
        let mut rig = Rig::new(16, MEMORY, 1);
        for (n, key) in KEYS.iter().enumerate() {
            rig.fetch(key, &format!("t{n}, all tags"));
        }
        if place != "memory" {
            rig.settle();
            rig.forget_memory();
        }
        let number = rig.purge(kind, text, soft);
        if place == "restart" {
            rig = rig.crash_unloaded(Keep::Nothing);
        }
        assert_eq!(left(&rig), expected, "{kind:?} {text} in {place}");
        rig.settle();
        assert_eq!(left(&rig), expected, "{kind:?} {text} in {place}, later");
        let gone = expected.chars().filter(|c| *c != '+').count() as u64;
        assert!(rig.sweep());
        let status = rig.engine.purges().purge_status(number).unwrap();
        assert!(status.done);
        // After a restart, the count of this process is smaller: the earlier process counted the
        // objects that it removed itself.
        if place != "restart" {
            assert_eq!(status.objects, gone, "{kind:?} {text} in {place}");
        }
        rig.settle();
        assert_eq!(left(&rig), expected, "{kind:?} {text} in {place}, swept");
        assert_eq!(rig.engine.purges().active_purges(), usize::from(soft));
        // An object that became stale before it was written is not written.
        let kept = if place == "memory" {
            expected.replace('s', "-")
        } else {
            expected.to_owned()
        };
        assert_eq!(left(&rig.kill()), kept, "{kind:?} {text} in {place}, again");
    }
}

#[test]
fn each_kind_covers_what_it_names() {
    for (kind, text, expected) in [
        (PurgeKind::All, "", "------"),
        (PurgeKind::Url, "http://a.test/x/1", "-+++-+"),
        (PurgeKind::Host, "a.test", "---+-+"),
        (PurgeKind::Host, "a.test:81", "++-+++"),
        (PurgeKind::Prefix, "http://a.test/x/", "--++-+"),
        (PurgeKind::Prefix, "c.test", "+++++-"),
        (PurgeKind::Tag, "t3", "+++-++"),
        (PurgeKind::Tag, "all tags", "------"),
        (PurgeKind::Tag, "all", "++++++"),
        (PurgeKind::Expression, "^http://[ab].test/.*1$", "-++--+"),
    ] {
        covers(kind, text, false, expected);
    }
    covers(PurgeKind::Host, "a.test", true, "sss+s+");
}

#[test]
fn a_purge_of_one_partition_leaves_the_others() {
    let mut rig = Rig::new(16, MEMORY, 1);
    KEYS.iter().for_each(|key| rig.fetch(key, "t"));
    let all = Purge {
        partition: "site".to_owned(),
        ..purge(PurgeKind::Tag, "t", false)
    };
    rig.engine
        .purges()
        .purge_many(&all, Places::Reserved)
        .unwrap();
    assert_eq!(left(&rig), "+++-++");
    rig.settle();
    assert_eq!(left(&rig.kill()), "+++-++");
}

#[test]
fn a_fill_older_than_a_purge_is_not_stored_even_when_the_purge_is_done_with() {
    for swept in [false, true] {
        let mut rig = Rig::new(16, MEMORY, 1);
        let before = rig.engine.purges().purge_sequence();
        rig.purge(PurgeKind::Host, "a.test", false);
        if swept {
            assert!(rig.sweep());
            assert_eq!(rig.engine.purges().active_purges(), 0);
        }
        let put = rig.engine.put(tagged(KEYS[0], b"old", "", before));
        assert_eq!(put.admitted, Admission::Refused(DropReason::Purged));
        assert!(rig.get(KEYS[0]).is_none());
        // The purge neither refuses nor removes objects that were fetched after it.
        rig.fetch(KEYS[0], "");
        rig.engine.put(tagged(KEYS[0], b"old", "", before));
        assert_eq!(rig.get(KEYS[0]).unwrap().body().len(), 700);
        let put = rig.engine.put(tagged(KEYS[5], b"other", "", before));
        assert_eq!(put.admitted.is_visible(), !swept);
    }
}

#[test]
fn what_waits_to_be_written_is_compared_before_it_is() {
    for soft in [false, true] {
        let mut rig = Rig::new(16, MEMORY, 1);
        rig.fetch(KEYS[0], "t");
        rig.engine
            .purges()
            .purge_many(&purge(PurgeKind::Tag, "t", soft), Places::Reserved)
            .unwrap();
        rig.settle();
        assert_eq!(rig.counts().records, 0);
    }
}

#[test]
fn reinsertion_brings_nothing_back_that_was_purged() {
    for soft in [false, true] {
        let mut rig = Rig::new(8, MEMORY, 1);
        let key = "forward GET http://a.test/used";
        rig.fetch(key, "t");
        rig.settle();
        rig.forget_memory();
        assert!(rig.get(key).is_some());
        rig.purge(PurgeKind::Tag, "t", soft);
        let written = rig.counts().reinserted;
        // The object is used again and again, so that reuse would always write it again.
        for n in 0..40 {
            rig.fill(&n.to_string(), 16);
            if let Some(object) = rig.get(key) {
                assert!(soft && object.is_soft_purged());
            }
        }
        assert!(rig.counts().reused > 8);
        assert!(rig.counts().reinserted - written < 60);
        rig.forget_memory();
        assert!(rig.get(key).is_none());
        // No object from before the purge is left, so the purge has retired.
        rig.sweep();
        assert!(rig.engine.purges().sweep().is_none());
        assert_eq!(rig.engine.purges().active_purges(), 0);
    }
}

#[test]
fn a_refresh_of_what_is_purged_meanwhile_fails_and_one_after_a_soft_purge_cleans() {
    let mut rig = Rig::new(16, MEMORY, 1);
    rig.fetch(KEYS[0], "t");
    let old = rig.get(KEYS[0]).unwrap();
    let refresh = |rig: &Rig, sequence| {
        let meta = ObjectMeta {
            purge_sequence: sequence,
            ..*old.meta()
        };
        let fields = old.fields().clone();
        rig.engine
            .refresh(&old, meta, Bytes::new(), Bytes::new(), fields)
    };
    let before = rig.engine.purges().purge_sequence();
    rig.purge(PurgeKind::Tag, "t", true);
    assert!(rig.get(KEYS[0]).unwrap().is_soft_purged());
    refresh(&rig, before).unwrap();
    assert!(rig.get(KEYS[0]).unwrap().is_soft_purged(), "asked before");
    refresh(&rig, rig.engine.purges().purge_sequence()).unwrap();
    assert!(!rig.get(KEYS[0]).unwrap().is_soft_purged());
    let before = rig.engine.purges().purge_sequence();
    rig.purge(PurgeKind::All, "", false);
    assert!(refresh(&rig, before).is_none());
    assert!(rig.get(KEYS[0]).is_none());
}

#[test]
fn a_large_object_is_gone_with_its_head() {
    let mut rig = Rig::new(32, 2 << 20, 1);
    let key = "forward GET http://a.test/large";
    let put = rig.engine.put(tagged(key, &[7; 40_000], "t", 0));
    assert!(put.object.is_large());
    rig.settle();
    let number = rig.purge(PurgeKind::Tag, "t", false);
    assert!(rig.get(key).is_none());
    rig.sweep();
    assert_eq!(rig.engine.purges().purge_status(number).unwrap().objects, 1);
    rig.settle();
    assert!(rig.kill().get(key).is_none());
}

#[test]
fn an_old_object_is_completed_after_a_purge_that_does_not_concern_it_is_done_with() {
    let mut rig = Rig::new(32, 2 << 20, 1);
    let key = "forward GET http://a.test/sparse";
    let new = tagged(key, b"", "t", rig.engine.purges().purge_sequence());
    let large = NewLarge::of(&new, Some(20_000));
    let head = rig.engine.put_sparse(&large, 20_000).object;
    rig.purge(PurgeKind::Tag, "other", false);
    assert!(rig.sweep());
    rig.engine.put_fragments(&head, 0).append(&[7; 20_000]);
    assert!(rig.engine.has_all_fragments(&rig.get(key).unwrap()));
    rig.purge(PurgeKind::Tag, "t", false);
    assert!(rig.get(key).is_none());
}

#[test]
fn a_purge_that_a_power_cut_interrupts_is_there_or_not_and_never_half() {
    for seed in 0..3 {
        let mut rig = Rig::new(16, MEMORY, seed);
        rig.fetch(KEYS[0], "one");
        rig.fetch(KEYS[1], "two");
        rig.settle();
        rig.purge(PurgeKind::Tag, "one", false);
        rig.disk.set_step(true);
        let two = purge(PurgeKind::Tag, "two", false);
        let (_, ticket) = rig
            .engine
            .purges()
            .purge_many(&two, Places::Reserved)
            .unwrap();
        for _ in 0..8 {
            rig.writer.turn();
            let acknowledged = ticket.outcome() == Some(Durable::Yes);
            for keep in [Keep::Nothing, Keep::Random(seed), Keep::All] {
                let again = rig.crash_unloaded(keep);
                let there = |n: usize| again.get(KEYS[n]).is_some();
                assert!(!there(0), "acknowledged long before");
                assert!(!(acknowledged && there(1)));
                // No damage was reported, because there was none.
                assert!(!there(5) && again.counts().damaged == 0);
            }
            if let Some(op) = rig.disk.held().first() {
                rig.disk.release(op.id);
            }
        }
        assert_eq!(ticket.outcome(), Some(Durable::Yes));
    }
}

#[test]
fn a_damaged_journal_makes_dead_what_is_stored_and_nothing_that_comes() {
    let mut rig = Rig::new(16, MEMORY, 1);
    KEYS.iter().for_each(|key| rig.fetch(key, "t"));
    rig.settle();
    rig.purge(PurgeKind::Tag, "none", false);
    let journal = geometry(&rig.engine);
    let disk = rig.disk.kill();
    let (at, len) = (journal.journal_at(), journal.journal_bytes as usize);
    disk.corrupt(at, len, |bytes| bytes.iter_mut().for_each(|b| *b ^= 1));
    let mut again = Rig::open(disk, MEMORY, 2, options());
    again.settle();
    assert_eq!(left(&again), "------");
    again.fetch(KEYS[0], "t");
    assert_eq!(left(&again), "+-----");
    again.settle();
    assert_eq!(left(&again.kill()), "+-----");
}

#[test]
fn a_store_that_missed_purges_that_are_done_with_gives_nothing_older() {
    let len = 16 * u64::from(SEGMENT + 4096) + (64 << 10);
    let mut one = Rig::new(16, MEMORY, 1);
    let other = MemDisk::new(len, 512, 7);
    let second = StoreOptions {
        uuid: Some(*b"the second store"),
        ..options()
    };
    let mut writer = one
        .engine
        .open_store(std::sync::Arc::new(other.clone()), second.clone())
        .unwrap();
    let key = |n: u64| format!("forward GET http://{n}.test/");
    for n in 0..40 {
        let mut new = tagged(
            &key(n),
            &[1; 500],
            "t",
            one.engine.purges().purge_sequence(),
        );
        new.group = n;
        one.engine.put(new);
    }
    for _ in 0..200 {
        one.clock.advance(Duration::from_millis(20));
        one.writer.turn();
        writer.turn();
    }
    let there = |rig: &Rig| (0..40).filter(|n| rig.get(&key(*n)).is_some()).count();
    one.forget_memory();
    assert_eq!(there(&one), 40);
    // The second store is absent while the first one sweeps and retires a purge.
    let mut alone = Rig::open(one.disk.kill(), MEMORY, 2, options());
    alone.settle();
    let kept = there(&alone);
    assert!(kept > 5 && kept < 35, "{kept}");
    alone.purge(PurgeKind::Tag, "t", false);
    assert!(alone.sweep());
    alone.settle();
    assert_eq!(
        (alone.engine.purges().active_purges(), there(&alone)),
        (0, 0)
    );
    for first in [0, 1] {
        let mut both = if first == 0 {
            Rig::open(alone.disk.kill(), MEMORY, 3, options())
        } else {
            Rig::open(other.kill(), MEMORY, 3, second.clone())
        };
        let disk = if first == 0 {
            other.kill()
        } else {
            alone.disk.kill()
        };
        let mut writer = both
            .engine
            .open_store(std::sync::Arc::new(disk), options())
            .unwrap();
        for _ in 0..50 {
            both.writer.turn();
            writer.turn();
        }
        assert_eq!(there(&both), 0, "opened as number {first}");
    }
}

#[test]
fn a_failing_disk_is_not_called_durable() {
    use foxy_disk::{Fault, FaultPlan, FaultRule, OpClass};
    let mut rig = Rig::new(16, MEMORY, 1);
    rig.fetch(KEYS[0], "t");
    rig.settle();
    let fault = FaultRule::new(OpClass::Write, Fault::EIO);
    rig.disk.set_faults(FaultPlan::none().and(fault));
    let (_, ticket) = rig
        .engine
        .purges()
        .purge_many(&purge(PurgeKind::Tag, "t", false), Places::Reserved)
        .unwrap();
    assert!(rig.get(KEYS[0]).is_none(), "true at once all the same");
    rig.turns(20);
    assert_eq!(ticket.outcome(), Some(Durable::Failed));
    // When the disk works again, the note is written together with the next note.
    rig.disk.set_faults(FaultPlan::none());
    rig.settle();
    let again = rig.kill();
    assert!(again.get(KEYS[0]).is_none());
}
