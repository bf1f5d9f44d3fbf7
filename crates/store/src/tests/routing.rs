//! Routing over several stores: the objects of one site are spread over all of them.

use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ManualClock, WallTime};
use foxy_disk::MemDisk;

use super::rig::{object, options};
use crate::*;

const MEMORY: u64 = 1 << 20;
const KEYS: u64 = 400;
const BODY: usize = 3000;

/// An engine with several stores, which the test drives step by step.
struct Site {
    engine: Arc<Engine>,
    clock: Arc<ManualClock>,
    writers: Vec<Writer>,
}

impl Site {
    fn on(segments: &[u64]) -> Self {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
        let engine = Engine::new(EngineConfig::new(MEMORY, 1), clock.clone());
        let writers = (0..).zip(segments).map(|(n, segments)| {
            let len = segments * (64 + 4) * 1024 + (64 << 10);
            let options = StoreOptions {
                uuid: Some([n + 1; 16]),
                ..options()
            };
            let disk = Arc::new(MemDisk::new(len, 512, u64::from(n)));
            engine.open_store(disk, options).unwrap()
        });
        let writers = writers.collect();
        let mut site = Self {
            engine,
            clock,
            writers,
        };
        site.run(20);
        site
    }

    fn run(&mut self, turns: usize) {
        for _ in 0..turns {
            self.clock.advance(Duration::from_millis(100));
            self.writers.iter_mut().for_each(|writer| {
                writer.turn();
            });
        }
    }

    /// Requests all keys in turn, and stores the object of a key after a miss. All keys belong to one
    /// site, hence to one group. Returns the number of hits.
    fn pass(&mut self) -> u64 {
        self.engine.context().memory.clear();
        let mut hits = 0;
        for n in 0..KEYS {
            let new = NewObject {
                group: 7,
                ..object(&format!("http://one.test/{n}"), &[b'x'; BODY])
            };
            match self.engine.reads().lookup(new.hash, &new.key) {
                Lookup::Miss => {
                    self.engine.put(new);
                }
                Lookup::Memory(_) => hits += 1,
                Lookup::Disk(plan) => {
                    let disk = self.engine.fleet().disk(plan.store).unwrap();
                    let mut buf = foxy_disk::AlignedBuf::new(plan.len as usize);
                    disk.read_at(plan.at, &mut buf).unwrap();
                    hits += u64::from(
                        self.engine
                            .reads()
                            .finish_read(&plan, &new.key, buf)
                            .is_ok(),
                    );
                }
            }
            if n % 4 == 0 {
                self.run(3);
            }
        }
        self.run(60);
        hits
    }

    fn written(&self) -> Vec<f64> {
        let stores = self.engine.stats().stores;
        stores
            .iter()
            .map(|s| s.counts.record_bytes as f64)
            .collect()
    }
}

#[test]
fn one_site_uses_four_disks_as_it_uses_one_of_their_size() {
    let mut one = Site::on(&[40]);
    let mut four = Site::on(&[10; 4]);
    assert_eq!((one.pass(), four.pass()), (0, 0));
    let (alone, spread) = (one.pass(), four.pass());
    assert!(alone > KEYS * 9 / 10, "{alone}");
    assert!(spread * 100 >= alone * 98, "{spread} of {alone}");
    let written = four.written();
    let mean = written.iter().sum::<f64>() / 4.0;
    let even = |bytes: &f64| (bytes / mean - 1.0).abs() <= 0.2;
    assert!(written.iter().all(even), "{written:?}");
}

/// A large object uses all disks too. A number of consecutive fragments (a span) is on one disk.
#[test]
fn a_large_object_is_spread_over_the_stores_by_spans() {
    let mut site = Site::on(&[600; 4]);
    let new = object("http://one.test/large", b"");
    let mut put = site.engine.put_large(NewLarge {
        hash: new.hash,
        key: new.key,
        group: 7,
        meta: ObjectMeta::default(),
        vary: bytes::Bytes::new(),
        tags: bytes::Bytes::new(),
        fields: foxy_base::FieldBlock::empty(),
        length: None,
    });
    for _ in 0..1200 {
        assert!(put.append(&[b'l'; 8000]));
        site.run(2);
    }
    let head = put.finish().object;
    site.run(60);
    assert!(site.engine.has_all_fragments(&head));
    site.engine.context().memory.clear();
    let store_of = |n: u32| match site.engine.reads().fragment_lookup(&head, n) {
        Lookup::Disk(plan) => plan.store,
        other => panic!("fragment {n}: {other:?}"),
    };
    let count = head.fragment_count();
    assert!(count > 1000, "{count}");
    let on: Vec<_> = (0..count).map(store_of).collect();
    let used: std::collections::HashSet<_> = on.iter().collect();
    assert_eq!(used.len(), 4);
    assert!(
        on.chunks(64)
            .all(|span| span.iter().all(|store| *store == span[0]))
    );
}
