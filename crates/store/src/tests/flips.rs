//! Tests with one flipped bit in a store whose process was killed. A lookup returns no purged or replaced
//! object, and no bytes that were not stored under its key. The flips cover open segments, slots, both
//! superblocks, the purge journal and the removal log.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use foxy_base::{Rng, key_hash};
use foxy_disk::{Disk, MemDisk};
use foxy_format::{BLOCK, ClusterHeader, UNIT, cluster_table_bytes};

use super::purges::tagged;
use super::rig::{Rig, hash, object, options};
use crate::*;

const MEMORY: u64 = 1 << 20;
const LARGE: &str = "large";

fn name(n: u32) -> String {
    format!("key {n}")
}

fn text(n: u32, version: u32) -> Vec<u8> {
    let mut text = format!("{n}/{version} ").into_bytes();
    text.resize(300 + 100 * n as usize, b'.');
    text
}

/// A store, and the contents that each key may have.
pub(super) struct Killed {
    pub(super) image: MemDisk,
    latest: HashMap<String, Option<Vec<u8>>>,
}

fn put_large(rig: &Rig) {
    let key = Bytes::from_static(LARGE.as_bytes());
    let mut put = rig.engine.put_large(NewLarge {
        hash: key_hash(&key),
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

fn acknowledged(rig: &mut Rig, ticket: &SyncTicket) {
    while !ticket.is_done() {
        rig.clock.advance(Duration::from_millis(10));
        rig.writer.turn();
    }
    assert_eq!(ticket.outcome(), Some(Durable::Yes));
}

impl Killed {
    /// Makes a store with objects in sealed and open segments; in all of these, objects are replaced,
    /// superseded and purged. The process is killed `pause` after the last purge was acknowledged.
    pub(super) fn new(pause: Duration) -> Self {
        let mut rig = Rig::new(10, MEMORY, 77);
        rig.settle();
        let mut latest = HashMap::new();
        let mut keep = |key: String, body: Option<Vec<u8>>| {
            latest.insert(key, body);
        };
        for n in 0..24 {
            let tags = if n == 22 { "t" } else { "all" };
            let sequence = rig.engine.purges().purge_sequence();
            rig.engine
                .put(tagged(&name(n), &text(n, 1), tags, sequence));
            keep(name(n), Some(text(n, 1)));
        }
        put_large(&rig);
        let mut page = object("page", b"Hello");
        page.vary = Bytes::from_static(b"accept-language\nen");
        page.meta.nonce = 0xab;
        rig.engine.put(page);
        rig.engine.put(object("page\nde", b"Hallo"));
        rig.settle();
        rig.fill("old", 200);
        for n in 0..4 {
            rig.put(&name(n), &text(n, 2));
            keep(name(n), Some(text(n, 2)));
            rig.supersede(&name(4 + n));
            keep(name(4 + n), None);
        }
        rig.fill("newer", 100);
        // From here on, everything goes to the open segment or to the segment before it.
        for n in 8..12 {
            rig.put(&name(n), &text(n, 2));
            keep(name(n), Some(text(n, 2)));
            rig.supersede(&name(4 + n));
            keep(name(4 + n), None);
        }
        rig.settle();
        for n in [16, 17] {
            let ticket = rig.engine.purge(hash(&name(n)), name(n).as_bytes());
            keep(name(n), None);
            acknowledged(&mut rig, &ticket);
            rig.put(&format!("beside {n}"), b"beside");
        }
        rig.clock.advance(Duration::from_secs(5));
        rig.turns(20);
        let ticket = rig.engine.purge(hash(&name(18)), name(18).as_bytes());
        keep(name(18), None);
        acknowledged(&mut rig, &ticket);
        rig.purge(PurgeKind::Tag, "t", false);
        keep(name(22), None);
        let left = pause.as_millis() / 10;
        for _ in 0..left {
            rig.clock.advance(Duration::from_millis(10));
            rig.writer.turn();
        }
        Self {
            image: rig.disk.kill(),
            latest,
        }
    }

    /// Flips bit `bit` of byte `at`, starts, and returns the number of keys that are found.
    fn flip(&self, at: u64, bit: u64) -> u64 {
        let disk = self.image.kill();
        disk.corrupt(at, 1, |b| b[0] ^= 1 << bit);
        let mut rig = Rig::open(disk, MEMORY, at, options());
        self.check(&rig, &format!("flip of bit {bit} at {at}, while loading"));
        rig.settle();
        let found = self.check(&rig, &format!("flip of bit {bit} at {at}"));
        if at.is_multiple_of(5) {
            self.check(
                &rig.kill(),
                &format!("flip of bit {bit} at {at}, second start"),
            );
        }
        found
    }

    pub(super) fn check(&self, rig: &Rig, when: &str) -> u64 {
        let keys = self.latest.iter().filter(|(key, latest)| {
            let found = rig.get(key).map(|object| object.body().to_vec());
            assert!(
                found.is_none() || found == **latest,
                "{when}: {key} gave {:?}",
                found.map(|body| String::from_utf8_lossy(&body[..8]).into_owned())
            );
            found.is_some()
        });
        let found = keys.count() as u64;
        for (key, body) in [("page", "Hello"), ("page\nde", "Hallo")] {
            let given = rig.text(key);
            assert!(given.is_none_or(|given| given == body), "{when}: {key}");
        }
        if let Some(head) = rig.get(LARGE) {
            for n in 0..head.fragment_count() {
                let part = rig.fragment(&head, n);
                let whole = part.is_none_or(|part| part.body().iter().all(|b| *b == b'L'));
                assert!(whole, "{when}: fragment {n}");
            }
        }
        found
    }

    /// Returns the byte ranges outside records, by the structure to which they belong, and the byte
    /// ranges of records.
    fn parts(&self) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
        let rig = Rig::open(self.image.kill(), MEMORY, 1, options());
        let store = rig.engine.fleet().store(StoreId(0)).unwrap();
        assert!(
            store.space.used_segments() >= 8,
            "{}",
            store.space.used_segments()
        );
        let geometry = *store.space.geometry();
        let mut ranges = vec![
            0..geometry.journal_at(),
            geometry.journal_at()..geometry.removals_at(),
            geometry.removals_at()..geometry.slot_at(0),
            geometry.slot_at(0)..geometry.segment_at(0),
        ];
        let len = self.image.len() as usize;
        let bytes = self.image.peek(0, len);
        let mut records = Vec::new();
        let mut at = geometry.segment_at(0);
        while at < len as u64 {
            let cluster = ClusterHeader::decode(&bytes[at as usize..], geometry.segment_bytes);
            let Ok((header, entries)) = cluster else {
                at += BLOCK;
                continue;
            };
            let table = at + cluster_table_bytes(entries.len()) as u64;
            ranges.push(at..table);
            at += u64::from(header.len_units) * UNIT;
            records.push(table..at);
        }
        assert!(ranges.len() > 40, "{} clusters", ranges.len());
        (ranges, records)
    }
}

/// The ordinary run makes a limited number of flips of each kind. The long run flips every bit outside
/// records, and a limited number in records.
const SOME: u64 = 400;
const RECORD_BITS: u64 = 10_000;

fn flip_bits(pause: Duration) {
    let killed = Killed::new(pause);
    let bytes = killed.image.peek(0, killed.image.len() as usize);
    let (ranges, records) = killed.parts();
    let (regions, clusters) = ranges.split_at(4);
    let written = |at: &u64| bytes[*at as usize] != 0;
    let all = |ranges: &[Range<u64>]| -> Vec<u64> {
        let places = ranges.iter().flat_map(Clone::clone);
        places.filter(written).collect()
    };
    let mut kinds: Vec<Vec<u64>> = regions
        .iter()
        .map(|r| all(std::slice::from_ref(r)))
        .collect();
    // The newest clusters get additional flips, because they are in open segments.
    kinds.push(all(clusters));
    kinds.push(all(&clusters[clusters.len() - 8..]));
    let (mut rng, mut flips, mut found) = (Rng::new(3), 0, 0);
    let records = all(&records);
    for _ in 0..if super::is_long() { RECORD_BITS } else { SOME } {
        let at = records[rng.below(records.len() as u64) as usize];
        found += killed.flip(at, rng.below(8));
        flips += 1;
    }
    for places in kinds {
        assert!(places.len() > 20, "{}", places.len());
        if super::is_long() {
            for at in places {
                (0..8).for_each(|bit| found += killed.flip(at, bit));
                flips += 8;
            }
            continue;
        }
        for _ in 0..SOME {
            let at = places[rng.below(places.len() as u64) as usize];
            found += killed.flip(at, rng.below(8));
            flips += 1;
        }
    }
    if super::is_long() {
        // In a zero byte only one bit is flipped: nearly all zero bytes belong to places that were
        // never written.
        for at in ranges.iter().flat_map(Clone::clone) {
            if !written(&at) {
                found += killed.flip(at, rng.below(8));
                flips += 1;
            }
        }
    }
    println!("{flips} flips, {found} found");
    assert!(found > flips * 5, "{found} of {flips}");
}

#[test]
fn a_flipped_bit_of_a_store_killed_at_rest_brings_nothing_back() {
    flip_bits(Duration::from_secs(20));
}

#[test]
fn a_flipped_bit_of_a_store_killed_right_after_a_purge_brings_nothing_back() {
    flip_bits(Duration::ZERO);
}

/// The smallest case: one object, a purge of it, later objects, and one flipped bit in one header.
#[test]
fn a_purge_in_an_open_segment_outlives_a_flipped_bit_of_its_cluster() {
    let mut rig = Rig::new(16, MEMORY, 5);
    rig.settle();
    rig.put("a", b"old");
    rig.settle();
    let ticket = rig.engine.purge(hash("a"), b"a");
    acknowledged(&mut rig, &ticket);
    for n in 0..30 {
        rig.put(&format!("later {n}"), b"body");
        rig.clock.advance(Duration::from_millis(333));
        rig.turns(3);
    }
    let begin = rig.segments_at();
    let written = rig.counts().cluster_bytes;
    for block in (0..written).step_by(BLOCK as usize) {
        let disk = rig.disk.kill();
        disk.corrupt(begin + block + 20, 1, |b| b[0] ^= 4);
        let mut again = Rig::open(disk, MEMORY, block, options());
        again.settle();
        assert_eq!(again.text("a"), None, "block at {block}");
    }
}
