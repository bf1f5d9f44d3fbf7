//! An engine with some stores on disks that may fail; the test drives it step by step.

use std::sync::Arc;
use std::time::Duration;

use foxy_base::{Clock, ManualClock, MonoTime, WallTime};
use foxy_disk::{AlignedBuf, Disk, Fault, FaultPlan, FaultRule, Keep, MemDisk, OpClass};
use foxy_format::Geometry;

use super::super::rig::{hash, options};
use super::super::several_rig::disk;
use crate::*;

const MEMORY: u64 = 512 << 10;

pub(super) struct Bench {
    pub(super) disks: Vec<MemDisk>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) engine: Arc<Engine>,
    writers: Vec<Writer>,
}

/// The fault plan of each disk, in the order of the disks.
pub(super) type Plans = Vec<FaultPlan>;

/// Makes a plan with these faults at the operations with these numbers, in ascending order.
pub(super) fn plan(hits: impl Iterator<Item = (u64, Fault)>) -> FaultPlan {
    let mut plan = FaultPlan::none();
    for (before, (at, fault)) in (0..).zip(hits) {
        // A rule does not count operations that an earlier rule hits, so their number is subtracted.
        let rule = FaultRule::new(OpClass::Any, fault);
        plan = plan.and(rule.after(at - before).times(1));
    }
    plan
}

impl Bench {
    pub(super) fn new(stores: u64, seed: u64) -> Self {
        let disks = (0..stores).map(|n| disk(8, seed + n)).collect();
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
        Self::start(disks, clock, 1).unwrap()
    }

    fn start(disks: Vec<MemDisk>, clock: Arc<ManualClock>, seed: u64) -> Result<Self, OpenError> {
        let disks: Vec<_> = (disks.into_iter())
            .map(|disk| {
                disk.with_clock(clock.clone())
                    .with_longest_wait(Duration::from_millis(5))
            })
            .collect();
        let config = EngineConfig {
            pending_bytes_max: MEMORY / 2,
            ..EngineConfig::new(MEMORY, seed)
        };
        let engine = Engine::new(config, clock.clone());
        let met: Vec<_> = (disks.iter())
            .map(|disk| Arc::new(disk.clone()) as Arc<dyn Disk>)
            .collect();
        engine.compare_memberships(&met, &options())?;
        let mut writers = Vec::new();
        for (n, disk) in met.into_iter().enumerate() {
            let options = StoreOptions {
                uuid: Some([n as u8 + 1; 16]),
                ..options()
            };
            writers.push(engine.open_store(disk, options)?);
        }
        engine.join(&mut writers)?;
        Ok(Self {
            disks,
            clock,
            engine,
            writers,
        })
    }

    /// Opens the stores again after a kill or a power cut. If the faults prevent the start, the start is
    /// repeated without faults; no request was served in between. Returns `None` if the second start fails
    /// too; then no request is served.
    pub(super) fn restart(&self, keep: &mut [Keep<'_>], plans: &Plans, seed: u64) -> Option<Self> {
        let left: Vec<_> = (self.disks.iter().zip(keep))
            .map(|(disk, keep)| disk.crash(std::mem::replace(keep, Keep::All)))
            .collect();
        for (disk, plan) in left.iter().zip(plans) {
            disk.set_log(true);
            disk.set_faults(plan.clone());
        }
        Self::start(left.clone(), self.clock.clone(), seed)
            .or_else(|_| {
                left.iter()
                    .for_each(|disk| disk.set_faults(FaultPlan::none()));
                let again: Vec<_> = left.iter().map(MemDisk::kill).collect();
                again.iter().for_each(|disk| disk.set_log(true));
                Self::start(again, self.clock.clone(), seed)
            })
            .ok()
    }

    pub(super) fn now(&self) -> MonoTime {
        self.clock.mono()
    }

    /// Advances the time in small steps, as a busy thread would see it.
    pub(super) fn pass(&mut self, millis: u64) {
        for step in (0..millis.max(1)).step_by(50) {
            self.clock
                .advance(Duration::from_millis(50.min(millis - step.min(millis))));
            for _ in 0..2 {
                self.writers.iter_mut().for_each(|writer| {
                    writer.turn();
                });
            }
        }
    }

    /// Advances the time until the writers have no work left, or until the remaining operations seem to hang.
    pub(super) fn rest(&mut self) {
        for _ in 0..400 {
            self.pass(20);
            if self.writers.iter().all(Writer::is_idle) {
                return;
            }
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<Arc<Object>> {
        match self.engine.reads().lookup(hash(key), key.as_bytes()) {
            Lookup::Memory(object) => Some(object),
            Lookup::Miss => None,
            Lookup::Disk(plan) => match self.read(&plan) {
                Ok(buf) => self
                    .engine
                    .reads()
                    .finish_read(&plan, key.as_bytes(), buf)
                    .ok(),
                Err(error) => {
                    self.engine.reads().fail_read(&plan, &error);
                    None
                }
            },
        }
    }

    pub(super) fn fragment(&self, head: &Object, n: u32) -> Option<Arc<Object>> {
        match self.engine.reads().fragment_lookup(head, n) {
            Lookup::Memory(object) => Some(object),
            Lookup::Miss => None,
            Lookup::Disk(plan) => match self.read(&plan) {
                Ok(buf) => self
                    .engine
                    .reads()
                    .finish_fragment(&plan, head, n, buf)
                    .ok(),
                Err(error) => {
                    self.engine.reads().fail_read(&plan, &error);
                    None
                }
            },
        }
    }

    fn read(&self, plan: &ReadPlan) -> std::io::Result<AlignedBuf> {
        let mut buf = AlignedBuf::new(plan.len as usize);
        buf.set_len(plan.len as usize);
        self.engine
            .fleet()
            .disk(plan.store)
            .unwrap()
            .read_at(plan.at, &mut buf)?;
        Ok(buf)
    }

    /// Returns the faults that struck, by kind and place.
    pub(super) fn struck(&self) -> Vec<String> {
        let geometry = |n: usize| {
            let stores = self.engine.fleet().stores();
            stores
                .iter()
                .find(|s| s.space.uuid().0 == [n as u8 + 1; 16])
                .map(|s| *s.space.geometry())
        };
        let logs = self.disks.iter().map(MemDisk::log).enumerate();
        let struck = logs.flat_map(|(n, log)| {
            let geometry = geometry(n);
            log.into_iter().filter_map(move |op| {
                let at = geometry.map_or("disk", |geometry| part(&geometry, op.at));
                Some(match op.class {
                    OpClass::Flush => format!("{:?}", op.fault?),
                    class => format!("{:?} {class:?} of the {at}", op.fault?),
                })
            })
        });
        struck.collect()
    }
}

/// Returns the part of a store to which a place belongs.
fn part(geometry: &Geometry, at: u64) -> &'static str {
    match at {
        _ if at < geometry.journal_at() => "superblocks",
        _ if at < geometry.removals_at() => "purge journal",
        _ if at < geometry.slot_at(0) => "removal log",
        _ if at < geometry.segment_at(0) => "slots",
        _ => "segments",
    }
}
