//! A short workload with a crash at every point and in every way that matters. Each operation of the disk is
//! a crash point. A crash keeps any subset of the writes that were not durable, and each kept write is
//! complete or torn.

use std::collections::HashMap;
use std::time::Duration;

use foxy_disk::{Keep, MemDisk};

use super::rig::{Rig, SEGMENT, hash, options};
use crate::*;

/// If at most this number of writes is not durable, a crash is tried for each subset of them. If there are
/// more, a crash is tried for each subset of one write, and for each subset that lacks one write.
const SUBSETS_OF: usize = 3;
const MEMORY: u64 = 1 << 20;
const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// The contents that each key may hold after a power cut, and after a kill.
#[derive(Clone, Default)]
struct Allowed {
    power: HashMap<&'static str, Vec<Option<String>>>,
}

impl Allowed {
    fn now(&mut self, key: &'static str, text: Option<&str>) {
        let states = self.power.entry(key).or_insert_with(|| vec![None]);
        states.push(text.map(str::to_owned));
    }

    /// Notes that the present state was made durable.
    fn durable(&mut self) {
        for states in self.power.values_mut() {
            states.drain(..states.len() - 1);
        }
    }

    fn check(&self, rig: &Rig, kill: bool, what: &str) {
        for key in KEYS {
            let Some(found) = rig.text(key) else { continue };
            let found = found.trim_end_matches('.').to_owned();
            let states = self.power.get(key).map_or(&[][..], Vec::as_slice);
            let states = if kill {
                &states[states.len().saturating_sub(1)..]
            } else {
                states
            };
            let allowed = states.iter().flatten().any(|s| *s == found);
            assert!(allowed, "{what}: {key} gave {found}, allowed {states:?}");
        }
    }
}

struct Cut {
    rig: Rig,
    allowed: Allowed,
    points: u64,
}

impl Cut {
    /// Tries every crash that is possible at this moment.
    fn every_way(&mut self) {
        self.after(Keep::All, true, "kill");
        self.after(Keep::Nothing, false, "nothing kept");
        let unsynced = self.rig.disk.unsynced();
        if unsynced.len() <= SUBSETS_OF {
            for set in 0u32..1 << unsynced.len() {
                let mut keep = |w: &foxy_disk::Unsynced| set >> w.index & 1 == 1;
                self.after(Keep::Writes(&mut keep), false, "a subset");
            }
        } else {
            for n in 0..unsynced.len() {
                let mut alone = |w: &foxy_disk::Unsynced| w.index == n;
                self.after(Keep::Writes(&mut alone), false, "one alone");
                let mut others = |w: &foxy_disk::Unsynced| w.index != n;
                self.after(Keep::Writes(&mut others), false, "all but one");
            }
        }
        // Torn writes keep the first or the last half of the sectors of every write.
        let halves: HashMap<usize, u64> =
            unsynced.iter().map(|w| (w.index, w.len / 1024)).collect();
        let mut first = |w: &foxy_disk::Unsynced, n: u64| n < halves[&w.index];
        self.after(Keep::Sectors(&mut first), false, "first halves");
        let mut last = |w: &foxy_disk::Unsynced, n: u64| n >= halves[&w.index];
        self.after(Keep::Sectors(&mut last), false, "last halves");
        let mut odd = |_: &foxy_disk::Unsynced, n: u64| n % 2 == 1;
        self.after(Keep::Sectors(&mut odd), false, "odd sectors");
    }

    fn after(&mut self, keep: Keep<'_>, kill: bool, what: &str) {
        self.points += 1;
        let again = self.rig.crash(keep);
        self.allowed.check(&again, kill, what);
    }

    fn put(&mut self, key: &'static str, text: &str) {
        let mut body = text.as_bytes().to_vec();
        body.resize(10_000, b'.');
        let put = self.rig.put(key, &body);
        let visible = put.admitted.is_visible();
        self.allowed.now(key, visible.then_some(text));
    }

    /// Runs a turn of the writer. Each disk operation of the turn is a crash point.
    fn turn(&mut self) {
        self.rig.disk.set_step(true);
        self.rig.clock.advance(Duration::from_millis(300));
        self.rig.writer.turn();
        while let Some(op) = self.rig.disk.held().first().cloned() {
            self.every_way();
            self.rig.disk.release(op.id);
        }
    }

    fn turns(&mut self, n: usize) {
        for _ in 0..n {
            self.turn();
        }
    }
}

/// Makes a store of four segments, so that the workload seals, reuses, reinserts and overwrites in a
/// few steps.
fn small() -> Rig {
    let len = 4 * u64::from(SEGMENT + 4096) + (64 << 10);
    let options = StoreOptions {
        cluster_bytes: 32 << 10,
        ..options()
    };
    Rig::open(MemDisk::new(len, 512, 5), MEMORY, 5, options)
}

#[test]
fn every_crash_point_of_a_short_workload_keeps_to_the_oracle() {
    let mut cut = Cut {
        rig: small(),
        allowed: Allowed::default(),
        points: 0,
    };
    let rounds = if super::is_long() { 48 } else { 8 };
    for round in 0..rounds {
        for key in KEYS {
            // Key `f` is stored only in every sixth round; in between, reuse writes its record again.
            if key != "f" || round % 6 == 0 {
                cut.put(key, &format!("{key} {round}"));
            }
        }
        cut.turns(2);
        let gone = KEYS[round % 5];
        cut.rig.supersede(gone);
        cut.allowed.now(gone, None);
        cut.turns(2);
        let purged = KEYS[(round + 3) % 5];
        let ticket = cut.rig.engine.purge(hash(purged), purged.as_bytes());
        cut.allowed.now(purged, None);
        for _ in 0..30 {
            if ticket.is_done() {
                break;
            }
            cut.turn();
        }
        assert_eq!(ticket.outcome(), Some(Durable::Yes));
        if let Some(states) = cut.allowed.power.get_mut(purged) {
            states.drain(..states.len() - 1);
        }
        if round % 2 == 1 {
            cut.rig.disk.set_step(false);
            cut.rig.settle();
            cut.allowed.durable();
        }
    }
    let counts = cut.rig.counts();
    assert!(counts.reused > 0 && counts.reinserted > 0, "{counts:?}");
    println!("{} crash points", cut.points);
    assert!(cut.points > 800, "{} points", cut.points);
}

/// Makes a store with objects of one and of several sectors, a removal, a sealed segment and an open
/// segment.
fn little_store() -> (Rig, HashMap<&'static str, String>) {
    let mut rig = small();
    let mut texts = HashMap::new();
    for (n, key) in KEYS.into_iter().enumerate() {
        let text = key.repeat(40 + 700 * (n % 2));
        rig.put(key, b"an older version");
        rig.settle();
        rig.put(key, text.as_bytes());
        texts.insert(key, text);
    }
    rig.settle();
    rig.supersede("c");
    texts.remove("c");
    rig.settle();
    assert!(rig.writer.drain(Duration::from_secs(1)));
    (rig, texts)
}

/// No flipped byte of a small store causes a lookup to return other or older bytes, and a flipped byte
/// in a record is a miss.
#[test]
fn every_flipped_byte_of_a_small_store_is_a_miss_or_harmless() {
    let (rig, texts) = little_store();
    let image = rig.disk.kill();
    let len = foxy_disk::Disk::len(&image);
    let bytes = image.peek(0, len as usize);
    let step = if super::is_long() { 1 } else { 4096 };
    let (mut flips, mut misses) = (0u64, 0u64);
    for at in 0..len {
        // A store has many zero bytes and bytes of bodies, so the ordinary run flips only one in 4096 of
        // these. Of the other bytes, it flips one in eight. (Another test covers records.)
        let plain = bytes[at as usize] == 0 || (b'a'..=b'f').contains(&bytes[at as usize]);
        if at % (if plain { step } else { step.min(8) }) != 0 {
            continue;
        }
        flips += 1;
        let disk = image.kill();
        disk.corrupt(at, 1, |b| b[0] ^= 1 << (at % 8));
        let Ok(mut again) = Rig::try_open(disk, MEMORY, at, rig.options.clone()) else {
            assert!(at < 8192, "refused for a flip at {at}");
            continue;
        };
        again.settle();
        for key in KEYS {
            let found = again.text(key);
            misses += u64::from(found.is_none() && key != "c");
            assert!(
                found.is_none() || found.as_ref() == texts.get(key),
                "flip at {at}: {key} gave {found:?}"
            );
        }
    }
    assert!(flips > 200 && misses > 10, "{flips} flips, {misses} misses");
}

/// A flip anywhere in key, head or body of a record makes the read a miss.
#[test]
fn every_flipped_byte_of_a_record_is_a_miss() {
    let (rig, texts) = little_store();
    let mut again = Rig::open(rig.disk.kill(), MEMORY, 9, rig.options);
    again.settle();
    let store = again.engine.fleet().store(StoreId(0)).unwrap();
    for key in ["a", "b"] {
        let plan = again.plan(key).unwrap();
        let place = store.space.place(plan.spot).unwrap();
        let record = again.read(&plan).unwrap()[plan.skip as usize..].to_vec();
        let (_, layout) = foxy_format::parse_record(&record, &place).unwrap();
        assert!(layout.body.end > texts[key].len());
        for at in 0..layout.body.end {
            let mut flipped = record.clone();
            flipped[at] ^= 1 << (at % 8);
            let parsed = foxy_format::parse_record(&flipped, &place);
            assert!(parsed.is_err(), "{key}: byte {at}");
        }
    }
}
