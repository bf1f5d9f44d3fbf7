//! The store against its oracle: random operations, crashes and restarts, and a model that knows which
//! versions each key may have.
//!
//! For each key the model keeps its past states, newest last. A lookup may return the newest state or a
//! miss, also after a kill at any moment. After a power cut, older states may return too. The oldest of them
//! is the state at the time when the last acknowledged sync (or purge of the key) was requested.

use std::collections::HashMap;
use std::time::Duration;

use foxy_base::Rng;
use foxy_disk::{AlignedBuf, Keep};

use super::rig::{Rig, body, hash, version_of};
use crate::*;

const KEYS: u64 = 24;
const SMALL: u64 = 3_000;
const LARGE: u64 = 24_000;

#[derive(Clone, Debug, Default)]
struct State {
    /// The versions that the key may have; if there is none, only a miss is correct.
    versions: Vec<u64>,
    /// Number of the operation that began this state.
    began: u64,
}

struct Model {
    rig: Rig,
    rng: Rng,
    op: u64,
    version: u64,
    states: HashMap<u64, Vec<State>>,
    tickets: Vec<(SyncTicket, Option<u64>, u64)>,
    reads: Vec<(u64, ReadPlan, AlignedBuf)>,
    hits: u64,
}

impl Model {
    fn new(seed: u64) -> Self {
        Self {
            rig: Rig::new(8, 512 << 10, seed),
            rng: Rng::new(seed),
            op: 0,
            version: 0,
            states: (0..KEYS).map(|k| (k, vec![State::default()])).collect(),
            tickets: Vec::new(),
            reads: Vec::new(),
            hits: 0,
        }
    }

    fn name(key: u64) -> String {
        format!("{key} key")
    }

    fn max(version: u64) -> u64 {
        if version.is_multiple_of(12) {
            LARGE
        } else {
            SMALL
        }
    }

    fn begin(&mut self, key: u64, versions: Vec<u64>) {
        let state = State {
            versions,
            began: self.op,
        };
        self.states.entry(key).or_default().push(state);
    }

    fn step(&mut self) {
        self.op += 1;
        let key = self.rng.below(KEYS);
        let name = Self::name(key);
        match self.rng.below(100) {
            0..40 => self.put(key),
            40..46 => {
                self.rig.supersede(&name);
                self.begin(key, Vec::new());
            }
            46..49 => {
                let ticket = self.rig.engine.purge(hash(&name), name.as_bytes());
                self.begin(key, Vec::new());
                self.tickets.push((ticket, Some(key), self.op));
            }
            49..51 => {
                let ticket = self.rig.engine.sync();
                self.tickets.push((ticket, None, self.op));
            }
            51..70 => self.check(key),
            70..74 => self.begin_read(key),
            74..76 => self.end_read(),
            76..78 => self
                .rig
                .engine
                .core()
                .tables
                .shard(hash(&name))
                .write()
                .ram_remove_for_test(hash(&name)),
            78..99 => self.turn(),
            _ if self.rng.chance(0.3) => self.crash(),
            _ => self.turn(),
        }
    }

    fn put(&mut self, key: u64) {
        self.version += 1;
        let version = self.version;
        let put = self
            .rig
            .put(&Self::name(key), &body(key, version, Self::max(version)));
        let visible = put.admitted.is_visible();
        self.begin(key, if visible { vec![version] } else { Vec::new() });
    }

    fn turn(&mut self) {
        self.rig
            .clock
            .advance(Duration::from_millis(self.rng.below(60)));
        for _ in 0..=self.rng.below(4) {
            self.rig.writer.turn();
        }
        self.turn_done();
    }

    fn turn_done(&mut self) {
        assert_eq!(
            self.rig.counts().removal_log_full,
            0,
            "no room for strictness"
        );
        let done: Vec<_> = self
            .tickets
            .extract_if(.., |(ticket, ..)| ticket.is_done())
            .collect();
        for (ticket, key, op) in done {
            assert_eq!(ticket.outcome(), Some(Durable::Yes));
            let keys = key.map_or(0..KEYS, |k| k..k + 1);
            for key in keys {
                self.trim(key, op);
            }
        }
    }

    /// Forgets the states of a key that were replaced before operation `op` or by it. The operation was
    /// acknowledged as durable.
    fn trim(&mut self, key: u64, op: u64) {
        let states = self.states.entry(key).or_default();
        let keep = states.iter().rposition(|s| s.began <= op).unwrap_or(0);
        states.drain(..keep);
    }

    /// Returns the version that a lookup returns, and checks every byte.
    fn found(&self, key: u64) -> Option<u64> {
        let object = self.rig.get(&Self::name(key))?;
        self.version_in(key, &object)
    }

    fn version_in(&self, key: u64, object: &Object) -> Option<u64> {
        assert_eq!(object.key(), Self::name(key).as_bytes());
        let mut whole = object.body().to_vec();
        for n in 0..object.fragment_count() {
            whole.extend_from_slice(self.rig.fragment(object, n)?.body());
        }
        assert_eq!(whole.len() as u64, object.total_length());
        let text = String::from_utf8_lossy(&whole[..whole.len().min(40)]).into_owned();
        let version = text.split('/').nth(1)?.parse().ok()?;
        Some(version_of(key, &whole, Self::max(version)))
    }

    fn check(&mut self, key: u64) {
        if let Some(version) = self.found(key) {
            self.saw(key, version);
        }
    }

    fn saw(&mut self, key: u64, version: u64) {
        self.hits += 1;
        let states = self.states.entry(key).or_default();
        let last = states.last_mut().unwrap();
        assert!(
            last.versions.contains(&version),
            "key {key} gave {version}, allowed {:?}",
            last.versions
        );
        last.versions = vec![version];
    }

    fn begin_read(&mut self, key: u64) {
        if let Some(plan) = self.rig.plan(&Self::name(key)) {
            let plan = self.rig.widen(&plan);
            let buf = self.rig.read(&plan).unwrap();
            self.reads.push((key, plan, buf));
        }
    }

    /// Ends a read that was under way during other operations.
    fn end_read(&mut self) {
        let Some((key, plan, buf)) = self.reads.pop() else {
            return;
        };
        if self.rng.chance(0.5) {
            self.rig.engine.context().memory.clear();
        }
        let name = Self::name(key);
        if let Ok(object) = self
            .rig
            .engine
            .reads()
            .finish_read(&plan, name.as_bytes(), buf)
            && let Some(version) = self.version_in(key, &object)
        {
            self.saw(key, version);
        }
    }

    /// Runs a turn of the writer. Its operations are carried out one by one, in a random order, and
    /// crashes are tried before each operation. The history itself continues undisturbed.
    fn turn_in_steps(&mut self, crashes: &mut u64) {
        self.rig.disk.set_step(true);
        self.rig
            .clock
            .advance(Duration::from_millis(self.rng.below(400)));
        self.rig.writer.turn();
        loop {
            let held = self.rig.disk.held();
            let pick = self.rng.below(held.len() as u64) as usize;
            let Some(op) = held.get(pick) else { break };
            for _ in 0..2 {
                self.crash_here(true);
                *crashes += 1;
            }
            self.crash_here(false);
            *crashes += 1;
            self.rig.disk.release(op.id);
        }
        self.turn_done();
    }

    /// Checks that the state after a crash at this moment agrees with the oracle.
    fn crash_here(&mut self, power: bool) {
        let seed = self.rng.next_u64();
        let mut torn = Rng::new(seed);
        let keep = match seed % 4 {
            _ if !power => Keep::All,
            0 => Keep::Nothing,
            1 => Keep::Sectors(&mut |_, _| torn.chance(0.7)),
            _ => Keep::Random(seed),
        };
        let again = self.rig.crash(keep);
        let there = std::mem::replace(&mut self.rig, again);
        for key in 0..KEYS {
            let mut states = self.states[&key].clone();
            if !power {
                states.drain(..states.len() - 1);
            }
            if let Some(version) = self.found(key) {
                let allowed = states.iter().any(|s| s.versions.contains(&version));
                assert!(
                    allowed,
                    "key {key} gave {version} after a crash, allowed {states:?}"
                );
            }
        }
        self.rig = there;
    }

    fn crash(&mut self) {
        let power = self.rng.chance(0.6);
        let keep = if power {
            Keep::Random(self.rng.next_u64())
        } else {
            Keep::All
        };
        self.reads.clear();
        self.tickets.clear();
        self.rig = self.rig.crash_unloaded(keep);
        for key in 0..KEYS {
            if !power {
                self.trim(key, self.op);
            }
            let states = self.states.entry(key).or_default();
            let versions = states.iter().flat_map(|s| s.versions.clone()).collect();
            *states = vec![State {
                versions,
                began: self.op,
            }];
        }
        if self.rng.chance(0.5) {
            self.rig.settle();
            (0..KEYS).for_each(|key| self.check(key));
        }
    }
}

#[test]
fn random_histories_keep_to_the_oracle() {
    let (mut hits, mut reused, mut wide) = (0, 0, 0);
    let seeds = if super::is_long() { 4000 } else { 60 };
    for seed in 0..seeds {
        let mut model = Model::new(seed);
        for _ in 0..1500 {
            model.step();
        }
        model.rig.settle();
        (0..KEYS).for_each(|key| model.check(key));
        reused += model.rig.counts().reused;
        wide += model.rig.engine.stats().counts.wide_reads;
        hits += model.hits;
    }
    // The histories must have covered these cases.
    assert!(
        hits > 10_000 && reused > 100 && wide > 20,
        "{hits} hits, {reused} segments reused, {wide} longer reads"
    );
}

#[test]
fn crashes_before_every_operation_keep_to_the_oracle() {
    let (mut crashes, mut reused) = (0, 0);
    let seeds = if super::is_long() { 106 } else { 6 };
    for seed in 100..100 + seeds {
        let mut model = Model::new(seed);
        // First comes a history that fills the store, then a history in steps.
        for _ in 0..400 {
            model.op += 1;
            let key = model.rng.below(KEYS);
            model.put(key);
            model.turn();
        }
        for _ in 0..120 {
            model.op += 1;
            let key = model.rng.below(KEYS);
            match model.rng.below(8) {
                0..4 => model.put(key),
                4 => {
                    model.rig.supersede(&Model::name(key));
                    model.begin(key, Vec::new());
                }
                5 => {
                    let ticket = model
                        .rig
                        .engine
                        .purge(hash(&Model::name(key)), Model::name(key).as_bytes());
                    model.begin(key, Vec::new());
                    model.tickets.push((ticket, Some(key), model.op));
                }
                6 => model.check(key),
                _ => {
                    let ticket = model.rig.engine.sync();
                    model.tickets.push((ticket, None, model.op));
                }
            }
            // The crash comes directly after the operation: a kill must not undo the operation's
            // effect.
            model.crash_here(false);
            model.crash_here(true);
            crashes += 2;
            model.turn_in_steps(&mut crashes);
        }
        reused += model.rig.counts().reused;
    }
    assert!(
        crashes > 2500 && reused > 20,
        "{crashes} crashes, {reused} segments reused"
    );
}

#[test]
fn flipped_bits_are_misses_and_never_other_or_older_bytes() {
    let mut model = Model::new(200);
    for _ in 0..200 {
        model.op += 1;
        let key = model.rng.below(KEYS);
        model.put(key);
        model.turn();
    }
    model.rig.settle();
    assert!(model.rig.writer.drain(Duration::from_secs(1)));
    let mut rng = Rng::new(1);
    let (image, end) = (model.rig.disk.kill(), model.rig.segments_at() + 8 * 65536);
    let mut hits = 0;
    for n in 0..3000 {
        // Every third flip is in the first bytes of a structure, where headers are.
        let at = if n % 3 == 0 {
            rng.below(end / 4096) * 4096 + rng.below(200)
        } else {
            rng.below(end)
        };
        let disk = image.kill();
        disk.corrupt(at, 1, |b| b[0] ^= 1 << rng.below(8));
        let Ok(mut rig) = Rig::try_open(disk, 512 << 10, n, super::rig::options()) else {
            assert!(at < 8192, "refused for a flip at {at}");
            continue;
        };
        rig.settle();
        model.rig = rig;
        for key in 0..KEYS {
            hits += u64::from(model.found(key).is_some_and(|version| {
                let allowed = &model.states[&key].last().unwrap().versions;
                assert!(
                    allowed.contains(&version),
                    "flip at {at}: key {key} gave {version}, not {allowed:?}"
                );
                true
            }));
        }
    }
    assert!(hits > 3000 * KEYS * 3 / 4, "{hits}");
}
