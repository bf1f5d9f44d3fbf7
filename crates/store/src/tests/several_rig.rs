//! An engine with several stores in memory, and the contents that each key may have. The test drives it
//! step by step.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ManualClock, Rng, WallTime};
use foxy_disk::{Disk, Fault, FaultPlan, FaultRule, MemDisk, OpClass};

use super::rig::{SEGMENT, body, hash, object, options, version_of};
use crate::*;

pub(super) const MEMORY: u64 = 1 << 20;
pub(super) const KEYS: u64 = 60;
pub(super) const MAX: u64 = 3_000;

/// An engine with a store on each disk, and the contents that each key may have.
pub(super) struct Several {
    pub(super) disks: Vec<MemDisk>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) engine: Arc<Engine>,
    pub(super) writers: Vec<Writer>,
    /// The version that a lookup of each key may return. For a key without a version, only a miss is
    /// correct.
    pub(super) latest: HashMap<u64, u64>,
    version: u64,
    /// The number of stores that got an identity so far.
    named: Cell<u32>,
}

pub(super) fn disk(segments: u64, seed: u64) -> MemDisk {
    MemDisk::new(segments * u64::from(SEGMENT + 4096) + (64 << 10), 512, seed)
}

impl Several {
    pub(super) fn open(disks: Vec<MemDisk>) -> Self {
        Self::start(disks, 0).unwrap()
    }

    /// Opens the stores as Foxy does at a start: it compares the memberships of all stores, opens all stores,
    /// and lets them join.
    fn start(disks: Vec<MemDisk>, named: u32) -> Result<Self, OpenError> {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
        let config = EngineConfig {
            pending_bytes_max: MEMORY / 2,
            ..EngineConfig::new(MEMORY, 1)
        };
        let mut started = Self {
            engine: Engine::new(config, clock.clone()),
            disks,
            clock,
            writers: Vec::new(),
            latest: HashMap::new(),
            version: 0,
            named: named.into(),
        };
        let disks = started.disks.iter();
        let met: Vec<_> = disks.map(|d| Arc::new(d.clone()) as _).collect();
        started.engine.compare_memberships(&met, &options())?;
        for disk in met {
            let writer = started.open_one(disk)?;
            started.writers.push(writer);
        }
        started.engine.join(&mut started.writers)?;
        Ok(started)
    }

    fn open_one(&self, disk: Arc<dyn Disk>) -> Result<Writer, OpenError> {
        let named = self.named.get() + 1;
        self.named.set(named);
        let options = StoreOptions {
            uuid: Some((u128::from(named) * 0x0101_0101).to_be_bytes()),
            ..options()
        };
        self.engine.open_store(disk, options)
    }

    /// Adds one more store while everything runs.
    pub(super) fn add(&mut self, disk: MemDisk) -> Result<(), OpenError> {
        let mut writer = self.open_one(Arc::new(disk.clone()))?;
        self.engine.join(std::slice::from_mut(&mut writer))?;
        self.writers.push(writer);
        self.disks.push(disk);
        Ok(())
    }

    /// Makes two stores with all keys on them, and nothing in flight.
    pub(super) fn filled() -> Self {
        let mut several = Self::open(vec![disk(16, 1), disk(16, 2)]);
        several.put_all();
        several
    }

    pub(super) fn put_all(&mut self) {
        (0..KEYS).for_each(|key| {
            self.put(key);
        });
        self.run(60);
    }

    /// Kills the process. Returns an engine with only the first store, the disk of the second store, and the
    /// keys on that disk.
    pub(super) fn without_the_second(&self) -> (Self, MemDisk, Vec<u64>) {
        let mut disks = self.killed_disks();
        let absent = disks.remove(1);
        let mut alone = self.kill(disks);
        let missing: Vec<_> = (0..KEYS).filter(|key| !alone.check(*key)).collect();
        assert!((10..50).contains(&missing.len()), "{missing:?}");
        (alone, absent, missing)
    }

    /// Returns the same contents after a kill, on these disks.
    pub(super) fn kill(&self, disks: Vec<MemDisk>) -> Self {
        self.try_kill(disks).unwrap()
    }

    pub(super) fn try_kill(&self, disks: Vec<MemDisk>) -> Result<Self, OpenError> {
        // A failed start may format stores, which get their own identities as well.
        let named = self.named.get();
        self.named.set(named + disks.len() as u32);
        let mut again = Self::start(disks, named)?;
        again.latest.clone_from(&self.latest);
        again.version = self.version;
        again.run(40);
        Ok(again)
    }

    pub(super) fn killed_disks(&self) -> Vec<MemDisk> {
        self.disks.iter().map(MemDisk::kill).collect()
    }

    pub(super) fn run(&mut self, turns: usize) {
        for _ in 0..turns {
            self.clock.advance(Duration::from_millis(50));
            for writer in &mut self.writers {
                writer.turn();
            }
        }
    }

    pub(super) fn name(key: u64) -> String {
        format!("{key} key")
    }

    pub(super) fn put(&mut self, key: u64) -> Admission {
        self.version += 1;
        let new = NewObject {
            group: key,
            meta: ObjectMeta {
                purge_sequence: self.engine.purges().purge_sequence(),
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

    pub(super) fn supersede(&mut self, key: u64) {
        let name = Self::name(key);
        self.engine.supersede(hash(&name), name.as_bytes());
        self.latest.remove(&key);
    }

    /// Returns whether a request gets the object, and checks that it is the latest version.
    pub(super) fn check(&mut self, key: u64) -> bool {
        let name = Self::name(key);
        let found = match self.engine.reads().lookup(hash(&name), name.as_bytes()) {
            Lookup::Memory(object) => Some(object),
            Lookup::Miss => None,
            Lookup::Disk(plan) => {
                let mut buf = foxy_disk::AlignedBuf::new(plan.len as usize);
                buf.set_len(plan.len as usize);
                let read = self
                    .engine
                    .fleet()
                    .disk(plan.store)
                    .unwrap()
                    .read_at(plan.at, &mut buf);
                match read {
                    Ok(()) => self
                        .engine
                        .reads()
                        .finish_read(&plan, name.as_bytes(), buf)
                        .ok(),
                    Err(error) => {
                        self.engine.reads().fail_read(&plan, &error);
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

    pub(super) fn hits(&mut self) -> u64 {
        (0..KEYS).map(|key| u64::from(self.check(key))).sum()
    }

    pub(super) fn forget_memory(&self) {
        self.engine.context().memory.clear();
    }

    pub(super) fn store(&self, n: usize) -> OneStoreStats {
        self.engine.stats().stores[n].clone()
    }

    /// Does random operations on all keys.
    pub(super) fn work(&mut self, rng: &mut Rng, steps: u64) {
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

pub(super) fn dies(disk: &MemDisk, errno: i32) {
    let rule = FaultRule::new(OpClass::Any, Fault::Errno(errno));
    disk.set_faults(FaultPlan::none().and(rule));
}
