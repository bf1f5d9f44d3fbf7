//! The production store as a cache system: the engine that the proxy runs. It runs over a modelled drive and
//! in simulated time. In the proxy, the engine's writer has its own thread. Here, this module calls the
//! writer.
//!
//! The store gets all of the memory as one budget, which includes its tables and objects that wait to be
//! written. The tables of the papers' systems take additional memory. If too much data waits to be written, a
//! miss waits until it can be stored, because the other systems also store every miss. (The proxy would not
//! store the object in this case.) This module does not store objects larger than one fragment.

mod disk;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use foxy_base::{FieldBlock, key_hash};
use foxy_disk::AlignedBuf;
use foxy_store::{
    Admission, Engine, EngineConfig, Lookup, NewObject, Object, ObjectMeta, StoreOptions, Writer,
};
use foxy_trace::Request;

use super::{CacheSystem, Extras};
use crate::{
    levels::Outcome,
    model::{Drive, FsCounters, FsError, SimTime},
};
use disk::{ModelDisk, SimClock};

/// Number of requests between two iterations of the writer's loop.
const WRITER_INTERVAL: u64 = 8;
/// Processor time of a request (measured with the proxy on a machine of today).
const CALL: SimTime = SimTime::from_micros(5);
/// Longest pause of an idle writer.
const PAUSE: SimTime = SimTime::from_micros(20_000);

/// The production store on a modelled drive.
#[derive(Debug)]
pub struct Store {
    engine: Arc<Engine>,
    writer: Writer,
    disk: ModelDisk,
    clock: Arc<SimClock>,
    zeros: Bytes,
    largest: u64,
    requests: u64,
    refused: u64,
}

impl Store {
    /// Creates an empty store of `bytes` bytes on a drive, with a total memory budget of `memory` bytes.
    ///
    /// # Errors
    /// Returns an error if the engine refuses the sizes.
    pub fn new(drive: Drive, memory: u64, bytes: u64, seed: u64) -> Result<Self, String> {
        let clock = Arc::new(SimClock::default());
        let disk = ModelDisk::new(drive, bytes, clock.clone());
        let engine = Engine::new(EngineConfig::new(memory, seed), clock.clone());
        let options = StoreOptions {
            uuid: Some(*b"simulated store!"),
            ..StoreOptions::default()
        };
        let writer = engine
            .open_store(Arc::new(disk.clone()), options)
            .map_err(|error| error.to_string())?;
        let largest = u64::from(engine.fragment_bytes());
        Ok(Self {
            engine,
            writer,
            disk,
            clock,
            zeros: Bytes::from(vec![0; largest as usize]),
            largest,
            requests: 0,
            refused: 0,
        })
    }

    /// Number of segments, bytes in each segment, and bytes that the memory tier may use.
    #[must_use]
    pub fn geometry(&self) -> (u32, u64, u64) {
        let stats = self.engine.stats();
        let (segments, bytes) = stats
            .stores
            .first()
            .map_or((0, 0), |s| (s.segments, u64::from(s.segment_bytes)));
        (segments, bytes, stats.ram_capacity)
    }

    /// The object of a key, and true if it was in memory.
    fn get(&mut self, key: &Bytes) -> Option<(Arc<Object>, bool)> {
        match self.engine.reads().lookup(key_hash(key), key) {
            Lookup::Memory(object) => Some((object, true)),
            Lookup::Miss => None,
            Lookup::Disk(plan) => {
                let mut buf = AlignedBuf::new(plan.len as usize);
                match self.disk.read_now(plan.at, &mut buf) {
                    Ok(()) => {
                        let read = self.engine.reads().finish_read(&plan, key, buf);
                        read.ok().map(|object| (object, false))
                    }
                    Err(error) => {
                        self.engine.reads().fail_read(&plan, &error);
                        None
                    }
                }
            }
        }
    }

    fn put(&mut self, request: &Request, key: &Bytes) {
        if request.size > self.largest {
            self.refused += 1;
            return;
        }
        // If the store cannot accept the object now, the attempt is repeated after the writer has had time to
        // write.
        for _ in 0..1_000 {
            let new = NewObject {
                hash: key_hash(key),
                key: key.clone(),
                group: u64::from(request.server),
                meta: ObjectMeta::default(),
                vary: Bytes::new(),
                tags: Bytes::copy_from_slice(&request.version.to_le_bytes()),
                fields: FieldBlock::empty(),
                body: self.zeros.slice(..request.size as usize),
            };
            if self.engine.put(new).admitted == Admission::Disk {
                return;
            }
            self.engine.supersede(key_hash(key), key);
            self.wait_a_little();
        }
        self.refused += 1;
    }

    /// Lets the writer continue until one of its operations is done.
    fn wait_a_little(&mut self) {
        self.writer.turn();
        let now = self.clock.now();
        let end = self.disk.next_end().unwrap_or(now + PAUSE);
        self.clock.reach(end.min(now + PAUSE));
        self.writer.turn();
    }
}

fn key(request: &Request) -> Bytes {
    Bytes::from(format!(
        "forward GET http://s{}.example/{:016x}",
        request.server, request.object
    ))
}

impl CacheSystem for Store {
    fn name(&self) -> &'static str {
        "foxy"
    }

    fn request(&mut self, request: &Request) -> Result<Outcome, FsError> {
        if !request.is_cacheable() || request.size == 0 {
            return Ok(Outcome::Bypass);
        }
        self.clock.reach(self.clock.now() + CALL);
        self.requests += 1;
        if self.requests.is_multiple_of(WRITER_INTERVAL) {
            self.writer.turn();
        }
        let key = key(request);
        let found = self.get(&key);
        let Some((object, from_memory)) = found else {
            self.put(request, &key);
            return Ok(Outcome::Miss);
        };
        let same = object.tags()[..] == request.version.to_le_bytes()
            && object.body().len() as u64 == request.size;
        if !same {
            self.engine.supersede(key_hash(&key), &key);
            self.put(request, &key);
            return Ok(Outcome::Modified);
        }
        Ok(if from_memory {
            Outcome::RamHit
        } else {
            Outcome::DiskHit
        })
    }

    fn idle(&mut self, until: SimTime) -> Result<(), FsError> {
        while self.clock.now() < until {
            self.writer.turn();
            let next = self.disk.next_end().unwrap_or(until);
            let pause = self.clock.now() + PAUSE;
            if self.writer.is_idle() {
                break;
            }
            self.clock.reach(next.min(pause).min(until));
        }
        self.clock.reach(until);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), FsError> {
        self.writer.drain(Duration::from_secs(3_600));
        self.disk.settle();
        Ok(())
    }

    fn now(&self) -> SimTime {
        self.clock.now()
    }

    fn counters(&self) -> FsCounters {
        FsCounters {
            drive: self.disk.drive().stats().clone(),
            ..FsCounters::default()
        }
    }

    fn extras(&self) -> Extras {
        Extras {
            table_bytes: self.engine.stats().index_bytes,
            refused: self.refused,
            ..Extras::default()
        }
    }
}
