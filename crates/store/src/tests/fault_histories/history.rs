//! A random history with faults, and the versions that each key may have.

use std::collections::HashMap;

use bytes::Bytes;
use foxy_base::{MonoTime, Rng};
use foxy_disk::{Fault, FaultPlan, Keep};

use super::super::purges::{purge, tagged};
use super::super::rig::{body, hash, version_of};
use super::LIMIT;
use super::bench::{Bench, Plans, plan};
use crate::*;

/// Number of sessions in a history. A session lasts from a start to the next kill or power cut.
pub(super) const SESSIONS: usize = 3;
const KEYS: u64 = 20;
const TAGS: u64 = 5;
const SMALL: u64 = 2_500;
const LARGE: u64 = 24_000;

/// A fault at one operation of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) session: usize,
    /// The number of the operation in that session; odd numbers are for the second disk, if there is one.
    pub(super) at: u64,
    pub(super) fault: Fault,
}

/// The steps and faults of a history. Everything in the history is derived from them.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) seed: u64,
    pub(super) stores: u64,
    pub(super) steps: u64,
    pub(super) hits: Vec<Hit>,
    /// True for the sessions that end by a power cut and not by a kill.
    pub(super) cuts: [bool; SESSIONS],
}

/// The results of a run of a history.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The number of operations of each session.
    pub(super) operations: [u64; SESSIONS],
    pub(super) faults: u64,
    pub(super) struck: Vec<String>,
    /// The number of answers that were checked.
    pub(super) given: u64,
    /// True if a store could not be opened any more, and the history ended.
    pub(super) refused: bool,
    /// The number of removals that were undone, but were not acknowledged and not older than [`LIMIT`].
    pub(super) young: u64,
    /// The removals that were undone although they were acknowledged or older than [`LIMIT`]: session, key
    /// and version.
    pub(super) returns: Vec<(usize, u64, u64)>,
}

/// A version that a key had.
#[derive(Clone, Debug)]
struct Held {
    version: u64,
    /// The removal that ended the version; `None` if the key still has the version.
    ended: Option<Removal>,
    /// The soft purge that covered the version.
    stale: Option<Removal>,
}

/// A removal that must not be undone.
#[derive(Clone, Copy, Debug)]
struct Removal {
    step: u64,
    when: MonoTime,
    /// True for a purge of many objects: if a disk does not answer, the journal on that disk cannot
    /// record the purge.
    noted: bool,
    /// True if a crash came so soon after this removal that the crash may have undone it.
    young: bool,
}

/// A ticket with the step and the keys to which it belongs.
struct Ticket {
    ticket: SyncTicket,
    step: u64,
    keys: Vec<u64>,
    /// True if the ticket is for a soft purge only. When the ticket ends, earlier removals may not be
    /// durable yet.
    soft: bool,
}

struct Run<'a> {
    history: &'a History,
    bench: Bench,
    rng: Rng,
    session: usize,
    step: u64,
    version: u64,
    keys: HashMap<u64, Vec<Held>>,
    tickets: Vec<Ticket>,
    /// For each key, the step up to which all removals are acknowledged.
    acknowledged: HashMap<u64, u64>,
    /// For each key, the step up to which all soft purges are acknowledged.
    stale: HashMap<u64, u64>,
    seen: Seen,
}

fn name(key: u64) -> String {
    let variant = if key.is_multiple_of(4) { "\nde" } else { "" };
    format!("site GET http://h.test/{key}{variant}")
}

fn max(version: u64) -> u64 {
    if version.is_multiple_of(9) {
        LARGE
    } else {
        SMALL
    }
}

impl History {
    /// Makes a short history. A test puts one fault at each of its operations in turn.
    pub(super) fn short(seed: u64) -> Self {
        Self {
            seed,
            stores: 1 + seed % 2,
            steps: 70,
            hits: Vec::new(),
            cuts: [false; SESSIONS],
        }
    }

    /// Makes a long history, for a test with many faults.
    pub(super) fn long(seed: u64) -> Self {
        Self {
            steps: 160,
            ..Self::short(seed)
        }
    }

    fn plans(&self, session: usize) -> Plans {
        let of = |disk: u64| {
            let hits = self.hits.iter().filter(|hit| hit.session == session);
            let own = hits.filter(|hit| hit.at % self.stores == disk);
            plan(own.map(|hit| (hit.at / self.stores, hit.fault)))
        };
        (0..self.stores).map(of).collect()
    }

    pub(super) fn run(&self) -> Seen {
        let bench = Bench::new(self.stores, self.seed);
        for (disk, plan) in bench.disks.iter().zip(self.plans(0)) {
            disk.set_log(true);
            disk.set_faults(plan);
        }
        let mut run = Run {
            history: self,
            bench,
            rng: Rng::new(self.seed).fork("history"),
            session: 0,
            step: 0,
            version: 0,
            keys: HashMap::new(),
            tickets: Vec::new(),
            acknowledged: HashMap::new(),
            stale: HashMap::new(),
            seen: Seen::default(),
        };
        for session in 0..SESSIONS {
            for _ in 0..self.steps {
                run.step();
            }
            if !run.end_of(session) {
                run.seen.refused = true;
                return run.seen;
            }
        }
        run.bench
            .disks
            .iter()
            .for_each(|disk| disk.set_faults(FaultPlan::none()));
        run.bench.rest();
        run.check_all();
        run.seen
    }
}

impl Run<'_> {
    fn step(&mut self) {
        self.step += 1;
        let key = self.rng.below(KEYS);
        match self.rng.below(100) {
            0..32 => self.put(key),
            32..38 => {
                self.bench
                    .engine
                    .supersede(hash(&name(key)), name(key).as_bytes());
                self.ended(key);
            }
            38..44 => {
                let ticket = self
                    .bench
                    .engine
                    .purge(hash(&name(key)), name(key).as_bytes());
                self.ended(key);
                self.await_ticket(ticket, vec![key], false);
            }
            44..47 => self.purge_tag(key % TAGS, false),
            47..49 => self.purge_tag(key % TAGS, true),
            49..51 => self.refresh(key),
            51..53 => {
                let ticket = self.bench.engine.sync();
                self.await_ticket(ticket, (0..KEYS).collect(), false);
            }
            53..66 => self.check(key),
            66..69 => self.bench.engine.context().memory.clear(),
            69..72 => self.pass(700),
            _ => {
                let millis = self.rng.below(60);
                self.pass(millis);
            }
        }
    }

    fn pass(&mut self, millis: u64) {
        self.bench.pass(millis);
        for done in self.tickets.extract_if(.., |waits| waits.ticket.is_done()) {
            if done.ticket.outcome() == Some(Durable::Yes) {
                let told = match done.soft {
                    true => &mut self.stale,
                    false => &mut self.acknowledged,
                };
                for key in done.keys {
                    let until = told.entry(key).or_default();
                    *until = done.step.max(*until);
                }
            }
        }
    }

    fn await_ticket(&mut self, ticket: SyncTicket, keys: Vec<u64>, soft: bool) {
        let step = self.step;
        self.tickets.push(Ticket {
            ticket,
            step,
            keys,
            soft,
        });
    }

    /// Notes that the present versions of the key have ended.
    fn ended(&mut self, key: u64) {
        self.ended_by(key, self.removal());
    }

    fn ended_by(&mut self, key: u64, now: Removal) {
        for held in self.keys.entry(key).or_default() {
            // If an earlier removal may have been undone, this removal replaces it.
            held.ended = held.ended.filter(|ended| !ended.young).or(Some(now));
        }
    }

    fn removal(&self) -> Removal {
        Removal {
            step: self.step,
            when: self.bench.now(),
            noted: false,
            young: false,
        }
    }

    fn put(&mut self, key: u64) {
        self.version += 1;
        let version = self.version;
        let tag = format!("t{}", key % TAGS);
        let sequence = self.bench.engine.purges().purge_sequence();
        let new = tagged(
            &name(key),
            &body(key, version, max(version)),
            &tag,
            sequence,
        );
        let admitted = self.bench.engine.put(new).admitted;
        self.ended(key);
        if admitted.is_visible() {
            let held = Held {
                version,
                ended: None,
                stale: None,
            };
            self.keys.entry(key).or_default().push(held);
        }
    }

    fn purge_tag(&mut self, tag: u64, soft: bool) {
        let purge = purge(PurgeKind::Tag, &format!("t{tag}"), soft);
        let Ok((_, ticket)) = self
            .bench
            .engine
            .purges()
            .purge_many(&purge, Places::Reserved)
        else {
            return;
        };
        let keys: Vec<_> = (0..KEYS).filter(|key| key % TAGS == tag).collect();
        let now = Removal {
            noted: true,
            ..self.removal()
        };
        for key in &keys {
            match soft {
                false => self.ended_by(*key, now),
                true => {
                    for held in self.keys.entry(*key).or_default() {
                        held.stale = held.stale.filter(|stale| !stale.young).or(Some(now));
                    }
                }
            }
        }
        self.await_ticket(ticket, keys, soft);
    }

    /// Refreshes a stored object as a 304 does; the version and the body stay.
    fn refresh(&mut self, key: u64) {
        if let Some(old) = self.bench.get(&name(key)) {
            let meta = ObjectMeta {
                purge_sequence: self.bench.engine.purges().purge_sequence(),
                ..*old.meta()
            };
            let (vary, tags) = (Bytes::new(), old.tags().clone());
            let fields = old.fields().clone();
            let put = self.bench.engine.refresh(&old, meta, vary, tags, fields);
            let visible = put.map(|put| put.admitted.is_visible());
            let held = self.keys.entry(key).or_default();
            if let (Some(true), Some(last)) = (visible, held.last_mut()) {
                last.stale = None;
            } else if visible == Some(false) {
                self.ended(key);
            }
        }
    }

    /// Returns the version that a lookup returns, and whether it is stale. It checks every byte.
    fn given(&self, key: u64) -> Option<(u64, bool)> {
        let object = self.bench.get(&name(key))?;
        assert_eq!(object.key(), name(key).as_bytes());
        let mut whole = object.body().to_vec();
        for n in 0..object.fragment_count() {
            whole.extend_from_slice(self.bench.fragment(&object, n)?.body());
        }
        let text = String::from_utf8_lossy(&whole[..whole.len().min(40)]).into_owned();
        let version: u64 = text.split('/').nth(1).unwrap().parse().unwrap();
        assert_eq!(version_of(key, &whole, max(version)), version);
        Some((version, object.is_soft_purged()))
    }

    fn check(&mut self, key: u64) {
        let Some((version, stale)) = self.given(key) else {
            return;
        };
        self.seen.given += 1;
        let all = self.keys.entry(key).or_default();
        let at = all.iter().position(|held| held.version == version);
        let at = at.unwrap_or_else(|| panic!("key {key} gave {version}, which it never held"));
        let undone = match all[at].ended {
            None if stale => None,
            None => all[at].stale,
            ended => ended,
        };
        let Some(removal) = undone else { return };
        match removal.young {
            true => self.seen.young += 1,
            false => self.seen.returns.push((self.session, key, version)),
        }
        // From now on, the version that was found counts as the present version of the key.
        all.truncate(at + 1);
        (all[at].ended, all[at].stale) = (None, None);
    }

    fn check_all(&mut self) {
        (0..KEYS).for_each(|key| self.check(key));
    }

    /// Ends a session. Returns false if the stores cannot be opened any more.
    fn end_of(&mut self, session: usize) -> bool {
        self.check_all();
        let bench = &self.bench;
        let counts = bench.disks.iter().map(|disk| disk.counts());
        let operations = counts.map(|c| (c.reads + c.writes + c.flushes, c.faults));
        let (longest, faults) = operations.fold((0, 0), |(a, b), (c, d)| (c.max(a), b + d));
        self.seen.operations[session] = longest * self.history.stores;
        self.seen.faults += faults;
        self.seen.struck.extend(bench.struck());
        let cut = self.history.cuts[session];
        let mut seeds = Rng::new(self.history.seed + session as u64).fork("cut");
        let keep = |_| match cut {
            true => Keep::Random(seeds.next_u64()),
            false => Keep::All,
        };
        let mut keep: Vec<_> = (0..self.history.stores).map(keep).collect();
        let plans = match session + 1 {
            SESSIONS => vec![FaultPlan::none(); keep.len()],
            next => self.history.plans(next),
        };
        let Some(again) = bench.restart(&mut keep, &plans, 2 + session as u64) else {
            return false;
        };
        self.bench = again;
        self.session += 1;
        self.tickets.clear();
        let now = self.bench.now();
        let hits = self.history.hits.iter();
        let stuck =
            (hits.filter(|hit| hit.session == session)).any(|hit| hit.fault == Fault::Stuck);
        for (key, all) in &mut self.keys {
            let of = |told: &HashMap<u64, u64>| told.get(key).copied().unwrap_or(0);
            let ended = of(&self.acknowledged);
            let stale = ended.max(of(&self.stale));
            for held in all {
                let removals = [(&mut held.ended, ended), (&mut held.stale, stale)];
                for (removal, acknowledged) in removals {
                    let Some(removal) = removal else { continue };
                    let unheard = stuck && removal.noted;
                    let young = unheard || now.since(removal.when) <= LIMIT;
                    removal.young |= young && removal.step > acknowledged;
                }
            }
        }
        self.check_all();
        true
    }
}
