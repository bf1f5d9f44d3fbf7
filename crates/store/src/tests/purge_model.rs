//! Tests of purges against a slow model: random histories of fetches, purges of every kind, sweeps, reuse,
//! kills and power cuts. The model keeps every purge ever made and compares each answer with all of them, one
//! by one.

use std::collections::HashMap;
use std::time::Duration;

use foxy_base::Rng;
use foxy_disk::Keep;

use super::purges::{purge, tagged};
use super::rig::Rig;
use crate::*;

const HOSTS: u64 = 3;
const PATHS: u64 = 4;
const TAGS: u64 = 5;

/// A fetch: its result, and the number of the newest purge when it began.
#[derive(Clone, Debug)]
struct Fetched {
    tags: Vec<u64>,
    sequence: u64,
}

#[derive(Debug)]
struct Made {
    purge: Purge,
    number: u64,
    ticket: Option<SyncTicket>,
    /// True if a crash may have lost the purge.
    doubtful: bool,
}

struct Model {
    rig: Rig,
    rng: Rng,
    version: u64,
    fetched: HashMap<u64, Fetched>,
    /// The latest version that was put under each key.
    present: HashMap<String, u64>,
    made: Vec<Made>,
    running: Vec<(String, u64)>,
    sweep: Option<Sweep>,
    hits: u64,
    stale: u64,
}

/// The rule of purging, in its simplest and slowest form.
pub(super) fn covers(purge: &Purge, key: &str, tags: &[u64]) -> bool {
    let (partition, rest) = key.split_once(" GET ").unwrap();
    let url = rest.split('\n').next().unwrap();
    let bare = url.split_once("://").unwrap().1;
    let text = std::str::from_utf8(&purge.text).unwrap();
    let here = purge.partition.is_empty() || purge.partition == partition;
    here && match purge.kind {
        PurgeKind::All => true,
        PurgeKind::Url => url == text,
        PurgeKind::Host => bare.split('/').next() == Some(text),
        PurgeKind::Prefix => url.starts_with(text) || bare.starts_with(text),
        PurgeKind::Tag => tags.iter().any(|tag| format!("tag {tag}") == text),
        // In the model, an expression covers the URLs that end with its text.
        PurgeKind::Expression => url.ends_with(text.trim_end_matches('$')),
    }
}

impl Model {
    fn new(seed: u64) -> Self {
        Self {
            rig: Rig::new(8, 256 << 10, seed),
            rng: Rng::new(seed),
            version: 0,
            fetched: HashMap::new(),
            present: HashMap::new(),
            made: Vec::new(),
            running: Vec::new(),
            sweep: None,
            hits: 0,
            stale: 0,
        }
    }

    fn key(&mut self) -> String {
        let partition = if self.rng.chance(0.3) {
            "site"
        } else {
            "forward"
        };
        let (host, path) = (self.rng.below(HOSTS), self.rng.below(PATHS));
        let variant = match self.rng.below(3) {
            0 => "\n0000000000000001\nen",
            _ => "",
        };
        format!("{partition} GET http://h{host}.test/p{path}{variant}")
    }

    fn purge(&mut self) -> Purge {
        let (host, path) = (self.rng.below(HOSTS), self.rng.below(PATHS));
        let soft = self.rng.chance(0.4);
        let mut made = match self.rng.below(20) {
            0 => purge(PurgeKind::All, "", soft),
            1..5 => purge(
                PurgeKind::Url,
                &format!("http://h{host}.test/p{path}"),
                soft,
            ),
            5..8 => purge(PurgeKind::Host, &format!("h{host}.test"), soft),
            8..11 => purge(PurgeKind::Prefix, &format!("h{host}.test/p"), soft),
            11..13 => purge(PurgeKind::Expression, &format!("test/p{path}$"), soft),
            _ => {
                let tag = self.rng.below(TAGS);
                purge(PurgeKind::Tag, &format!("tag {tag}"), soft)
            }
        };
        if self.rng.chance(0.2) {
            made.partition = "site".to_owned();
        }
        made
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..25 => {
                let key = self.key();
                self.running
                    .push((key, self.rig.engine.purges().purge_sequence()));
            }
            25..50 => self.end_fetch(),
            50..54 => {
                let purge = self.purge();
                if let Ok((number, ticket)) = self
                    .rig
                    .engine
                    .purges()
                    .purge_many(&purge, Places::Reserved)
                {
                    self.made.push(Made {
                        purge,
                        number,
                        ticket: Some(ticket),
                        doubtful: false,
                    });
                }
            }
            54..75 => self.check_one(),
            75..78 => self.rig.forget_memory(),
            78..84 => self.sweep(),
            84..99 => self.turn(),
            _ if self.rng.chance(0.4) => self.crash(),
            _ => self.turn(),
        }
    }

    fn end_fetch(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let at = self.rng.below(self.running.len() as u64) as usize;
        let (key, sequence) = self.running.swap_remove(at);
        self.version += 1;
        let tags: Vec<u64> = (0..TAGS).filter(|_| self.rng.chance(0.15)).collect();
        let names: Vec<_> = tags.iter().map(|t| format!("tag {t}")).collect();
        let mut body = format!("{} ", self.version).into_bytes();
        let long = if self.rng.chance(0.05) { 20_000 } else { 5000 };
        body.resize(body.len() + self.rng.below(long) as usize, b'x');
        let new = tagged(&key, &body, &names.join(","), sequence);
        if self.rig.engine.put(new).admitted.is_visible() {
            self.present.insert(key, self.version);
        } else if self.covered(&key, &tags, sequence, false) != Some(true) {
            // The new object was refused for another reason than a purge. The former object of the key is
            // then removed.
            self.rig
                .engine
                .supersede(foxy_base::key_hash(key.as_bytes()), key.as_bytes());
            self.present.remove(&key);
        }
        self.fetched
            .insert(self.version, Fetched { tags, sequence });
    }

    /// Returns `Some(true)` if a purge certainly covers the object, and `Some(false)` if no purge covers it.
    /// Returns `None` if a crash may have lost every purge that covers it.
    fn covered(&self, key: &str, tags: &[u64], sequence: u64, soft: bool) -> Option<bool> {
        let mut newer = self.made.iter().filter(|made| {
            made.purge.soft == soft && made.number > sequence && covers(&made.purge, key, tags)
        });
        let first = newer.next();
        if first.is_none() {
            return Some(false);
        }
        let sure = first.into_iter().chain(newer).any(|made| !made.doubtful);
        sure.then_some(true)
    }

    fn check_one(&mut self) {
        let key = self.key();
        self.check(&key);
    }

    fn check(&mut self, key: &str) {
        let Some(object) = self.rig.get(key) else {
            return;
        };
        let head = if object.is_large() {
            let Some(first) = self.rig.fragment(&object, 0) else {
                return;
            };
            first.body().clone()
        } else {
            object.body().clone()
        };
        let text = String::from_utf8_lossy(&head[..head.len().min(20)]).into_owned();
        let version: u64 = text.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(self.present.get(key), Some(&version), "{key}");
        let Fetched { tags, sequence } = self.fetched[&version].clone();
        let hard = self.covered(key, &tags, sequence, false);
        assert_ne!(hard, Some(true), "{key:?} {version} is purged");
        self.hits += 1;
        let stale = self.covered(key, &tags, sequence, true);
        if let Some(stale) = stale {
            // A purge beyond the limits is refused, and is not made broader. So no purge covers more than was
            // requested.
            assert_eq!(object.is_soft_purged(), stale, "{key:?} {version}");
            self.stale += u64::from(stale);
        }
    }

    fn sweep(&mut self) {
        if self.sweep.is_none() {
            self.sweep = self.rig.engine.purges().sweep();
        }
        for _ in 0..self.rng.below(12) {
            if let Some(sweep) = &mut self.sweep
                && sweep.step() == SweepStep::Done
            {
                self.sweep = None;
            }
        }
    }

    fn turn(&mut self) {
        let time = self.rng.below(60);
        self.rig.clock.advance(Duration::from_millis(time));
        for _ in 0..=self.rng.below(4) {
            self.rig.writer.turn();
        }
    }

    fn crash(&mut self) {
        let keep = match self.rng.below(3) {
            0 => Keep::All,
            1 => Keep::Nothing,
            _ => Keep::Random(self.rng.next_u64()),
        };
        for made in &mut self.made {
            if let Some(ticket) = made.ticket.take() {
                made.doubtful = ticket.outcome() != Some(Durable::Yes);
            }
        }
        self.sweep = None;
        self.running.clear();
        self.rig = self.rig.crash_unloaded(keep);
        // A power cut may bring back a version that was replaced just before, so the model keeps only
        // what is certain. For purges, no such exception is allowed.
        self.rig.settle();
        let keys: Vec<String> = self.present.keys().cloned().collect();
        for key in keys {
            self.recognise(&key);
        }
    }

    /// Called after a crash: the version that is found becomes the latest, if it is not purged.
    fn recognise(&mut self, key: &str) {
        let Some(object) = self.rig.get(key).filter(|o| !o.is_large()) else {
            self.present.remove(key);
            self.rig
                .engine
                .supersede(foxy_base::key_hash(key.as_bytes()), key.as_bytes());
            return;
        };
        let text =
            String::from_utf8_lossy(&object.body()[..object.body().len().min(20)]).into_owned();
        let version: u64 = text.split(' ').next().unwrap().parse().unwrap();
        self.present.insert(key.to_owned(), version);
        self.check(key);
    }
}

#[test]
fn purges_keep_to_the_slow_rule() {
    let (mut hits, mut stale, mut reused, mut retired) = (0, 0, 0, 0);
    for seed in 0..12 {
        let mut model = Model::new(seed);
        for _ in 0..2000 {
            model.step();
        }
        model.rig.settle();
        let keys: Vec<String> = model.present.keys().cloned().collect();
        keys.iter().for_each(|key| model.check(key));
        hits += model.hits;
        stale += model.stale;
        reused += model.rig.counts().reused;
        retired += model.made.len() - model.rig.engine.purges().active_purges();
    }
    assert!(
        hits > 1000 && stale > 100 && reused > 20 && retired > 200,
        "{hits} hits, {stale} stale, {reused} reused, {retired} retired"
    );
}
