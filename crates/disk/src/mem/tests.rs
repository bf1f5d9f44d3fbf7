//! Tests of faults, power cuts and step mode of the memory disk.

use super::*;
use crate::{AlignedBuf, Completion, Op};
use foxy_base::{ManualClock, WallTime};
use proptest::prelude::*;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::time::Duration;

const B: usize = 512;

fn disk() -> MemDisk {
    MemDisk::new(64 << 10, 512, 7)
}

fn block(byte: u8) -> AlignedBuf {
    blocks(byte, 1)
}

fn blocks(byte: u8, count: usize) -> AlignedBuf {
    AlignedBuf::copy_of(&vec![byte; count * B])
}

/// Flushes submissions, and reaps all completions that have arrived.
fn turn(queue: &mut dyn Queue) -> Vec<Completion> {
    let mut out = Vec::new();
    queue.flush_submissions().unwrap();
    queue.reap(&mut out);
    out
}

fn kinds(done: &[Completion]) -> Vec<Option<ErrorKind>> {
    done.iter()
        .map(|c| c.result.as_ref().err().map(io::Error::kind))
        .collect()
}

#[test]
fn a_power_cut_keeps_what_was_flushed_and_only_that() {
    let disk = disk();
    disk.write_at(0, &block(1)).unwrap();
    disk.flush().unwrap();
    disk.write_at(0, &block(2)).unwrap();
    disk.write_at(512, &block(3)).unwrap();
    assert_eq!(disk.peek(0, 2)[0], 2);
    let cut = disk.crash(Keep::Nothing);
    assert_eq!((cut.peek(0, 1)[0], cut.peek(512, 1)[0]), (1, 0));
    let killed = disk.kill();
    assert_eq!((killed.peek(0, 1)[0], killed.peek(512, 1)[0]), (2, 3));
    let second = disk.crash(Keep::Writes(&mut |w| w.index == 1));
    assert_eq!((second.peek(0, 1)[0], second.peek(512, 1)[0]), (1, 3));
    // The data of the crashed disk is durable, and the old disk is unchanged.
    assert_eq!(second.crash(Keep::Nothing).peek(512, 1)[0], 3);
    assert_eq!(disk.unsynced().len(), 2);
}

#[test]
fn blocks_and_sectors_of_one_write_may_be_kept_apart() {
    let disk = MemDisk::new(64 << 10, 4096, 1);
    disk.write_at(4096, &AlignedBuf::copy_of(&[9; 8192]))
        .unwrap();
    let half = disk.crash(Keep::Blocks(&mut |_, n| n == 1));
    assert_eq!((half.peek(4096, 1)[0], half.peek(8192, 1)[0]), (0, 9));
    let torn = disk.crash(Keep::Sectors(&mut |_, n| n % 2 == 0));
    assert_eq!((torn.peek(4096, 1)[0], torn.peek(4096 + 512, 1)[0]), (9, 0));
    assert_eq!((torn.peek(8192, 1)[0], torn.peek(8192 + 512, 1)[0]), (9, 0));
}

#[test]
fn a_flush_covers_only_what_had_been_seen_complete() {
    let disk = disk();
    let mut queue = disk.open_queue(4).unwrap();
    queue.submit(Op::write(1, 0, B, block(1)));
    queue.submit(Op::flush(2));
    assert_eq!(turn(&mut *queue).len(), 2);
    assert_eq!(
        disk.crash(Keep::Nothing).peek(0, 1)[0],
        0,
        "in flight together: no promise"
    );
    queue.submit(Op::flush(3));
    turn(&mut *queue);
    assert_eq!(disk.crash(Keep::Nothing).peek(0, 1)[0], 1);
    // This flush was submitted before the completion was seen, and executed after it. So this flush does not
    // cover the write.
    queue.submit(Op::write(4, 512, B, block(2)));
    queue.flush_submissions().unwrap();
    queue.submit(Op::flush(5));
    turn(&mut *queue);
    assert_eq!(disk.crash(Keep::Nothing).peek(512, 1)[0], 0);
    disk.flush().unwrap();
    assert_eq!(disk.crash(Keep::Nothing).peek(512, 1)[0], 2);
}

#[test]
fn steps_enumerate_orders_and_crashes_keep_what_was_in_flight() {
    let disk = disk();
    disk.set_step(true);
    let mut queue = disk.open_queue(4).unwrap();
    queue.submit(Op::write(1, 0, B, block(1)));
    queue.submit(Op::write(2, 0, B, block(2)));
    queue.submit(Op::read(3, 0, B, block(0)));
    assert!(turn(&mut *queue).is_empty());
    let held = disk.held();
    assert_eq!(held.iter().map(|h| h.token).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(disk.kill().peek(0, 1)[0], 0);
    assert_eq!(
        disk.crash(Keep::Writes(&mut |w| w.index == 0)).peek(0, 1)[0],
        1
    );
    assert!(disk.release(held[1].id) && !disk.release(held[1].id));
    assert!(disk.release(held[0].id));
    let done = turn(&mut *queue);
    assert_eq!(done.iter().map(|c| c.token).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(disk.peek(0, 1)[0], 1, "released last, written last");
    disk.set_step(false);
    let read = turn(&mut *queue).remove(0);
    assert_eq!((read.token, read.buf.unwrap()[0]), (3, 1));
}

#[test]
fn what_a_dropped_queue_had_in_flight_may_still_arrive() {
    let disk = disk();
    disk.set_step(true);
    let mut queue = disk.open_queue(4).unwrap();
    queue.submit(Op::write(1, 0, B, block(1)));
    queue.flush_submissions().unwrap();
    drop(queue);
    assert_eq!(disk.unsynced().len(), 1);
    disk.release_all();
    assert_eq!(disk.peek(0, 1)[0], 1);
}

#[test]
fn errors_hit_their_range_their_kind_and_their_number() {
    let disk = disk();
    let rule = FaultRule::new(OpClass::Read, Fault::EIO)
        .within(512..1024)
        .after(1)
        .times(2);
    disk.set_faults(rule);
    disk.write_at(512, &block(5)).unwrap();
    let mut into = [0; 512];
    disk.read_at(0, &mut into).unwrap();
    disk.read_at(1024, &mut into).unwrap();
    let results: Vec<_> = (0..4)
        .map(|_| disk.read_at(512, &mut into).is_ok())
        .collect();
    assert_eq!(results, [true, false, false, true]);
    assert_eq!(disk.counts().faults, 2);
    disk.set_faults(FaultRule::new(OpClass::Write, Fault::ENOSPC));
    let full = disk.write_at(512, &block(6)).unwrap_err();
    assert_eq!(
        (full.kind(), disk.peek(512, 1)[0]),
        (ErrorKind::StorageFull, 5)
    );
}

#[test]
fn a_failed_flush_makes_nothing_durable_and_a_lying_one_says_otherwise() {
    let disk = disk();
    disk.write_at(0, &block(1)).unwrap();
    disk.set_faults(FaultRule::new(OpClass::Flush, Fault::EIO));
    disk.flush().unwrap_err();
    assert_eq!(disk.crash(Keep::Nothing).peek(0, 1)[0], 0);
    disk.set_faults(FaultRule::new(OpClass::Flush, Fault::FlushLies));
    disk.flush().unwrap();
    assert_eq!(disk.crash(Keep::Nothing).peek(0, 1)[0], 0);
    disk.set_faults(FaultPlan::none());
    disk.flush().unwrap();
    assert_eq!(disk.crash(Keep::Nothing).peek(0, 1)[0], 1);
}

#[test]
fn writes_that_go_wrong_in_silence() {
    let disk = disk();
    disk.set_faults(FaultRule::new(OpClass::Write, Fault::Lost));
    disk.write_at(0, &block(1)).unwrap();
    assert_eq!(disk.peek(0, 1)[0], 0);
    disk.set_faults(FaultRule::new(OpClass::Write, Fault::Misdirected(1024)));
    disk.write_at(512, &block(2)).unwrap();
    assert_eq!(
        (disk.peek(512, 1)[0], disk.peek(1536, 512)),
        (0, vec![2; 512])
    );
    disk.set_faults(FaultRule::new(OpClass::Write, Fault::Misdirected(-512)));
    disk.write_at(0, &block(3)).unwrap();
    assert_eq!(disk.peek((64 << 10) - 512, 1)[0], 3, "round the end");
    disk.set_faults(FaultRule::new(OpClass::Write, Fault::Torn));
    disk.write_at(8192, &blocks(4, 64)).unwrap();
    let kept = disk
        .peek(8192, 64 * B)
        .chunks(B)
        .filter(|s| s[0] == 4)
        .count();
    assert!((10..54).contains(&kept), "{kept} of 64 sectors");
    disk.set_faults(FaultRule::new(OpClass::Write, Fault::BitRot(3)));
    disk.write_at(4096, &block(0)).unwrap();
    let flipped: u32 = disk.peek(4096, B).iter().map(|b| b.count_ones()).sum();
    assert!(flipped == 3 || flipped == 1, "{flipped} bits");
}

#[test]
fn writes_that_fail_half_way() {
    let disk = disk();
    disk.set_faults(FaultRule::new(OpClass::Write, Fault::Short(600)));
    let error = disk.write_at(0, &blocks(1, 4)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WriteZero);
    assert_eq!((disk.peek(599, 1)[0], disk.peek(600, 1)[0]), (1, 0));
    disk.set_faults(FaultRule::new(OpClass::Write, Fault::TornError));
    disk.write_at(8192, &blocks(1, 8)).unwrap_err();
    disk.set_faults(FaultRule::new(OpClass::Read, Fault::Short(1)));
    let error = disk.read_at(0, &mut [0; 9]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn late_writes_come_over_later_ones_and_past_a_flush() {
    let disk = disk();
    disk.set_faults(FaultRule::new(OpClass::Write, Fault::Late(2)).times(1));
    disk.write_at(0, &block(1)).unwrap();
    disk.write_at(0, &block(2)).unwrap();
    disk.flush().unwrap();
    assert_eq!(disk.peek(0, 1)[0], 2);
    assert_eq!(disk.crash(Keep::Writes(&mut |_| true)).peek(0, 1)[0], 1);
    disk.write_at(512, &block(3)).unwrap();
    assert_eq!(disk.peek(0, 1)[0], 1);
}

#[test]
fn reads_that_lie() {
    let disk = disk();
    disk.write_at(0, &block(1)).unwrap();
    disk.write_at(512, &block(2)).unwrap();
    let mut into = [0; 512];
    disk.set_faults(FaultRule::new(OpClass::Read, Fault::Misdirected(512)).times(1));
    disk.read_at(0, &mut into).unwrap();
    assert_eq!(into, [2; 512]);
    disk.read_at(0, &mut into).unwrap();
    assert_eq!(into, [1; 512]);
    disk.set_faults(FaultRule::new(OpClass::Read, Fault::BitRot(1)).times(1));
    disk.read_at(0, &mut into).unwrap();
    assert_eq!(into.iter().map(|b| (b ^ 1).count_ones()).sum::<u32>(), 1);
    // The bytes on the disk itself have changed.
    assert_eq!(disk.peek(0, 512), into);
    disk.corrupt(512, 1, |b| b[0] ^= 0x80);
    assert_eq!(
        disk.crash(Keep::All).peek(512, 2),
        [0x82, 2],
        "unsynced or not"
    );
    disk.flush().unwrap();
    assert_eq!(disk.crash(Keep::Nothing).peek(512, 2), [0x82, 2]);
}

#[test]
fn slow_and_stuck_operations() {
    let clock = Arc::new(ManualClock::new(WallTime(0)));
    let disk = disk().with_clock(clock.clone());
    let mut queue = disk.open_queue(4).unwrap();
    disk.set_faults(FaultRule::new(OpClass::Any, Fault::Looks(3)));
    queue.submit(Op::flush(1));
    let looks: Vec<_> = (0..3).map(|_| turn(&mut *queue).len()).collect();
    assert_eq!(looks, [0, 0, 1]);
    disk.set_faults(FaultRule::new(
        OpClass::Any,
        Fault::Delay(Duration::from_secs(5)),
    ));
    queue.submit(Op::flush(2));
    assert!(turn(&mut *queue).is_empty());
    assert!(!queue.wait(Duration::from_millis(2)).unwrap());
    clock.advance(Duration::from_secs(5));
    assert!(queue.wait(Duration::from_secs(30)).unwrap());
    assert_eq!(turn(&mut *queue)[0].token, 2);
    disk.set_faults(FaultRule::new(OpClass::Any, Fault::Stuck));
    queue.submit(Op::read(3, 0, B, block(0)));
    clock.advance(Duration::from_secs(3600));
    assert!(turn(&mut *queue).is_empty());
    assert_eq!(queue.in_flight(), 1);
    assert_eq!(disk.flush().unwrap_err().kind(), ErrorKind::TimedOut);
    disk.unstick();
    assert_eq!(kinds(&turn(&mut *queue)), [None]);
}

#[test]
fn counts_and_log_tell_what_happened() {
    let disk = disk();
    disk.set_log(true);
    let mut queue = disk.open_queue(4).unwrap();
    queue.submit(Op::write(1, 512, B, block(1)));
    turn(&mut *queue);
    disk.read_at(3, &mut [0; 10]).unwrap();
    disk.flush().unwrap();
    let entry = |queue, class, at, len| LoggedOp {
        queue,
        class,
        at,
        len,
        fault: None,
    };
    let expected = [
        entry(Some(0), OpClass::Write, 512, 512),
        entry(None, OpClass::Read, 3, 10),
        entry(None, OpClass::Flush, 0, 0),
    ];
    assert_eq!(disk.log(), expected);
    let counts = disk.counts();
    assert_eq!((counts.reads, counts.writes, counts.flushes), (1, 1, 1));
    assert_eq!(
        (counts.read_bytes, counts.written_bytes, counts.faults),
        (10, 512, 0)
    );
}

/// Runs one seeded history with random faults, and returns its results.
fn history(seed: u64) -> (Vec<u8>, Vec<u8>, Counts) {
    let disk = MemDisk::new(64 << 10, 512, seed);
    let faults = FaultRule::new(OpClass::Write, Fault::Torn).chance(0.3);
    disk.set_faults(
        FaultPlan::from(faults).and(FaultRule::new(OpClass::Any, Fault::EIO).chance(0.1)),
    );
    for n in 0..60u8 {
        let _ = disk.write_at(u64::from(n % 30) * 1024, &blocks(n, 4));
        if n % 16 == 0 {
            let _ = disk.flush();
        }
    }
    let cut = disk.crash(Keep::Random(seed));
    (disk.peek(0, 64 << 10), cut.peek(0, 64 << 10), disk.counts())
}

#[test]
fn a_seed_fixes_everything() {
    assert!(history(3) == history(3));
    assert!(history(3).0 != history(4).0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// For every subset of writes that a power cut keeps, each block has its durable contents or the contents
    /// from one of the later writes.
    #[test]
    fn a_cut_invents_nothing(writes in prop::collection::vec((0u64..16, 1usize..4, any::<bool>()), 1..40), seed: u64) {
        let disk = MemDisk::new(16 << 10, 512, seed);
        let mut possible = vec![vec![0u8]; 32];
        for (n, (at, len, flush)) in (1u8..).zip(writes) {
            disk.write_at(at * 512, &blocks(n, len)).unwrap();
            for place in &mut possible[at as usize..at as usize + len] {
                place.push(n);
            }
            if flush {
                disk.flush().unwrap();
                for place in &mut possible {
                    *place = place.split_off(place.len() - 1);
                }
            }
        }
        let cut = disk.crash(Keep::Random(seed));
        for (place, found) in possible.iter().zip(cut.peek(0, 16 << 10).chunks(512)) {
            prop_assert!(found.iter().all(|b| *b == found[0]));
            prop_assert!(place.contains(&found[0]), "{} is none of {place:?}", found[0]);
        }
    }
}

#[test]
fn a_kill_keeps_cached_writes_and_a_power_cut_any_sectors_of_them() {
    let disk = MemDisk::new(1 << 20, 4096, 1);
    disk.write_cached(500, &[5; 40]).unwrap();
    assert_eq!(disk.kill().peek(500, 40), [5; 40]);
    assert_eq!(disk.crash(Keep::Nothing).peek(500, 40), [0; 40]);
    let mut parts = HashSet::new();
    for seed in 0..40 {
        let after = disk.crash(Keep::Random(seed)).peek(500, 40);
        assert!(after[..12].iter().all(|b| *b == after[0]));
        assert!(after[12..].iter().all(|b| *b == after[12]));
        parts.insert((after[0], after[12]));
    }
    assert_eq!(parts.len(), 4, "both parts, either, none: {parts:?}");
    disk.flush().unwrap();
    assert_eq!(disk.crash(Keep::Nothing).peek(500, 40), [5; 40]);
}
