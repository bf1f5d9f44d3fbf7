//! An engine with one store in memory, which the test drives step by step.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foxy_base::{FieldBlock, KeyHash, KeySeed, ManualClock, Rng, WallTime, key_hash};
use foxy_disk::{AlignedBuf, Keep, MemDisk};
use foxy_format::{Geometry, LogPosition, Membership, StoreUuid, Superblock};

use crate::memory::EngineCore;
use crate::shared::StoreShared;
use crate::*;

pub(super) const SEGMENT: u32 = 64 << 10;

/// Options for a small geometry: a small amount of data fills many segments and clusters.
pub(super) fn options() -> StoreOptions {
    StoreOptions {
        segment_bytes: Some(SEGMENT),
        cluster_bytes: 16 << 10,
        mean_object_bytes: 512,
        buffers: 4,
        buffer_bytes: 4 << 10,
        uuid: Some(*b"test store uuid!"),
        ..StoreOptions::default()
    }
}

/// Returns the geometry of the first store.
pub(super) fn geometry(engine: &Engine) -> Geometry {
    *engine.fleet().store(StoreId(0)).unwrap().space.geometry()
}

pub(super) struct Rig {
    pub(super) disk: MemDisk,
    pub(super) clock: Arc<ManualClock>,
    pub(super) engine: Arc<Engine>,
    pub(super) writer: Writer,
    pub(super) options: StoreOptions,
    seed: u64,
    memory: u64,
}

impl Rig {
    /// Makes a store of `segments` segments under an engine with `memory` bytes.
    pub(super) fn new(segments: u64, memory: u64, seed: u64) -> Self {
        let len = segments * u64::from(SEGMENT + 4096) + (64 << 10);
        let disk = MemDisk::new(len, 512, seed);
        Self::open(disk, memory, seed, options())
    }

    pub(super) fn open(disk: MemDisk, memory: u64, seed: u64, options: StoreOptions) -> Self {
        Self::try_open(disk, memory, seed, options).unwrap()
    }

    pub(super) fn try_open(
        disk: MemDisk,
        memory: u64,
        seed: u64,
        options: StoreOptions,
    ) -> Result<Self, OpenError> {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
        let config = EngineConfig {
            pending_bytes_max: memory / 2,
            ..EngineConfig::new(memory, seed)
        };
        let engine = Engine::new(config, clock.clone());
        let writer = engine.open_store(Arc::new(disk.clone()), options.clone())?;
        Ok(Self {
            disk,
            clock,
            engine,
            writer,
            options,
            seed,
            memory,
        })
    }

    /// Returns the same disk after a crash, opened again and loaded.
    pub(super) fn crash(&self, keep: Keep<'_>) -> Self {
        let mut again = self.crash_unloaded(keep);
        again.settle();
        again
    }

    /// Returns the same disk after a crash, opened again; sealed segments are not loaded yet.
    pub(super) fn crash_unloaded(&self, keep: Keep<'_>) -> Self {
        Self::open(
            self.disk.crash(keep),
            self.memory,
            self.seed + 1,
            self.options.clone(),
        )
    }

    pub(super) fn kill(&self) -> Self {
        self.crash(Keep::All)
    }

    /// Runs turns of the writer, 20 ms apart, until no work is left.
    pub(super) fn settle(&mut self) {
        for _ in 0..20_000 {
            self.writer.turn();
            if self.writer.is_idle() {
                return;
            }
            self.clock.advance(Duration::from_millis(20));
        }
        panic!("the writer does not come to rest: {:?}", self.writer);
    }

    /// Runs `n` turns of the writer while no time passes.
    pub(super) fn turns(&mut self, n: usize) {
        for _ in 0..n {
            self.writer.turn();
        }
    }

    pub(super) fn put(&self, key: &str, body: &[u8]) -> Put {
        self.engine.put(object(key, body))
    }

    pub(super) fn supersede(&self, key: &str) -> bool {
        self.engine.supersede(hash(key), key.as_bytes())
    }

    /// Returns the object that a request would get.
    pub(super) fn get(&self, key: &str) -> Option<Arc<Object>> {
        let lookup = self.engine.reads().lookup(hash(key), key.as_bytes());
        self.resolve(lookup, |plan, buf| {
            self.engine.reads().finish_read(plan, key.as_bytes(), buf)
        })
    }

    pub(super) fn fragment(&self, head: &Object, n: u32) -> Option<Arc<Object>> {
        let lookup = self.engine.reads().fragment_lookup(head, n);
        self.resolve(lookup, |plan, buf| {
            self.engine.reads().finish_fragment(plan, head, n, buf)
        })
    }

    fn resolve(
        &self,
        lookup: Lookup,
        finish: impl Fn(&ReadPlan, AlignedBuf) -> Result<Arc<Object>, ReadMiss>,
    ) -> Option<Arc<Object>> {
        match lookup {
            Lookup::Memory(object) => Some(object),
            Lookup::Miss => None,
            Lookup::Disk(plan) => match self.read(&plan) {
                Ok(buf) => finish(&plan, buf).ok(),
                Err(error) => {
                    self.engine.reads().fail_read(&plan, &error);
                    None
                }
            },
        }
    }

    pub(super) fn plan(&self, key: &str) -> Option<ReadPlan> {
        match self.engine.reads().lookup(hash(key), key.as_bytes()) {
            Lookup::Disk(plan) => Some(plan),
            _ => None,
        }
    }

    /// Makes the `ReadAround` rule allow longer reads, and returns the longer read for `plan`.
    pub(super) fn widen(&self, plan: &ReadPlan) -> ReadPlan {
        let store = self.engine.fleet().store(plan.store).unwrap();
        while !store.around.rule().is_on() {
            store.around.rule().read(7);
        }
        self.engine.reads().widen(plan)
    }

    pub(super) fn read(&self, plan: &ReadPlan) -> std::io::Result<AlignedBuf> {
        assert!(plan.at.is_multiple_of(512) && plan.len.is_multiple_of(512));
        let mut buf = AlignedBuf::new(plan.len as usize);
        let disk = self.engine.fleet().disk(plan.store).unwrap();
        disk.read_at(plan.at, &mut buf)?;
        Ok(buf)
    }

    /// Returns the body under a key, as text.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.get(key)
            .map(|o| String::from_utf8_lossy(o.body()).into_owned())
    }

    /// Returns the byte on the disk where segments begin.
    pub(super) fn segments_at(&self) -> u64 {
        self.engine
            .fleet()
            .store(StoreId(0))
            .unwrap()
            .space
            .geometry()
            .segment_at(0)
    }

    pub(super) fn counts(&self) -> StoreCounts {
        self.engine.stats().stores[0].counts
    }

    /// Fills the store with unrelated objects of about 2 KiB.
    pub(super) fn fill(&mut self, label: &str, objects: usize) {
        for n in 0..objects {
            self.put(&format!("filler {label} {n}"), &[b'f'; 2000]);
            if n % 16 == 15 {
                self.settle();
            }
        }
        self.settle();
    }
}

pub(crate) fn hash(key: &str) -> KeyHash {
    key_hash(key.as_bytes())
}

/// Makes an engine with `memory` bytes of memory and no store, for tests of its parts.
pub(crate) fn parts(memory: u64) -> Arc<Engine> {
    Engine::new(
        EngineConfig::new(memory, 1),
        Arc::new(ManualClock::new(WallTime::from_secs(1))),
    )
}

/// Makes the basic parts of an engine with `memory` bytes of memory.
pub(crate) fn engine_core(memory: u64) -> EngineCore {
    let clock = Arc::new(ManualClock::new(WallTime::from_secs(1)));
    EngineCore::new(&EngineConfig::new(memory, 1), 4, clock)
}

/// Makes a store on a disk in memory, without an engine and without a writer. Stores with different
/// numbers do not overlap.
pub(crate) fn bare_store(id: u16) -> Arc<StoreShared> {
    let (bytes, base) = (2 << 20, u64::from(id) << 16);
    let superblock = Superblock {
        extensions: 0,
        generation: 1,
        uuid: StoreUuid([id as u8; 16]),
        geometry: Geometry::fit(bytes, SEGMENT, 16 << 10, 512).unwrap(),
        floor: LogPosition(0),
        membership: Membership::default(),
        quarantine: Vec::new(),
        seed: KeySeed::default(),
    };
    let disk = Arc::new(MemDisk::new(bytes, 512, 1));
    let store = StoreShared::new(StoreId(id), base, &superblock, disk, 1, &options(), 1 << 20);
    store.loading.end();
    Arc::new(store)
}

pub(crate) fn object(key: &str, body: &[u8]) -> NewObject {
    NewObject {
        key: Bytes::copy_from_slice(key.as_bytes()),
        hash: hash(key),
        group: u64::from(key.as_bytes()[0]),
        meta: ObjectMeta::default(),
        vary: Bytes::new(),
        tags: Bytes::new(),
        fields: FieldBlock::empty(),
        body: Bytes::copy_from_slice(body),
    }
}

/// Makes a body that contains its key and version; its length is derived from both.
pub(super) fn body(key: u64, version: u64, max: u64) -> Vec<u8> {
    let mut rng = Rng::new(key << 32 | version);
    let mut body = format!("{key}/{version}/").into_bytes();
    for _ in 0..rng.below(max) / 8 {
        body.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    body
}

/// Returns the version that a body contains, after checking all of its bytes.
pub(super) fn version_of(key: u64, bytes: &[u8], max: u64) -> u64 {
    let mut parts = bytes
        .split(|b| *b == b'/')
        .map(|p| String::from_utf8_lossy(p).parse::<u64>());
    let (named, version) = (
        parts.next().unwrap().unwrap(),
        parts.next().unwrap().unwrap(),
    );
    assert_eq!(named, key, "another key's body");
    assert_eq!(body(key, version, max), bytes, "mixed bytes");
    version
}
