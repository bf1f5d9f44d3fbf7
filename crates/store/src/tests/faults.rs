//! Failing disks: a fault causes a miss or a dropped admission, never an error for a request.

use foxy_disk::{Disk, Fault, FaultPlan, FaultRule, Keep, MemDisk, OpClass};

use super::rig::{Rig, SEGMENT, hash, options};
use crate::*;

const MEMORY: u64 = 2 << 20;

fn rule(on: OpClass, fault: Fault) -> FaultPlan {
    FaultPlan::none().and(FaultRule::new(on, fault))
}

fn forget_ram(rig: &Rig, key: &str) {
    rig.engine
        .core()
        .tables
        .shard(hash(key))
        .write()
        .ram_remove_for_test(hash(key));
}

#[test]
fn failing_writes_make_a_store_read_only_and_memory_goes_on() {
    let mut rig = Rig::new(16, MEMORY, 1);
    rig.put("kept", b"1");
    rig.settle();
    rig.disk.set_faults(rule(OpClass::Write, Fault::EIO));
    for n in 0..200 {
        rig.put(&format!("k{n}"), &[0; 1000]);
        rig.clock.advance(std::time::Duration::from_millis(1500));
        rig.turns(2);
    }
    let stats = rig.engine.stats();
    assert_eq!(stats.stores[0].health, Health::ReadOnly);
    assert_eq!(stats.pending_bytes, 0);
    assert_eq!(
        rig.put("new", b"2").admitted,
        Admission::Memory(DropReason::NoStore)
    );
    assert_eq!(rig.text("new").as_deref(), Some("2"));
    forget_ram(&rig, "kept");
    assert_eq!(rig.text("kept").as_deref(), Some("1"), "reading goes on");
    let ticket = rig.engine.purge(hash("kept"), b"kept");
    rig.turns(3);
    assert_eq!(ticket.outcome(), Some(Durable::Failed));
    assert_eq!(rig.text("kept"), None);
}

#[test]
fn a_failing_flush_is_not_taken_for_durable() {
    let mut rig = Rig::new(16, MEMORY, 2);
    rig.settle();
    rig.disk.set_faults(rule(OpClass::Flush, Fault::EIO));
    rig.put("a", b"1");
    let ticket = rig.engine.sync();
    rig.turns(10);
    assert_eq!(ticket.outcome(), Some(Durable::Failed));
    assert_eq!(rig.engine.stats().stores[0].health, Health::ReadOnly);
}

#[test]
fn failing_reads_are_misses_and_in_the_end_the_store_is_left_alone() {
    let mut rig = Rig::new(64, MEMORY, 3);
    rig.fill("a", 1500);
    rig.disk.set_faults(rule(OpClass::Read, Fault::EIO));
    for n in 0..1500 {
        let key = format!("filler a {n}");
        forget_ram(&rig, &key);
        assert_eq!(rig.text(&key), None);
    }
    let stats = rig.engine.stats();
    let store = &stats.stores[0];
    assert_eq!(store.health, Health::Offline);
    // A segment is in quarantine after three failed reads. The store takes no more writes when 17 of 64
    // segments are in quarantine.
    assert_eq!((store.quarantined, store.counts.read_errors), (17, 51));
    assert!(store.reason.as_ref().unwrap().contains("os error 5"));
    assert_eq!(
        stats.counts.miss_device + stats.counts.miss_unavailable,
        1500
    );
    assert_eq!(
        rig.put("new", b"2").admitted,
        Admission::Memory(DropReason::NoStore)
    );
}

#[test]
fn a_store_that_holds_little_is_offline_too_once_its_disk_is_gone() {
    let mut rig = Rig::new(64, MEMORY, 3);
    rig.fill("a", 60);
    let used = rig.engine.stats().stores[0].used_bytes / u64::from(SEGMENT);
    assert!((2..5).contains(&used), "{used} segments");
    let all = rule(OpClass::Read, Fault::EIO).and(FaultRule::new(OpClass::Write, Fault::EIO));
    rig.disk.set_faults(all);
    for n in 0..60 {
        let key = format!("filler a {n}");
        forget_ram(&rig, &key);
        assert_eq!(rig.text(&key), None);
        rig.put("new", &[0; 1000]);
        rig.clock.advance(std::time::Duration::from_millis(1500));
        rig.turns(2);
    }
    assert_eq!(rig.engine.stats().stores[0].health, Health::Offline);
}

#[test]
fn a_disk_that_gives_zeros_is_left_alone_in_the_end() {
    let mut rig = Rig::new(64, MEMORY, 3);
    rig.fill("a", 1500);
    let (begin, end) = (rig.segments_at(), rig.disk.len());
    rig.disk
        .corrupt(begin, (end - begin) as usize, |b| b.fill(0));
    let mut wrong = 0;
    for n in 0..200 {
        let key = format!("filler a {}", n * 379 % 1500);
        forget_ram(&rig, &key);
        assert_eq!(rig.text(&key), None);
        wrong = rig.counts().damaged;
    }
    let store = &rig.engine.stats().stores[0];
    assert_eq!((store.health, store.quarantined), (Health::Offline, 0));
    assert!((64..100).contains(&wrong), "{wrong}");
    let reason = store.reason.as_ref().unwrap();
    assert!(reason.contains("not what was written there"), "{reason}");
}

#[test]
fn unreadable_summaries_are_replaced_by_a_scan_and_unreadable_segments_are_lost() {
    let mut rig = Rig::new(16, MEMORY, 4);
    rig.fill("a", 100);
    let slots = 8192..rig.segments_at();
    let mut again = rig.crash_unloaded(Keep::All);
    again
        .disk
        .set_faults(FaultPlan::none().and(FaultRule::new(OpClass::Read, Fault::EIO).within(slots)));
    again.settle();
    assert!((0..100).all(|n| again.get(&format!("filler a {n}")).is_some()));
    let one = rig.segments_at()..rig.segments_at() + 1;
    let disk = rig.disk.kill();
    let removals = rig.engine.fleet().store(StoreId(0)).unwrap();
    let removals = removals.space.geometry().removals_at();
    disk.corrupt(removals, (rig.segments_at() - removals) as usize, |b| {
        b.iter_mut().for_each(|b| *b ^= 0x55);
    });
    disk.set_faults(FaultPlan::none().and(FaultRule::new(OpClass::Read, Fault::EIO).within(one)));
    let mut again = Rig::open(disk, MEMORY, 5, options());
    again.settle();
    assert!(again.get("filler a 99").is_some() && again.get("filler a 1").is_none());
}

#[test]
fn disks_that_are_not_ours_are_refused_with_advice() {
    let open = |disk: &MemDisk, force| {
        Rig::try_open(
            disk.clone(),
            MEMORY,
            1,
            StoreOptions {
                force_format: force,
                ..options()
            },
        )
    };
    let refused = |disk: &MemDisk| open(disk, false).err().unwrap();
    let foreign = MemDisk::new(4 << 20, 512, 1);
    foreign.corrupt(1080, 2, |b| b.copy_from_slice(&[0x53, 0xef]));
    assert!(matches!(refused(&foreign), OpenError::Foreign { .. }));
    let partitioned = MemDisk::new(4 << 20, 512, 1);
    partitioned.corrupt((4 << 20) - 512, 8, |b| b.copy_from_slice(b"EFI PART"));
    assert!(matches!(refused(&partitioned), OpenError::Foreign { .. }));
    let small = MemDisk::new(100 << 10, 512, 1);
    assert!(matches!(refused(&small), OpenError::TooSmall { .. }));

    let ours = Rig::new(16, MEMORY, 1).disk;
    let newer = ours.kill();
    newer.corrupt(4, 1, |b| b[0] = 2);
    assert!(
        open(&newer.kill(), false).is_ok(),
        "a flipped bit is no newer version"
    );
    newer.corrupt(100, 1, |b| b[0] ^= 1);
    assert!(matches!(
        refused(&newer),
        OpenError::Newer { version: 2, .. }
    ));
    let damaged = ours.kill();
    damaged.corrupt(30, 1, |b| b[0] ^= 1);
    assert!(
        open(&damaged, false).is_ok(),
        "the other superblock is whole"
    );
    let damaged = ours.kill();
    damaged.corrupt(30, 1, |b| b[0] ^= 1);
    damaged.corrupt(4096 + 30, 1, |b| b[0] ^= 1);
    assert!(matches!(refused(&damaged), OpenError::Damaged { .. }));
    let cut = MemDisk::new(1 << 19, 512, 1);
    cut.corrupt(0, 8192, |b| b.copy_from_slice(&ours.peek(0, 8192)));
    assert!(matches!(refused(&cut), OpenError::CutShort { .. }));
    for disk in [foreign, partitioned, newer, damaged, cut] {
        let before = disk.peek(0, 8192);
        let _ = refused(&disk);
        assert!(before == disk.peek(0, 8192), "refused, but written to");
        assert!(open(&disk, true).is_ok());
        assert!(open(&disk, false).is_ok());
    }
}

#[test]
fn a_store_can_be_open_once_only() {
    let rig = Rig::new(16, MEMORY, 1);
    let twice = rig
        .engine
        .open_store(std::sync::Arc::new(rig.disk.clone()), options());
    assert!(matches!(twice.err().unwrap(), OpenError::Twice { .. }));
}

#[test]
fn a_store_whose_thread_ends_by_a_mistake_is_offline_and_says_so() {
    let Rig { engine, writer, .. } = Rig::new(16, MEMORY, 1);
    let mistake = std::thread::spawn(move || {
        let _driven = writer;
        panic!("deliberate");
    });
    assert!(mistake.join().is_err());
    let store = &engine.stats().stores[0];
    assert_eq!(store.health, Health::Offline);
    assert!(store.reason.as_ref().unwrap().contains("a mistake in Foxy"));
}
