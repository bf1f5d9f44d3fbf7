//! The rule by which a store uses its space, written a second time from the documents alone (the disk format
//! and decision 0031). This reference model has a log of segments that are reused in sequence, and a budget
//! for writing used records again. The store must have the same hits as the model, request by request.
//!
//! The model leaves some parts of a store out, so the test keeps these parts constant. There is one locality
//! buffer, the RAM tier is empty, and the writer comes to rest after every cluster.

use std::collections::HashMap;

use foxy_base::Rng;
use foxy_disk::MemDisk;

use super::rig::{Rig, options};
use super::rules::forget_ram;
use crate::*;

const SEGMENT: u64 = 64 << 10;
const CLUSTER: u64 = 32 << 10;
/// A store with so few segments prepares at most one segment at a time.
const SEGMENTS: u64 = 60;
const LONGEST: u64 = 9000;
const PERCENT: u64 = 20;

/// The place of a record, its length, and the number of its uses there.
#[derive(Clone, Copy)]
struct Place {
    incarnation: u64,
    offset: u64,
    bytes: u64,
    uses: u8,
}

/// A FIFO of segments, with reinsertion by budget.
#[derive(Default)]
struct Model {
    places: HashMap<u64, Place>,
    /// For each incarnation: its objects, each with the offset of its record, in ascending order of offset.
    incarnations: HashMap<u64, Vec<(u64, u64)>>,
    incarnation: u64,
    used: u64,
    prepared: bool,
    /// The remaining budget for writing used records again. Its unit is a hundredth of a byte.
    budget: u64,
    reinserted: u64,
}

/// The number of bytes of a cluster's header and table of entries, rounded up to a unit of 16 bytes.
fn table(records: u64) -> u64 {
    (64 + 24 * records).next_multiple_of(16)
}

impl Model {
    fn new() -> Self {
        Self {
            incarnation: 1,
            ..Self::default()
        }
    }

    fn get(&mut self, object: u64) -> bool {
        let place = self.places.get_mut(&object);
        place.map(|p| p.uses = (p.uses + 1).min(3)).is_some()
    }

    /// Puts objects, each with the length of its record, in the order of arrival.
    fn put(&mut self, batch: &[(u64, u64)]) {
        let bytes: u64 = batch.iter().map(|(_, bytes)| bytes).sum();
        let most = SEGMENT * 6 / 10;
        self.budget = (self.budget + bytes * PERCENT).min(most * 100);
        self.append(batch);
        // The next segment is prepared once the open segment is over half full.
        while self.used > SEGMENT / 2 && !self.prepared {
            self.prepared = true;
            let again = self.reuse((self.incarnation + 1).checked_sub(SEGMENTS));
            self.append(&again);
        }
    }

    /// Fills clusters with records, and segments with clusters.
    fn append(&mut self, records: &[(u64, u64)]) {
        let mut left = records;
        while let Some((_, first)) = left.first() {
            if SEGMENT - self.used < (table(1) + first).next_multiple_of(4096) {
                (self.incarnation, self.used, self.prepared) = (self.incarnation + 1, 0, false);
            }
            let room = CLUSTER.min(SEGMENT - self.used);
            let (mut count, mut bytes) = (0, 0);
            for (_, record) in left {
                if table(count as u64 + 1) + bytes + record > room {
                    break;
                }
                (count, bytes) = (count + 1, bytes + record);
            }
            let (cluster, rest) = left.split_at(count);
            self.place(cluster);
            self.used += (table(count as u64) + bytes).next_multiple_of(4096);
            left = rest;
        }
    }

    fn place(&mut self, cluster: &[(u64, u64)]) {
        let mut offset = self.used + table(cluster.len() as u64);
        for &(object, bytes) in cluster {
            let place = Place {
                incarnation: self.incarnation,
                offset,
                bytes,
                uses: 0,
            };
            self.places.insert(object, place);
            let incarnation = self.incarnations.entry(self.incarnation).or_default();
            incarnation.push((object, offset));
            offset += bytes;
        }
    }

    /// Drops the incarnation `victim`. Returns those of its records that are written again, in order of
    /// offset. As long as the budget lasts, the most used records are chosen first. Of equally used
    /// records, the shortest are chosen first.
    fn reuse(&mut self, victim: Option<u64>) -> Vec<(u64, u64)> {
        let victim = victim
            .and_then(|incarnation| Some((incarnation, self.incarnations.remove(&incarnation)?)));
        let Some((incarnation, objects)) = victim else {
            return Vec::new();
        };
        let mut present: Vec<(u64, Place)> = objects
            .iter()
            .filter_map(|(object, offset)| {
                let place = self.places.get(object)?;
                (place.incarnation == incarnation && place.offset == *offset)
                    .then_some((*object, *place))
            })
            .collect();
        for (object, _) in &present {
            self.places.remove(object);
        }
        present.retain(|(_, place)| place.uses > 0);
        present.sort_by_key(|(_, p)| (std::cmp::Reverse(p.uses), p.bytes, p.offset));
        let mut room = self.budget / 100;
        present.retain(|(_, place)| {
            let fits = place.bytes <= room;
            room -= if fits { place.bytes } else { 0 };
            fits
        });
        present.sort_by_key(|(_, place)| place.offset);
        let bytes: u64 = present.iter().map(|(_, place)| place.bytes).sum();
        self.budget -= bytes * 100;
        self.reinserted += present.len() as u64;
        present.iter().map(|(o, place)| (*o, place.bytes)).collect()
    }
}

fn rig() -> Rig {
    let options = StoreOptions {
        cluster_bytes: CLUSTER as u32,
        buffers: 1,
        buffer_bytes: 1 << 20,
        reinsert_percent: PERCENT as u32,
        ..options()
    };
    let len = SEGMENTS * (SEGMENT + 4096) + (64 << 10);
    Rig::open(MemDisk::new(len, 512, 1), 2 << 20, 1, options)
}

/// Runs the store and the reference model on the same stream of objects and lengths.
fn same_hits(stream: impl Iterator<Item = (u64, u64)>) {
    let (mut rig, mut model) = (rig(), Model::new());
    assert_eq!(rig.engine.stats().stores[0].segments, SEGMENTS as u32);
    rig.settle();
    let stock = vec![b'x'; LONGEST as usize];
    let (mut batch, mut bytes, mut hits, mut asked) = (Vec::new(), 0, 0u64, 0u64);
    for (object, size) in stream {
        asked += 1;
        // An object that waits is not on disk yet, so the rule does not apply to it.
        if batch.iter().any(|(o, _)| *o == object) {
            continue;
        }
        let key = format!("o{object}");
        let hit = rig.get(&key).is_some();
        assert_eq!(hit, model.get(object), "request {asked}, object {object}");
        hits += u64::from(hit);
        if !hit {
            let put = rig.put(&key, &stock[..size.min(LONGEST) as usize]);
            assert_eq!(put.admitted, Admission::Disk);
            let record = put.object.record_bytes() as u64;
            batch.push((object, record));
            bytes += record;
        }
        forget_ram(&rig, &key);
        if table(batch.len() as u64 + 1) + bytes + LONGEST + 256 > CLUSTER {
            rig.settle();
            model.put(&std::mem::take(&mut batch));
            bytes = 0;
        }
    }
    let counts = rig.counts();
    println!("{hits} hits of {asked}, {counts:?}");
    assert_eq!(counts.reinserted, model.reinserted);
    assert!(counts.reused > 2 * SEGMENTS && counts.reinserted > 100);
    assert_eq!((counts.index_displaced, counts.reinsert_cut_short), (0, 0));
    assert!(hits > asked / 10 && hits < asked * 9 / 10);
}

#[test]
fn a_random_stream_hits_as_in_the_model() {
    let mut rng = Rng::new(3);
    let sizes: Vec<u64> = (0..4000).map(|_| 100 + rng.below(LONGEST - 100)).collect();
    let mut recent: Vec<u64> = Vec::new();
    same_hits((0..25_000).map(|_| {
        let again = rng.chance(0.3) && !recent.is_empty();
        let object = if again {
            recent[recent.len() - 1 - rng.below(recent.len().min(2000) as u64) as usize]
        } else {
            (rng.unit().powi(2) * 4000.0) as u64
        };
        recent.push(object);
        (object, sizes[object as usize])
    }));
}

/// This test uses a piece of the BU-98 trace, if the file is there. Each object has one size, which is
/// a quarter of its real size.
#[test]
fn a_real_stream_hits_as_in_the_model() {
    let path = match foxy_trace::files::Known::Bu98.path() {
        Ok(path) => path,
        Err(why) => return println!("not run: {why}"),
    };
    let reader = foxy_trace::open(&path, foxy_trace::Options::default()).unwrap();
    let mut sizes = HashMap::new();
    same_hits(reader.take(30_000).map(|request| {
        let request = request.unwrap();
        let size = *sizes.entry(request.object).or_insert(request.size / 4);
        (request.object, size)
    }));
}
