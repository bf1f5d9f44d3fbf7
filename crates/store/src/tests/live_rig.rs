//! An engine whose stores are added and taken out, and the contents that each key may have. The test
//! drives it step by step.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ManualClock, WallTime};
use foxy_disk::{AlignedBuf, Disk, Keep, MemDisk};

use super::purge_model::covers;
use super::purges::{purge, tagged};
use super::rig::{SEGMENT, body, hash, options, version_of};
use crate::*;

const MEMORY: u64 = 2 << 20;
pub(super) const KEYS: u64 = 40;
const MAX: u64 = 3_000;
pub(super) const HOSTS: u64 = 4;
pub(super) const TAGS: u64 = 5;
const AT_MOST: Duration = Duration::from_secs(3600);

fn room(segments: u64) -> u64 {
    segments * u64::from(SEGMENT + 4096)
}

/// A disk, and the writer of its store while the store is open.
pub(super) struct Slot {
    pub(super) disk: MemDisk,
    pub(super) number: u8,
    pub(super) writer: Option<Writer>,
}

/// An engine whose stores are added and taken out, and the contents that each key may have.
pub(super) struct Live {
    pub(super) clock: Arc<ManualClock>,
    pub(super) engine: Arc<Engine>,
    pub(super) slots: Vec<Slot>,
    pub(super) latest: HashMap<u64, u64>,
    pub(super) version: u64,
    /// For each version, the number of the newest purge that was known when the version was fetched.
    sequences: HashMap<u64, u64>,
    pub(super) purges: Vec<Made>,
    /// Number of answers that a soft purge had made stale.
    pub(super) stale: Cell<u64>,
}

/// A purge that was made.
#[derive(Clone)]
pub(super) struct Made {
    purge: Purge,
    number: u64,
    ticket: Option<SyncTicket>,
    /// True if a crash may have lost the purge.
    doubtful: bool,
}

impl Live {
    pub(super) fn new(segments: &[u64], seed: u64) -> Self {
        let disk = |(n, segments): (usize, &u64)| Slot {
            disk: MemDisk::new(room(*segments) + (64 << 10), 512, seed + n as u64),
            number: n as u8 + 1,
            writer: None,
        };
        let mut live = Self::without(segments.iter().enumerate().map(disk).collect());
        live.start(&(0..segments.len()).collect::<Vec<_>>());
        live
    }

    pub(super) fn without(slots: Vec<Slot>) -> Self {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
        let config = EngineConfig {
            pending_bytes_max: MEMORY / 2,
            ..EngineConfig::new(MEMORY, 1)
        };
        let live = Self {
            engine: Engine::new(config, clock.clone()),
            clock,
            slots,
            latest: HashMap::new(),
            version: 0,
            sequences: HashMap::new(),
            purges: Vec::new(),
            stale: Cell::new(0),
        };
        live.engine.compare_memberships(&[], &options()).unwrap();
        live
    }

    /// Opens these stores in the same way as Foxy does when it starts.
    fn start(&mut self, open: &[usize]) {
        let disks = open.iter().map(|n| Arc::new(self.slots[*n].disk.clone()));
        let disks: Vec<Arc<dyn Disk>> = disks.map(|disk| disk as _).collect();
        self.engine.compare_memberships(&disks, &options()).unwrap();
        let opened = open.iter().map(|n| self.open_one(*n));
        let mut writers: Vec<_> = opened.collect();
        self.engine.join(&mut writers).unwrap();
        for (n, writer) in open.iter().zip(writers) {
            self.slots[*n].writer = Some(writer);
        }
    }

    pub(super) fn add(&mut self, n: usize) {
        let mut writer = self.open_one(n);
        let joined = self.engine.join(std::slice::from_mut(&mut writer));
        joined.unwrap();
        self.slots[n].writer = Some(writer);
    }

    fn open_one(&self, n: usize) -> Writer {
        let slot = &self.slots[n];
        let options = StoreOptions {
            uuid: Some([slot.number; 16]),
            ..options()
        };
        let disk = Arc::new(slot.disk.clone());
        self.engine.open_store(disk, options).unwrap()
    }

    pub(super) fn id(&self, n: usize) -> StoreId {
        self.slots[n].writer.as_ref().unwrap().store_id()
    }

    pub(super) fn is_open(&self, n: usize) -> bool {
        self.slots[n].writer.is_some()
    }

    pub(super) fn open(&self) -> Vec<usize> {
        let all = 0..self.slots.len();
        all.filter(|n| self.is_open(*n)).collect()
    }

    pub(super) fn remove(&mut self, n: usize) -> bool {
        self.slots[n].writer.take().unwrap().close(AT_MOST)
    }

    pub(super) fn grow(&mut self, n: usize, segments: u64) -> Result<u32, GrowError> {
        let writer = self.slots[n].writer.take().unwrap();
        let bytes = self.slots[n].disk.len() + room(segments);
        let grown = writer.grow(bytes, AT_MOST);
        self.slots[n].writer = grown.writer;
        grown.result
    }

    /// Returns the test engine after a crash. The stores that were open are opened again.
    pub(super) fn crash(&self, seed: Option<u64>) -> Self {
        let again = self.slots.iter().map(|slot| Slot {
            disk: match seed {
                Some(seed) => slot.disk.crash(Keep::Random(seed)),
                None => slot.disk.kill(),
            },
            number: slot.number,
            writer: None,
        });
        let mut again = self.heir(again.collect());
        again.start(&self.open());
        again
    }

    /// Makes a test engine without a store. It takes over the purges and the contents that each key may have.
    pub(super) fn heir(&self, slots: Vec<Slot>) -> Self {
        let mut heir = Self::without(slots);
        heir.latest.clone_from(&self.latest);
        heir.version = self.version;
        heir.sequences.clone_from(&self.sequences);
        heir.purges.clone_from(&self.purges);
        heir.stale = self.stale.clone();
        for made in &mut heir.purges {
            if let Some(ticket) = made.ticket.take() {
                made.doubtful = ticket.outcome() != Some(Durable::Yes);
            }
        }
        heir
    }

    pub(super) fn run(&mut self, turns: usize) {
        for _ in 0..turns {
            self.clock.advance(Duration::from_millis(50));
            for writer in self.slots.iter_mut().filter_map(|s| s.writer.as_mut()) {
                writer.turn();
            }
        }
    }

    /// Runs until no work is left.
    pub(super) fn settle(&mut self) {
        for _ in 0..2_000 {
            self.run(1);
            let mut writers = self.slots.iter().filter_map(|s| s.writer.as_ref());
            if writers.all(Writer::is_idle) {
                return;
            }
        }
        panic!("the writers do not come to rest");
    }

    /// Waits until a drain can begin, and runs the drain to its end.
    pub(super) fn drain(&mut self) {
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

    pub(super) fn name(key: u64) -> String {
        format!("forward GET http://h{}.test/{}", key % HOSTS, key)
    }

    fn tags(key: u64) -> Vec<u64> {
        vec![key % TAGS]
    }

    pub(super) fn put(&mut self, key: u64) {
        self.put_asked(key, self.engine.purges().purge_sequence());
    }

    /// Stores an object that was fetched when `sequence` was the number of the newest purge.
    pub(super) fn put_asked(&mut self, key: u64, sequence: u64) {
        self.version += 1;
        let body = body(key, self.version, MAX);
        let tags: Vec<_> = Self::tags(key).iter().map(|t| format!("tag {t}")).collect();
        let mut new = tagged(&Self::name(key), &body, &tags.join(","), sequence);
        new.group = key;
        new.meta.expires = WallTime::from_secs(2_000_000);
        self.sequences.insert(self.version, sequence);
        if self.engine.put(new).admitted.is_visible() {
            self.latest.insert(key, self.version);
        } else {
            // The new object was refused. If no purge covers the new object, the store has then removed the
            // former object. The test removes the former object in any case.
            self.supersede(key);
        }
    }

    /// Purges many objects, or makes them stale.
    pub(super) fn purge(&mut self, kind: PurgeKind, text: &str, soft: bool) {
        let purge = purge(kind, text, soft);
        if let Ok((number, ticket)) = self.engine.purges().purge_many(&purge, Places::Reserved) {
            self.purges.push(Made {
                purge,
                number,
                ticket: Some(ticket),
                doubtful: false,
            });
        }
    }

    /// Purges one key.
    pub(super) fn purge_key(&mut self, key: u64) {
        let name = Self::name(key);
        drop(self.engine.purge(hash(&name), name.as_bytes()));
        self.latest.remove(&key);
    }

    /// Returns whether a purge that was certainly not lost covers this version.
    fn covered(&self, key: u64, version: u64, soft: bool) -> bool {
        let sequence = self.sequences[&version];
        self.purges.iter().any(|made| {
            let counts = made.purge.soft == soft && made.number > sequence && !made.doubtful;
            counts && covers(&made.purge, &Self::name(key), &Self::tags(key))
        })
    }

    pub(super) fn supersede(&mut self, key: u64) {
        let name = Self::name(key);
        self.engine.supersede(hash(&name), name.as_bytes());
        self.latest.remove(&key);
    }

    /// Returns whether a request gets the object, and checks that it is the latest version.
    pub(super) fn check(&self, key: u64) -> bool {
        let name = Self::name(key);
        let found = match self.engine.reads().lookup(hash(&name), name.as_bytes()) {
            Lookup::Memory(object) => Some(object),
            Lookup::Miss => None,
            Lookup::Disk(plan) => {
                let mut buf = AlignedBuf::new(plan.len as usize);
                buf.set_len(plan.len as usize);
                let disk = self.engine.fleet().disk(plan.store).unwrap();
                disk.read_at(plan.at, &mut buf).unwrap();
                self.engine
                    .reads()
                    .finish_read(&plan, name.as_bytes(), buf)
                    .ok()
            }
        };
        if let Some(object) = &found {
            let version = version_of(key, object.body(), MAX);
            assert_eq!(self.latest.get(&key), Some(&version), "key {key}");
            assert!(!self.covered(key, version, false), "key {key} is purged");
            let stale = self.covered(key, version, true);
            assert!(object.is_soft_purged() || !stale, "key {key} is stale");
            self.stale.set(self.stale.get() + u64::from(stale));
        }
        found.is_some()
    }

    /// Returns the keys that are found on the disks, without memory.
    pub(super) fn on_disk(&self) -> BTreeSet<u64> {
        self.engine.context().memory.clear();
        (0..KEYS).filter(|key| self.check(*key)).collect()
    }

    /// Makes a complete sweep, if one is due.
    pub(super) fn sweep(&mut self) {
        let Some(mut sweep) = self.engine.purges().sweep() else {
            return;
        };
        for _ in 0..20_000 {
            match sweep.step() {
                SweepStep::Done => return,
                SweepStep::Wait => self.run(1),
                SweepStep::Read(_) => {}
            }
        }
        panic!("the sweep does not end");
    }

    pub(super) fn health(&self, n: usize) -> OneStoreStats {
        let id = self.id(n);
        let stats = self.engine.stats();
        stats.stores.into_iter().find(|s| s.store == id).unwrap()
    }
}

pub(super) fn all() -> BTreeSet<u64> {
    (0..KEYS).collect()
}
