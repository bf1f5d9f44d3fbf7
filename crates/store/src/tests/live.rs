//! Stores that are added, drained, taken out, put back and made longer while everything runs:
//! the oracle holds, contents stay, and every crash of a growth leaves one store or the other.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ManualClock, Rng, WallTime};
use foxy_disk::{AlignedBuf, Disk, Keep, MemDisk};

use super::rig::{SEGMENT, body, hash, object, options, version_of};
use crate::*;

const MEMORY: u64 = 2 << 20;
const KEYS: u64 = 40;
const MAX: u64 = 3_000;
const AT_MOST: Duration = Duration::from_secs(3600);

fn room(segments: u64) -> u64 {
    segments * u64::from(SEGMENT + 4096)
}

/// A disk, with the writer of its store while that is open.
struct Slot {
    disk: MemDisk,
    number: u8,
    writer: Option<Writer>,
}

/// An engine whose stores come and go, and what each key may hold.
struct Live {
    clock: Arc<ManualClock>,
    engine: Arc<Engine>,
    slots: Vec<Slot>,
    latest: HashMap<u64, u64>,
    version: u64,
}

impl Live {
    fn new(segments: &[u64], seed: u64) -> Self {
        let disk = |(n, segments): (usize, &u64)| Slot {
            disk: MemDisk::new(room(*segments) + (64 << 10), 512, seed + n as u64),
            number: n as u8 + 1,
            writer: None,
        };
        let mut live = Self::without(segments.iter().enumerate().map(disk).collect());
        (0..live.slots.len()).for_each(|n| live.add(n));
        live
    }

    fn without(slots: Vec<Slot>) -> Self {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
        let config = EngineConfig {
            pending_bytes_max: MEMORY / 2,
            ..EngineConfig::new(MEMORY, 1)
        };
        Self {
            engine: Engine::new(config, clock.clone()),
            clock,
            slots,
            latest: HashMap::new(),
            version: 0,
        }
    }

    fn add(&mut self, n: usize) {
        let slot = &mut self.slots[n];
        let options = StoreOptions {
            uuid: Some([slot.number; 16]),
            ..options()
        };
        let disk = Arc::new(slot.disk.clone());
        slot.writer = Some(self.engine.open_store(disk, options).unwrap());
    }

    fn id(&self, n: usize) -> StoreId {
        self.slots[n].writer.as_ref().unwrap().store_id()
    }

    fn is_open(&self, n: usize) -> bool {
        self.slots[n].writer.is_some()
    }

    fn open(&self) -> Vec<usize> {
        let all = 0..self.slots.len();
        all.filter(|n| self.is_open(*n)).collect()
    }

    fn remove(&mut self, n: usize) -> bool {
        self.slots[n].writer.take().unwrap().close(AT_MOST)
    }

    fn grow(&mut self, n: usize, segments: u64) -> Result<u32, GrowError> {
        let writer = self.slots[n].writer.take().unwrap();
        let bytes = self.slots[n].disk.len() + room(segments);
        let grown = writer.grow(bytes, AT_MOST);
        self.slots[n].writer = grown.writer;
        grown.result
    }

    /// The same after a crash; the stores that were open are in the configuration.
    fn crash(&self, seed: Option<u64>) -> Self {
        let again = self.slots.iter().map(|slot| Slot {
            disk: match seed {
                Some(seed) => slot.disk.crash(Keep::Random(seed)),
                None => slot.disk.kill(),
            },
            number: slot.number,
            writer: None,
        });
        let mut again = Self::without(again.collect());
        again.latest.clone_from(&self.latest);
        again.version = self.version;
        self.open().into_iter().for_each(|n| again.add(n));
        again
    }

    fn run(&mut self, turns: usize) {
        for _ in 0..turns {
            self.clock.advance(Duration::from_millis(50));
            for writer in self.slots.iter_mut().filter_map(|s| s.writer.as_mut()) {
                writer.turn();
            }
        }
    }

    /// Until nothing is left to do.
    fn settle(&mut self) {
        for _ in 0..2_000 {
            self.run(1);
            let mut writers = self.slots.iter().filter_map(|s| s.writer.as_ref());
            if writers.all(Writer::is_idle) {
                return;
            }
        }
        panic!("the writers do not come to rest");
    }

    /// Drains what waits for it, to the end.
    fn drain(&mut self) {
        for _ in 0..500 {
            self.run(2);
            let Some(mut drain) = self.engine.begin_drain() else {
                continue;
            };
            for _ in 0..20_000 {
                match drain.step() {
                    DrainStep::Done => return,
                    DrainStep::Wait => self.run(1),
                    DrainStep::Read(_) => {}
                }
            }
        }
        panic!("the drain does not end");
    }

    fn name(key: u64) -> String {
        format!("{key} key")
    }

    fn put(&mut self, key: u64) {
        self.version += 1;
        let new = NewObject {
            group: key,
            meta: ObjectMeta {
                purge_sequence: self.engine.purge_sequence(),
                expires: WallTime::from_secs(2_000_000),
                ..ObjectMeta::default()
            },
            ..object(&Self::name(key), &body(key, self.version, MAX))
        };
        if self.engine.put(new).admitted.is_visible() {
            self.latest.insert(key, self.version);
        } else {
            self.latest.remove(&key);
        }
    }

    fn supersede(&mut self, key: u64) {
        let name = Self::name(key);
        self.engine.supersede(hash(&name), name.as_bytes());
        self.latest.remove(&key);
    }

    /// What a request gets; it must be the latest.
    fn check(&self, key: u64) -> bool {
        let name = Self::name(key);
        let found = match self.engine.lookup(hash(&name), name.as_bytes()) {
            Lookup::Memory(object) => Some(object),
            Lookup::Miss => None,
            Lookup::Disk(plan) => {
                let mut buf = AlignedBuf::new(plan.len as usize);
                buf.set_len(plan.len as usize);
                let disk = self.engine.disk(plan.store).unwrap();
                disk.read_at(plan.at, &mut buf).unwrap();
                self.engine.finish_read(&plan, name.as_bytes(), buf).ok()
            }
        };
        if let Some(object) = &found {
            let version = version_of(key, object.body(), MAX);
            assert_eq!(self.latest.get(&key), Some(&version), "key {key}");
        }
        found.is_some()
    }

    /// Keys that are found on disks, by themselves.
    fn on_disk(&self) -> BTreeSet<u64> {
        self.engine.clear_memory();
        (0..KEYS).filter(|key| self.check(*key)).collect()
    }

    fn health(&self, n: usize) -> OneStoreStats {
        let id = self.id(n);
        let stats = self.engine.stats();
        stats.stores.into_iter().find(|s| s.store == id).unwrap()
    }
}

fn all() -> BTreeSet<u64> {
    (0..KEYS).collect()
}

#[test]
fn a_drained_store_is_empty_of_what_is_wanted_and_goes_without_a_loss() {
    let mut live = Live::new(&[16, 16], 1);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    let id = live.id(0);
    live.engine.drain_store(id).unwrap();
    assert_eq!(
        (live.health(0).duty, live.health(0).left),
        (Duty::Draining, 1.0)
    );
    assert_eq!(live.on_disk(), all(), "reads go on");
    let records = live.health(0).counts.records;
    (0..10).for_each(|key| live.put(key));
    live.drain();
    live.settle();
    assert_eq!(
        live.health(0).counts.records,
        records,
        "nothing new goes there"
    );
    assert_eq!(
        (live.health(0).duty, live.health(0).left),
        (Duty::Drained, 0.0)
    );
    assert!(live.health(0).counts.moved > 5);
    assert!(live.remove(0));
    assert_eq!(live.engine.stats().stores.len(), 1);
    assert_eq!(live.on_disk(), all(), "everything is on the other store");
    // Also after a kill of the whole; and its disk is nobody's.
    let mut again = live.crash(None);
    again.settle();
    assert_eq!(again.on_disk(), all());
}

#[test]
fn a_store_alone_is_not_drained_and_one_that_drains_may_serve_again() {
    let mut live = Live::new(&[16, 16], 1);
    let (first, second) = (live.id(0), live.id(1));
    assert_eq!(live.engine.drain_store(StoreId(9)), Err(DutyError::Unknown));
    live.engine.drain_store(first).unwrap();
    assert_eq!(live.engine.drain_store(second), Err(DutyError::Alone));
    live.engine.resume_store(first).unwrap();
    live.engine.drain_store(second).unwrap();
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    assert!(live.health(0).counts.records >= KEYS);
}

#[test]
fn a_store_comes_back_with_its_contents_but_for_what_was_removed_meanwhile() {
    for kill in [false, true] {
        let mut live = Live::new(&[16, 16], 3);
        (0..KEYS).for_each(|key| live.put(key));
        live.settle();
        assert!(live.remove(1));
        let left = live.on_disk();
        assert!(left.len() > 5 && left.len() < KEYS as usize - 5);
        // Of those that are away: some are purged, some stored again, the others stay.
        let away: Vec<_> = all().difference(&left).copied().collect();
        let (gone, newer) = (&away[..3], &away[3..5]);
        gone.iter().for_each(|key| live.supersede(*key));
        newer.iter().for_each(|key| live.put(*key));
        live.settle();
        live.add(1);
        live.settle();
        let expected: BTreeSet<_> = all().into_iter().filter(|k| !gone.contains(k)).collect();
        assert_eq!(live.on_disk(), expected);
        // What was made void is void in its log, also where nobody remembers.
        let mut again = live.crash(kill.then_some(5));
        again.settle();
        assert_eq!(again.on_disk(), expected, "kill {kill}");
    }
}

#[test]
fn a_store_that_was_away_when_the_process_ended_comes_back_empty() {
    let mut live = Live::new(&[16, 16], 3);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    assert!(live.remove(1));
    let left = live.on_disk();
    let away = *all().difference(&left).next().unwrap();
    live.supersede(away);
    live.settle();
    let mut again = live.crash(None);
    again.add(1);
    again.settle();
    assert_eq!(again.on_disk(), left);
}

#[test]
fn a_store_that_nobody_remembers_is_taken_in_empty_while_running() {
    let mut live = Live::new(&[16, 16], 3);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    // Both disks, at another engine that had something to do before the second was added.
    let mut other = live.crash(None);
    other.remove(1);
    other = Live {
        latest: live.latest.clone(),
        version: live.version,
        ..Live::without(std::mem::take(&mut other.slots))
    };
    other.slots[1].disk = live.slots[1].disk.kill();
    other.slots[0].writer = None;
    other.add(0);
    other.settle();
    let left = other.on_disk();
    (0..KEYS).for_each(|key| other.supersede(key));
    other.add(1);
    other.settle();
    assert!(!left.is_empty() && other.on_disk().is_empty());
    (0..KEYS).for_each(|key| other.put(key));
    other.settle();
    assert_eq!(other.on_disk(), all(), "and takes new objects");
    let mut again = other.crash(None);
    again.settle();
    assert_eq!(again.on_disk(), all());
}

#[test]
fn a_store_grows_with_its_contents_and_uses_the_new_room() {
    let mut live = Live::new(&[8], 3);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    let before = live.on_disk();
    assert_eq!(live.health(0).segments, 8);
    for (more, now) in [(5, 13), (1, 14), (20, 34)] {
        assert_eq!(live.grow(0, more).unwrap(), now);
        live.settle();
        assert_eq!(live.on_disk(), before);
    }
    for key in KEYS..8 * KEYS {
        live.put(key);
        live.run(2);
    }
    live.settle();
    let kept = |live: &Live| (0..8 * KEYS).filter(|key| live.check(*key)).count();
    live.engine.clear_memory();
    let found = kept(&live);
    assert_eq!(found as u64, 8 * KEYS, "half a megabyte in 34 segments");
    let mut again = live.crash(None);
    again.settle();
    assert_eq!(kept(&again), found);
    // Over the whole of it, and round.
    for round in 0..20 {
        for key in 0..8 * KEYS {
            again.put(key);
            if key % 4 == 0 {
                again.run(1);
            }
        }
        again.settle();
        again.engine.clear_memory();
        assert!(kept(&again) > 100, "round {round}");
    }
    assert!(again.health(0).counts.reused > 30);
}

#[test]
fn every_crash_of_a_growth_leaves_the_contents() {
    let prepared = || {
        let mut live = Live::new(&[8], 3);
        (0..KEYS).for_each(|key| live.put(key));
        live.settle();
        for key in 0..4 {
            live.supersede(key);
        }
        live.settle();
        live
    };
    let mut whole = prepared();
    let expected = whole.on_disk();
    assert_eq!(expected.len() as u64, KEYS - 4);
    whole.slots[0].disk.set_log(true);
    whole.grow(0, 6).unwrap();
    let operations = whole.slots[0].disk.log().len() as u64;
    assert!(operations > 10, "{operations}");
    let (mut old, mut new) = (0, 0);
    for stop in 0..=operations {
        for seed in 0..3 {
            let mut live = prepared();
            let rule = foxy_disk::FaultRule::new(foxy_disk::OpClass::Any, foxy_disk::Fault::EIO)
                .after(stop);
            live.slots[0]
                .disk
                .set_faults(foxy_disk::FaultPlan::none().and(rule));
            let _ = live.grow(0, 6);
            let crashed = match seed {
                0 => live.slots[0].disk.kill(),
                seed => live.slots[0].disk.crash(Keep::Random(seed)),
            };
            let mut again = Live {
                latest: live.latest.clone(),
                version: live.version,
                ..Live::without(vec![Slot {
                    disk: crashed,
                    number: 1,
                    writer: None,
                }])
            };
            again.add(0);
            again.settle();
            assert_eq!(again.on_disk(), expected, "cut before {stop}, {seed}");
            match again.health(0).segments {
                8 => old += 1,
                14 => new += 1,
                other => panic!("{other} segments"),
            }
            // It may be tried again, and works.
            if again.health(0).segments == 8 {
                assert_eq!(again.grow(0, 0).unwrap(), 14, "{stop}");
                again.settle();
                assert_eq!(again.on_disk(), expected);
            }
        }
    }
    assert!(old > 10 && new > 3, "{old} {new}");
}

#[test]
fn a_growth_that_cannot_be_says_why_and_changes_nothing() {
    let mut live = Live::new(&[8], 3);
    (0..KEYS).for_each(|key| live.put(key));
    live.settle();
    let found = live.on_disk();
    let problem = live.grow(0, 0).unwrap_err();
    assert!(matches!(problem, GrowError::TooSmall { .. }), "{problem}");
    for _ in 0..foxy_format::GROWTHS_MAX {
        live.grow(0, 1).unwrap();
        live.settle();
    }
    let problem = live.grow(0, 1).unwrap_err();
    assert!(matches!(problem, GrowError::TooOften(_)), "{problem}");
    assert_eq!(live.on_disk(), found);
    live.grow(0, 1).unwrap_err();
}

/// Stores come, go, drain, grow and crash in any order while keys are stored and removed; what a
/// lookup gives is always the latest.
#[test]
fn whatever_stores_do_a_lookup_gives_the_latest_or_nothing() {
    let mut hits = 0;
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let mut live = Live::new(&[8, 12, 16], seed * 10);
        for _ in 0..120 {
            turn(&mut live, &mut rng);
            for _ in 0..8 {
                let key = rng.below(KEYS);
                match rng.below(8) {
                    0..4 => live.put(key),
                    4 => live.supersede(key),
                    5 => live.run(1),
                    _ => hits += u64::from(live.check(key)),
                }
            }
        }
        live.run(10);
        hits += live.on_disk().len() as u64;
    }
    assert!(hits > 5_000, "{hits}");
}

/// Something happens to the stores.
fn turn(live: &mut Live, rng: &mut Rng) {
    let n = rng.below(live.slots.len() as u64) as usize;
    match rng.below(12) {
        0 if !live.is_open(n) => live.add(n),
        1 if live.is_open(n) && live.open().len() > 1 => {
            live.remove(n);
        }
        2 if live.is_open(n) => {
            let _ = live.engine.drain_store(live.id(n));
        }
        3 if live.is_open(n) => {
            let _ = live.engine.resume_store(live.id(n));
        }
        4 => {
            if let Some(mut drain) = live.engine.begin_drain() {
                for _ in 0..rng.below(30) {
                    if drain.step() == DrainStep::Wait {
                        live.run(1);
                    }
                }
            }
        }
        5 if live.is_open(n) && rng.below(4) == 0 => {
            let _ = live.grow(n, 1 + rng.below(3));
        }
        6 => {
            *live = live.crash(None);
        }
        7 => {
            // What was removed is durable then.
            live.run(60);
            let seed = rng.next_u64();
            *live = live.crash(Some(seed));
        }
        8 => live.engine.clear_memory(),
        _ => live.run(rng.below(5) as usize),
    }
}
