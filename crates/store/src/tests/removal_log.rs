//! The removal log: a removed object stays removed after a kill at any moment.

use std::io;
use std::sync::Arc;

use foxy_disk::{Disk, Fault, FaultPlan, FaultRule, Keep, MemDisk, OpClass, Queue};
use foxy_format::Removed;
use parking_lot::Mutex;

use super::removal_ring::forge;
use super::rig::{Rig, SEGMENT, geometry, hash, options};
use super::rules::forget_ram;
use crate::*;

pub(super) const MEMORY: u64 = 256 << 10;

/// Makes a store with `k` on disk and nothing under way.
pub(super) fn with_old(seed: u64) -> Rig {
    let mut rig = Rig::new(16, MEMORY, seed);
    rig.put("k", b"old");
    rig.put("other", b"other");
    rig.settle();
    rig
}

type Named = (&'static str, fn(&Rig));
type Seen = Arc<Mutex<(Option<Arc<Engine>>, Vec<bool>)>>;

#[test]
fn a_kill_right_after_a_removal_does_not_undo_it() {
    let removals: [Named; 4] = [
        ("supersede", |rig| assert!(rig.supersede("k"))),
        ("purge", |rig| drop(rig.engine.purge(hash("k"), b"k"))),
        ("put", |rig| drop(rig.put("k", b"new"))),
        ("damage", |rig| {
            let plan = rig.plan("k").unwrap();
            rig.engine
                .reads()
                .fail_read(&plan, &io::ErrorKind::Other.into());
        }),
    ];
    for (name, remove) in removals {
        let rig = with_old(1);
        rig.engine
            .core()
            .tables
            .shard(hash("k"))
            .write()
            .ram_remove_for_test(hash("k"));
        remove(&rig);
        let again = rig.kill();
        assert_eq!(again.text("k"), None, "{name}");
        assert_eq!(again.text("other").as_deref(), Some("other"), "{name}");
        assert_eq!(again.kill().text("k"), None, "{name}: a second kill");
    }
}

#[test]
fn a_removal_while_older_segments_are_being_loaded_is_not_undone_by_a_kill() {
    for purge in [false, true] {
        let mut rig = with_old(2);
        rig.fill("later", 120);
        let loading = rig.crash_unloaded(Keep::All);
        assert!(loading.engine.stats().stores[0].loading);
        if purge {
            drop(loading.engine.purge(hash("k"), b"k"));
        } else {
            loading.supersede("k");
        }
        let again = loading.kill();
        assert_eq!(again.text("k"), None);
        assert_eq!(again.text("other").as_deref(), Some("other"));
        assert_eq!(
            again.kill().text("k"),
            None,
            "the record tombstone that took over"
        );
        let twice = loading.crash_unloaded(Keep::All).crash_unloaded(Keep::All);
        assert_eq!(
            twice.kill().text("k"),
            None,
            "keys count until all is loaded"
        );
    }
}

/// A purge covers everything stored under the key, also records that the index does not know any more.
#[test]
fn a_purge_covers_what_the_index_does_not_know() {
    let mut rig = with_old(17);
    rig.engine
        .core()
        .tables
        .shard(hash("k"))
        .write()
        .ram_remove_for_test(hash("k"));
    rig.engine.core().tables.index().remove(hash("k"));
    assert_eq!(rig.kill().text("k").as_deref(), Some("old"), "it is there");
    drop(rig.engine.purge(hash("k"), b"k"));
    assert_eq!(rig.kill().text("k"), None);
    rig.settle();
    assert_eq!(rig.kill().text("k"), None);
}

/// The removal log is read before anything is loaded, and before the first lookup.
#[test]
fn the_removal_log_counts_before_lookups_are_answered() {
    let rig = with_old(3);
    rig.supersede("k");
    let again = rig.crash_unloaded(Keep::All);
    assert!(
        again.plan("other").is_some(),
        "an open segment is loaded at once"
    );
    assert!(again.plan("k").is_none());
}

/// A newer version is not taken for the removed version, whatever the log still contains.
#[test]
fn what_was_stored_after_the_removal_stays() {
    let mut rig = with_old(4);
    rig.fill("later", 120);
    let mut rig = rig.crash_unloaded(Keep::All);
    drop(rig.engine.purge(hash("k"), b"k"));
    rig.put("k", b"new");
    rig.put("other", b"newer");
    rig.settle();
    for n in 0..3 {
        rig = rig.kill();
        assert_eq!(rig.text("k").as_deref(), Some("new"), "{n}");
        assert_eq!(rig.text("other").as_deref(), Some("newer"), "{n}");
    }
}

/// Repeats `what_was_stored_after_the_removal_stays` with the removal log as it was before the tombstones
/// were written. A power cut can leave the removal log in this state.
#[test]
fn removals_that_come_back_concern_what_was_older_alone() {
    let mut rig = with_old(5);
    rig.fill("later", 120);
    let mut rig = rig.kill();
    rig.put("beside", b"it moves the end of the log");
    rig.settle();
    drop(rig.engine.purge(hash("k"), b"k"));
    let g = geometry(&rig.engine);
    let log = rig.disk.peek(g.removals_at(), g.removals_bytes as usize);
    rig.put("k", b"new");
    rig.settle();
    rig.disk.corrupt(g.removals_at(), log.len(), |bytes| {
        bytes.copy_from_slice(&log);
    });
    let again = rig.kill();
    assert!(again.counts().removals_recalled > 0);
    assert_eq!(again.text("k").as_deref(), Some("new"));
}

/// A disk that checks at each write to the removal log (`write_cached`) that the key is still visible, and
/// that the lock of its shard is held.
#[derive(Debug)]
struct Watched {
    disk: MemDisk,
    seen: Seen,
}

impl Disk for Watched {
    fn len(&self) -> u64 {
        self.disk.len()
    }
    fn block_bytes(&self) -> u32 {
        self.disk.block_bytes()
    }
    fn describe(&self) -> String {
        self.disk.describe()
    }
    fn open_queue(&self, depth: u32) -> io::Result<Box<dyn Queue>> {
        self.disk.open_queue(depth)
    }
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.read_at(at, into)
    }
    fn write_at(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.disk.write_at(at, data)
    }
    fn write_cached(&self, at: u64, data: &[u8]) -> io::Result<()> {
        let mut seen = self.seen.lock();
        if let Some(engine) = &seen.0 {
            // Other threads see the index without the lock of the key's shard.
            let shows = !engine.core().tables.index().lookup(hash("k")).is_empty();
            let locked = engine.core().tables.shard(hash("k")).try_read().is_none();
            seen.1.push(shows && locked);
        }
        drop(seen);
        self.disk.write_cached(at, data)
    }
    fn read_cached(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.read_cached(at, into)
    }
    fn flush(&self) -> io::Result<()> {
        self.disk.flush()
    }
    fn grow(&self, new_len: u64) -> io::Result<()> {
        self.disk.grow(new_len)
    }
}

#[test]
fn a_removal_is_logged_before_anybody_can_see_it() {
    let removals: [fn(&Arc<Engine>); 4] = [
        |engine| assert!(engine.supersede(hash("k"), b"k")),
        |engine| drop(engine.purge(hash("k"), b"k")),
        |engine| drop(engine.put(super::rig::object("k", b"new"))),
        |engine| {
            let Lookup::Disk(plan) = engine.reads().lookup(hash("k"), b"k") else {
                panic!("not on disk");
            };
            engine
                .reads()
                .fail_read(&plan, &io::ErrorKind::Other.into());
        },
    ];
    for remove in removals {
        let rig = with_old(6);
        let seen = Arc::new(Mutex::new((None, Vec::new())));
        let engine = Engine::new(EngineConfig::new(MEMORY, 7), rig.clock.clone());
        let disk = Watched {
            disk: rig.disk.kill(),
            seen: seen.clone(),
        };
        let mut writer = engine.open_store(Arc::new(disk), options()).unwrap();
        while !writer.is_idle() {
            writer.turn();
        }
        seen.lock().0 = Some(engine.clone());
        remove(&engine);
        seen.lock().0 = None;
        assert_eq!(
            seen.lock().1,
            [true],
            "one write, made while it still showed"
        );
    }
}

/// A power cut lost records. The removals of these records must not apply to records that are later written
/// at the same positions.
#[test]
fn a_place_without_a_record_is_forgotten_before_it_is_used_again() {
    let mut rig = Rig::new(16, MEMORY, 14);
    rig.settle();
    let store = rig.engine.fleet().store(StoreId(0)).unwrap();
    let end = store.marks.log_end();
    let start = foxy_format::LogPosition::new(end.sequence().max(1), end.offset_units());
    let entries: Vec<_> = (0..SEGMENT / foxy_format::UNIT as u32)
        .map(|n| {
            (
                700 + u64::from(n),
                n,
                Removed::Place(foxy_format::LogPosition(start.0 + u64::from(n))),
            )
        })
        .collect();
    let mut rig = forge(&rig, store.space.uuid(), &entries);
    rig.put("k", b"here");
    rig.settle();
    assert_eq!(rig.kill().text("k").as_deref(), Some("here"));
}

#[test]
fn a_log_that_cannot_be_written_is_counted_and_tombstones_do() {
    let mut rig = with_old(15);
    let at = geometry(&rig.engine).removals_at();
    let broken = FaultRule::new(OpClass::Write, Fault::Errno(5)).within(at..at + 4096);
    rig.disk.set_faults(FaultPlan::from(broken));
    assert!(rig.supersede("k"));
    assert!(rig.counts().write_errors > 0);
    rig.settle();
    assert_eq!(rig.kill().text("k"), None);
}

/// The removal may be much older than the kill. A start follows the kill, and a power cut follows soon after
/// the start. The power cut must not undo the removal, whichever writes of the start survive.
#[test]
fn a_power_cut_after_a_kill_does_not_undo_what_was_removed_before_the_kill() {
    let mut rig = Rig::new(16, MEMORY, 41);
    rig.settle();
    for key in ["superseded", "loaded late"] {
        rig.put(key, b"old");
    }
    rig.fill("around", 40);
    forget_ram(&rig, "superseded");
    forget_ram(&rig, "loaded late");
    rig.supersede("superseded");
    let rig = rig.crash_unloaded(Keep::All);
    // The segment of the record is not loaded yet, so the removal log gets the key, because the place of the
    // record is not known.
    rig.supersede("loaded late");
    let mut rig = rig.crash_unloaded(Keep::All);
    let (begin, mut clusters) = (rig.segments_at(), 0);
    for turn in 0..200 {
        rig.turns(1);
        clusters = clusters.max(rig.counts().tombstone_clusters);
        let mut heads = |write: &foxy_disk::Unsynced| write.at < begin;
        let cut = rig.crash(Keep::Writes(&mut heads));
        assert_eq!(cut.text("superseded"), None, "after {turn} turns");
        assert_eq!(cut.text("loaded late"), None, "after {turn} turns");
        rig.clock.advance(std::time::Duration::from_millis(5));
    }
    assert!(clusters > 0, "tombstones were written meanwhile");
    rig.settle();
    assert_eq!(rig.kill().counts().removals_recalled, 0, "they were let go");
}

/// The removals name positions behind the end of the log, in an open segment. The next record is then written
/// at one of these positions. The record tombstones for the removals may be in the same cluster as the
/// record, or in another cluster. In both cases, the removals must not apply to the record.
#[test]
fn a_place_behind_the_end_of_the_log_is_forgotten_before_it_is_used() {
    let mut rig = with_old(15);
    let store = rig.engine.fleet().store(StoreId(0)).unwrap();
    let end = store.marks.log_end().0;
    let ahead = (130..210).chain(256..276);
    let entries = (0..).zip(ahead).map(|(n, units): (u32, u64)| {
        let place = foxy_format::LogPosition(end + units);
        (700 + u64::from(n), n, Removed::Place(place))
    });
    let entries: Vec<_> = entries.collect();
    rig = forge(&rig, store.space.uuid(), &entries);
    rig.put("new", b"here");
    rig.settle();
    let again = rig.kill();
    assert_eq!(again.text("new").as_deref(), Some("here"));
    assert_eq!(again.text("k").as_deref(), Some("old"));
}
