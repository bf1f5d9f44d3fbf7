//! The seed of the hashes of keys: all stores that are open together have the same seed, and keep it on
//! their disks.
//!
//! The command `FOXY_WRITE_GOLDEN=1 cargo test -p foxy-store seeds` made `golden/seeded/store.hex`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foxy_base::{KeySeed, ManualClock, WallTime};
use foxy_disk::{Disk, MemDisk};
use foxy_format::{EXTENSION_SEED, Geometry, Superblock};

use super::golden;
use super::rig::{object, options};
use super::several_rig::disk;
use crate::*;

const MEMORY: u64 = 1 << 20;

/// The stores of one engine.
struct Fleet {
    disks: Vec<MemDisk>,
    clock: Arc<ManualClock>,
    engine: Arc<Engine>,
    writers: Vec<Writer>,
}

impl Fleet {
    /// Opens the stores on these disks. `seed` is the seed that the engine uses if no store names another
    /// seed.
    fn start(disks: Vec<MemDisk>, seed: u64) -> Self {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
        let config = EngineConfig {
            key_seed: seed,
            pending_bytes_max: MEMORY / 2,
            ..EngineConfig::new(MEMORY, 1)
        };
        let engine = Engine::new(config, clock.clone());
        let met: Vec<_> = disks.iter().map(|d| Arc::new(d.clone()) as _).collect();
        engine.compare_memberships(&met, &options()).unwrap();
        let mut fleet = Self {
            disks,
            clock,
            engine,
            writers: Vec::new(),
        };
        for disk in met {
            fleet.open(disk, seed as u8);
        }
        fleet.engine.join(&mut fleet.writers).unwrap();
        fleet.settle();
        fleet
    }

    fn open(&mut self, disk: Arc<dyn Disk>, name: u8) {
        let number = self.writers.len() as u8;
        let options = StoreOptions {
            uuid: Some([name ^ number << 4; 16]),
            ..options()
        };
        self.writers
            .push(self.engine.open_store(disk, options).unwrap());
    }

    /// Opens the same stores after a kill, in a new engine, which draws another seed.
    fn again(&self, seed: u64) -> Self {
        Self::start(self.disks.iter().map(MemDisk::kill).collect(), seed)
    }

    fn settle(&mut self) {
        for _ in 0..20_000 {
            self.writers.iter_mut().for_each(|writer| {
                writer.turn();
            });
            if self.writers.iter().all(Writer::is_idle) {
                return;
            }
            self.clock.advance(Duration::from_millis(20));
        }
        panic!("the writers do not come to rest");
    }

    fn put(&mut self, key: &str, text: &str) {
        let new = NewObject {
            hash: self.engine.keys().hash(key.as_bytes()),
            ..object(key, text.as_bytes())
        };
        assert!(self.engine.put(new).admitted.is_visible());
    }

    fn put_large(&mut self, key: &str) {
        let key = Bytes::copy_from_slice(key.as_bytes());
        let mut put = self.engine.put_large(NewLarge {
            hash: self.engine.keys().hash(&key),
            key,
            group: 7,
            meta: ObjectMeta::default(),
            vary: Bytes::new(),
            tags: Bytes::new(),
            fields: foxy_base::FieldBlock::empty(),
            length: None,
        });
        assert!(put.append(&[b'L'; 40_000]));
        assert!(put.finish().admitted.is_visible());
    }

    /// Returns the object from the disk or from memory.
    fn get(&self, key: &str) -> Option<Arc<Object>> {
        let key = key.as_bytes();
        let hash = self.engine.keys().hash(key);
        self.resolve(self.engine.reads().lookup(hash, key), |plan, buf| {
            self.engine.reads().finish_read(plan, key, buf).ok()
        })
    }

    fn fragment(&self, head: &Object, n: u32) -> Option<Arc<Object>> {
        self.resolve(self.engine.reads().fragment_lookup(head, n), |plan, buf| {
            self.engine.reads().finish_fragment(plan, head, n, buf).ok()
        })
    }

    fn resolve(
        &self,
        lookup: Lookup,
        finish: impl Fn(&ReadPlan, foxy_disk::AlignedBuf) -> Option<Arc<Object>>,
    ) -> Option<Arc<Object>> {
        let plan = match lookup {
            Lookup::Memory(object) => return Some(object),
            Lookup::Miss => return None,
            Lookup::Disk(plan) => plan,
        };
        let mut buf = foxy_disk::AlignedBuf::new(plan.len as usize);
        buf.set_len(plan.len as usize);
        let disk = self.engine.fleet().disk(plan.store).unwrap();
        disk.read_at(plan.at, &mut buf).unwrap();
        finish(&plan, buf)
    }

    fn text(&self, key: &str) -> Option<String> {
        let object = self.get(key)?;
        assert_eq!(object.key(), key.as_bytes());
        Some(String::from_utf8_lossy(object.body()).into_owned())
    }

    fn remove(&mut self, key: &str) {
        let hash = self.engine.keys().hash(key.as_bytes());
        drop(self.engine.purge(hash, key.as_bytes()));
    }

    /// Stores objects, a large object, an object that is replaced and an object that is purged, then
    /// seals and loads them again.
    fn fill(&mut self) {
        self.put("gone", "old");
        self.put("other", "version 1");
        for n in 0..200 {
            self.put(&format!("key {n}"), &format!("{n:0500}"));
            if n % 20 == 0 {
                self.settle();
            }
        }
        self.put_large("large");
        self.settle();
        self.remove("gone");
        self.put("other", "version 2");
        self.settle();
    }

    fn check_all(&self) {
        for n in 0..200 {
            assert_eq!(self.text(&format!("key {n}")), Some(format!("{n:0500}")));
        }
        assert_eq!(self.text("other").as_deref(), Some("version 2"));
        assert_eq!(self.text("gone"), None);
        let head = self.get("large").unwrap();
        let parts = 0..head.fragment_count();
        let whole: usize = parts
            .map(|n| self.fragment(&head, n).unwrap().body().len())
            .sum();
        assert_eq!(whole, 40_000);
    }

    fn found(&self) -> usize {
        let keys = (0..200).map(|n| format!("key {n}"));
        keys.filter(|key| self.get(key).is_some()).count()
    }
}

/// Returns the seed in each of the two superblocks.
fn recorded(disk: &MemDisk) -> [Option<u64>; 2] {
    let bytes = disk.peek(0, 8192);
    Superblock::decode_both(&bytes).map(|found| {
        let found = found.unwrap();
        let has = found.extensions & EXTENSION_SEED != 0;
        assert_eq!(has, found.seed != KeySeed::default());
        has.then_some(found.seed.0)
    })
}

#[test]
fn a_store_keeps_the_seed_that_it_was_formatted_with() {
    let mut fleet = Fleet::start(vec![disk(16, 1)], 77);
    fleet.fill();
    fleet.check_all();
    assert_eq!(recorded(&fleet.disks[0]), [Some(77); 2]);
    let again = fleet.again(88);
    assert_eq!(
        again.engine.keys().hash(b"key"),
        KeySeed(77).hash(b"key"),
        "what the process draws does not matter"
    );
    again.check_all();
    again.again(99).check_all();
}

#[test]
fn a_store_without_a_seed_goes_on_without_one_and_so_do_those_that_join_it() {
    let mut fleet = Fleet::start(vec![disk(16, 1)], 0);
    fleet.fill();
    assert_eq!(recorded(&fleet.disks[0]), [None; 2]);
    let old = fleet.disks[0].kill();
    let again = Fleet::start(vec![old, disk(16, 2)], 88);
    again.check_all();
    assert_eq!(again.engine.keys().hash(b"key"), KeySeed(0).hash(b"key"));
    assert!(again.disks.iter().all(|disk| recorded(disk) == [None; 2]));
}

#[test]
fn stores_that_are_formatted_together_have_one_seed_and_so_has_a_later_one() {
    let mut fleet = Fleet::start(vec![disk(16, 1), disk(16, 2)], 77);
    fleet.fill();
    let third = disk(16, 3);
    fleet.open(Arc::new(third.clone()), 9);
    let last = fleet.writers.len() - 1;
    fleet.engine.join(&mut fleet.writers[last..]).unwrap();
    fleet.settle();
    fleet.disks.push(third);
    assert!(
        fleet
            .disks
            .iter()
            .all(|disk| recorded(disk) == [Some(77); 2])
    );
    fleet.again(88).check_all();
}

/// Both stores have contents; the store that is named first keeps its contents. The other store takes over
/// the seed of the first store, in both superblocks. Otherwise the other store's former seed could be used
/// again if one superblock is damaged.
#[test]
fn a_store_with_another_seed_joins_empty_and_takes_the_seed_of_the_others() {
    for seeds in [[77, 88], [0, 88], [77, 0]] {
        let mut fleets = seeds.map(|seed| Fleet::start(vec![disk(16, seed + 1)], seed));
        fleets[0].fill();
        fleets[1].put("its own", "old");
        fleets[1].settle();
        let disks: Vec<_> = fleets.iter().map(|fleet| fleet.disks[0].kill()).collect();
        let mut both = Fleet::start(disks, 99);
        both.check_all();
        assert_eq!(both.text("its own"), None);
        let expected = (seeds[0] != 0).then_some(seeds[0]);
        assert!(
            both.disks
                .iter()
                .all(|disk| recorded(disk) == [expected; 2])
        );
        // New objects go to both stores, and are found again.
        for n in 0..50 {
            both.put(&format!("new {n}"), "new");
        }
        both.settle();
        let again = both.again(55);
        again.check_all();
        for n in 0..50 {
            assert_eq!(again.text(&format!("new {n}")).as_deref(), Some("new"));
        }
    }
}

/// Right after the store took another seed, it is opened again without other stores, and with one of
/// its superblocks damaged.
#[test]
fn what_a_store_held_under_its_former_seed_does_not_come_back() {
    for damaged in 0..2 {
        let mut fleets = [77, 88].map(|seed| Fleet::start(vec![disk(16, seed)], seed));
        fleets[0].put("first", "1");
        fleets[0].settle();
        fleets[1].fill();
        // `Engine::compare_memberships` is not called, so only the other seed makes the contents of the store
        // dead.
        let alone = fleets[1].disks[0].kill();
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
        let config = EngineConfig {
            key_seed: 77,
            ..EngineConfig::new(MEMORY, 1)
        };
        let engine = Engine::new(config, clock);
        let _ = engine.keys().hash(b"the seed is settled now");
        drop(
            engine
                .open_store(Arc::new(alone.clone()), options())
                .unwrap(),
        );
        let left = alone.kill();
        let at = Geometry::superblock_at(damaged);
        left.corrupt(at + 100, 1, |byte| byte[0] ^= 1);
        let later = Fleet::start(vec![left], 1);
        assert_eq!(later.engine.keys().hash(b"key"), KeySeed(77).hash(b"key"));
        assert_eq!((later.found(), later.text("gone")), (0, None));
    }
}

#[test]
fn a_frozen_store_with_a_seed_gives_what_is_in_it() {
    let path = golden::path("seeded");
    if std::env::var_os("FOXY_WRITE_GOLDEN").is_some() {
        let mut fleet = Fleet::start(vec![disk(6, 1)], 0x1234_5678_9abc_def0);
        fleet.fill();
        std::fs::write(&path, golden::hex(&fleet.disks[0].kill())).unwrap();
    }
    let disk = golden::read(&path);
    assert_eq!(recorded(&disk), [Some(0x1234_5678_9abc_def0); 2]);
    let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_100)));
    let whole = verify(Arc::new(disk.kill()), clock, |_, _| {}).unwrap();
    assert!(whole.is_whole(), "{whole:?}");
    Fleet::start(vec![disk], 5).check_all();
}
