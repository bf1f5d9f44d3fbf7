//! Several stores under one engine: one that dies, is missing, or is of another size.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ManualClock, Rng, WallTime};
use foxy_disk::{Fault, FaultPlan, FaultRule, MemDisk, OpClass};

use super::rig::{SEGMENT, body, hash, object, options, version_of};
use crate::*;

const MEMORY: u64 = 1 << 20;
const KEYS: u64 = 60;
const MAX: u64 = 3_000;

/// An engine with a store on each disk, and what each key may hold.
struct Several {
    disks: Vec<MemDisk>,
    clock: Arc<ManualClock>,
    engine: Arc<Engine>,
    writers: Vec<Writer>,
    /// The version that a lookup may give; none: only a miss.
    latest: HashMap<u64, u64>,
    version: u64,
}

fn disk(segments: u64, seed: u64) -> MemDisk {
    MemDisk::new(segments * u64::from(SEGMENT + 4096) + (64 << 10), 512, seed)
}

impl Several {
    fn open(disks: Vec<MemDisk>) -> Self {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
        let config = EngineConfig {
            pending_bytes_max: MEMORY / 2,
            ..EngineConfig::new(MEMORY, 1)
        };
        let engine = Engine::new(config, clock.clone());
        let met: Vec<_> = disks.iter().map(|d| Arc::new(d.clone()) as _).collect();
        engine.meet(&met);
        let open = |(n, disk): (usize, &MemDisk)| {
            let options = StoreOptions {
                uuid: Some([n as u8 + 1; 16]),
                ..options()
            };
            engine.open_store(Arc::new(disk.clone()), options).unwrap()
        };
        let writers = disks.iter().enumerate().map(open).collect();
        Self {
            disks,
            clock,
            engine,
            writers,
            latest: HashMap::new(),
            version: 0,
        }
    }

    /// The same contents after a kill, on these disks.
    fn kill(&self, disks: Vec<MemDisk>) -> Self {
        let mut again = Self::open(disks);
        again.latest.clone_from(&self.latest);
        again.version = self.version;
        again.run(40);
        again
    }

    fn killed_disks(&self) -> Vec<MemDisk> {
        self.disks.iter().map(MemDisk::kill).collect()
    }

    fn run(&mut self, turns: usize) {
        for _ in 0..turns {
            self.clock.advance(Duration::from_millis(50));
            for writer in &mut self.writers {
                writer.turn();
            }
        }
    }

    fn name(key: u64) -> String {
        format!("{key} key")
    }

    fn put(&mut self, key: u64) -> Admission {
        self.version += 1;
        let new = NewObject {
            group: key,
            meta: ObjectMeta {
                purge_sequence: self.engine.purge_sequence(),
                ..ObjectMeta::default()
            },
            ..object(&Self::name(key), &body(key, self.version, MAX))
        };
        let admitted = self.engine.put(new).admitted;
        if admitted.is_visible() {
            self.latest.insert(key, self.version);
        } else {
            self.latest.remove(&key);
        }
        admitted
    }

    fn supersede(&mut self, key: u64) {
        let name = Self::name(key);
        self.engine.supersede(hash(&name), name.as_bytes());
        self.latest.remove(&key);
    }

    /// What a request gets; it must be the latest.
    fn check(&mut self, key: u64) -> bool {
        let name = Self::name(key);
        let found = match self.engine.lookup(hash(&name), name.as_bytes()) {
            Lookup::Memory(object) => Some(object),
            Lookup::Miss => None,
            Lookup::Disk(plan) => {
                let mut buf = foxy_disk::AlignedBuf::new(plan.len as usize);
                buf.set_len(plan.len as usize);
                let read = self
                    .engine
                    .disk(plan.store)
                    .unwrap()
                    .read_at(plan.at, &mut buf);
                match read {
                    Ok(()) => self.engine.finish_read(&plan, name.as_bytes(), buf).ok(),
                    Err(error) => {
                        self.engine.fail_read(&plan, &error);
                        None
                    }
                }
            }
        };
        if let Some(object) = &found {
            let version = version_of(key, object.body(), MAX);
            assert_eq!(self.latest.get(&key), Some(&version), "key {key}");
        }
        found.is_some()
    }

    fn hits(&mut self) -> u64 {
        (0..KEYS).map(|key| u64::from(self.check(key))).sum()
    }

    fn forget_memory(&self) {
        self.engine.clear_memory();
    }

    fn store(&self, n: usize) -> OneStoreStats {
        self.engine.stats().stores[n].clone()
    }

    /// Random work on all keys.
    fn work(&mut self, rng: &mut Rng, steps: u64) {
        for _ in 0..steps {
            let key = rng.below(KEYS);
            match rng.below(10) {
                0..4 => {
                    self.put(key);
                }
                4 => self.supersede(key),
                5 => self.forget_memory(),
                6..8 => {
                    self.check(key);
                }
                _ => self.run(1),
            }
        }
    }
}

fn dies(disk: &MemDisk, errno: i32) {
    let rule = FaultRule::new(OpClass::Any, Fault::Errno(errno));
    disk.set_faults(FaultPlan::none().and(rule));
}

#[test]
fn when_one_store_dies_the_other_goes_on_and_the_oracle_holds() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let mut several = Several::open(vec![disk(16, seed), disk(24, seed + 50)]);
        several.work(&mut rng, 600);
        several.run(40);
        let victim = (seed % 2) as usize;
        dies(&several.disks[victim], 5);
        several.work(&mut rng, 1_500);
        several.run(60);
        assert_ne!(several.store(victim).health, Health::Good, "seed {seed}");
        let living = 1 - victim;
        assert_eq!(several.store(living).health, Health::Good);
        let records = several.store(living).counts.records;
        for key in 0..KEYS {
            assert_eq!(several.put(key), Admission::Disk, "seed {seed}");
        }
        several.run(60);
        assert!(several.store(living).counts.records >= records + KEYS);
        several.forget_memory();
        assert_eq!(several.hits(), KEYS, "all of them are on the living store");
        // What is superseded now is known to the living store alone.
        (0..KEYS / 2).for_each(|key| several.supersede(key));
        several.run(60);
        // The dead one is there again at the next start, with what it had; in either order.
        let mut disks = several.killed_disks();
        disks.iter().for_each(|d| d.set_faults(FaultPlan::none()));
        for _ in 0..2 {
            // Entries of what is void may have taken the place of others until they are met.
            let hits = several.kill(disks.clone()).hits();
            assert!((KEYS / 8..=KEYS / 2).contains(&hits), "seed {seed}: {hits}");
            disks.reverse();
        }
    }
}

#[test]
fn a_store_that_was_missing_for_a_run_brings_nothing_back_and_costs_its_own_objects_alone() {
    let mut several = Several::open(vec![disk(16, 1), disk(16, 2)]);
    for key in 0..KEYS {
        several.put(key);
    }
    several.run(60);
    let mut disks = several.killed_disks();
    let away = disks.pop().unwrap();
    let mut alone = several.kill(disks);
    let kept = alone.hits();
    assert!(kept > 10 && kept < KEYS - 10, "{kept}");
    // What it holds is replaced without it, and purged.
    let missing: Vec<_> = (0..KEYS).filter(|key| !alone.check(*key)).collect();
    for (n, key) in missing.iter().enumerate() {
        alone.put(*key);
        if n % 2 == 0 {
            alone.supersede(*key);
        }
    }
    alone.run(60);
    let replaced = missing.len() as u64 / 2;
    let mut disks = alone.killed_disks();
    disks.push(away.kill());
    for _ in 0..2 {
        let mut both = alone.kill(disks);
        assert_eq!(both.hits(), kept + replaced);
        disks = both.killed_disks();
        disks.reverse();
    }
}

#[test]
fn a_crash_while_a_store_that_was_missing_is_taken_in_brings_nothing_back() {
    let mut several = Several::open(vec![disk(16, 1), disk(16, 2)]);
    for key in 0..KEYS {
        several.put(key);
    }
    several.run(60);
    let mut disks = several.killed_disks();
    let away = disks.pop().unwrap();
    let mut alone = several.kill(disks);
    let missing: Vec<_> = (0..KEYS).filter(|key| !alone.check(*key)).collect();
    for key in &missing {
        alone.put(*key);
        alone.supersede(*key);
    }
    alone.run(60);
    let kept = KEYS - missing.len() as u64;
    for writes in 0..4 {
        let disks = [alone.disks[0].kill(), away.kill()];
        // So many writes of its opening reach the disk, then it fails; the next start is whole.
        let broken = FaultRule::new(OpClass::Write, Fault::EIO).after(writes);
        disks[1].set_faults(FaultPlan::none().and(broken));
        let engine = Engine::new(EngineConfig::new(MEMORY, 1), alone.clock.clone());
        let met: Vec<_> = disks.iter().map(|d| Arc::new(d.clone()) as _).collect();
        engine.meet(&met);
        for disk in met {
            let _ = engine.open_store(disk, options());
        }
        drop(engine);
        disks[1].set_faults(FaultPlan::none());
        let disks = disks.iter().map(MemDisk::kill).collect();
        assert_eq!(alone.kill(disks).hits(), kept, "{writes} writes");
    }
}

#[test]
fn stores_of_different_sizes_take_objects_by_their_sizes() {
    let mut several = Several::open(vec![disk(64, 1), disk(16, 2)]);
    for key in 0..600 {
        several.put(key);
        if key % 8 == 0 {
            several.run(2);
        }
    }
    several.run(60);
    let taken = |n: usize| several.store(n).counts.records as f64;
    let share = taken(1) / (taken(0) + taken(1));
    // 16 of 80 segments; the weight is the capacity in whole MiB.
    assert!((0.1..0.35).contains(&share), "{share}");
}

#[test]
fn a_slow_store_is_left_alone_for_a_while_and_keeps_its_objects() {
    let mut several = Several::open(vec![disk(16, 1), disk(16, 2)]);
    for key in 0..KEYS {
        several.put(key);
    }
    several.run(60);
    several.forget_memory();
    let plan = (0..KEYS).find_map(|key| {
        let name = Several::name(key);
        match several.engine.lookup(hash(&name), name.as_bytes()) {
            Lookup::Disk(plan) if plan.store == StoreId(0) => Some(plan),
            _ => None,
        }
    });
    let plan = plan.unwrap();
    several.engine.give_up_read(&plan);
    assert_eq!(several.store(0).health, Health::Slow);
    let hits = several.hits();
    assert!(hits > 0 && hits < KEYS, "the other store's: {hits}");
    let records = several.store(0).counts.records;
    for key in KEYS..KEYS + 30 {
        assert_eq!(several.put(key), Admission::Disk);
    }
    several.run(60);
    assert_eq!(several.store(0).counts.records, records);
    assert_eq!(
        several.store(0).health,
        Health::Slow,
        "the read is still out"
    );
    several.engine.late_read(&plan);
    several.clock.advance(Duration::from_secs(2));
    assert_eq!(several.store(0).health, Health::Good);
    several.forget_memory();
    assert_eq!(several.hits(), KEYS, "nothing was dropped");
}

/// Operations on a region of the first disk while every segment is reused twice or more.
fn touched(several: &mut Several, region: &std::ops::Range<u64>, rng: &mut Rng) -> usize {
    several.disks[0].set_log(true);
    let reused = several.store(0).counts.reused;
    while several.store(0).counts.reused < reused + 40 {
        several.work(rng, 50);
    }
    let log = several.disks[0].log();
    several.disks[0].set_log(false);
    assert!(log.len() > 40);
    log.iter().filter(|op| region.contains(&op.at)).count()
}

#[test]
fn a_segment_that_cannot_be_read_is_neither_read_nor_written_any_more() {
    let mut several = Several::open(vec![disk(16, 3)]);
    let mut rng = Rng::new(7);
    several.work(&mut rng, 300);
    several.run(40);
    let store = several.engine.store(StoreId(0)).unwrap();
    let at = store.geometry.segment_at(2);
    let region = at..at + u64::from(SEGMENT);
    let rule = FaultRule::new(OpClass::Read, Fault::EIO).within(region.clone());
    several.disks[0].set_faults(FaultPlan::none().and(rule.clone()));
    for _ in 0..40 {
        several.work(&mut rng, 50);
        several.forget_memory();
        several.hits();
        if several.store(0).quarantined == 1 {
            break;
        }
    }
    assert_eq!(several.store(0).quarantined, 1);
    // What was under way there may end.
    several.run(20);
    let errors = several.store(0).counts.read_errors;
    assert_eq!(touched(&mut several, &region, &mut rng), 0);
    assert_eq!(several.store(0).counts.read_errors, errors);
    assert_eq!(several.store(0).health, Health::Good);
    assert!(several.hits() > 10);
    // The next start knows of the quarantine.
    let mut again = several.kill(several.killed_disks());
    assert_eq!(again.store(0).quarantined, 1);
    assert_eq!(touched(&mut again, &region, &mut rng), 0);
    // It is tried again where it is as bad as before, and where it is not.
    again.disks[0].set_faults(FaultPlan::none().and(rule));
    again.engine.retry_quarantine(StoreId(0)).unwrap();
    again.run(1);
    assert_eq!(again.store(0).quarantined, 1);
    again.disks[0].set_faults(FaultPlan::none());
    again.engine.retry_quarantine(StoreId(0)).unwrap();
    again.run(1);
    assert_eq!(again.store(0).quarantined, 0);
    let mut good = again.kill(again.killed_disks());
    assert_eq!(good.store(0).quarantined, 0);
    assert!(touched(&mut good, &region, &mut rng) > 0);
    assert!(good.hits() > 10);
}
