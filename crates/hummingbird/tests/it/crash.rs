//! Crash tests: a seeded history of calls is stopped (cut) before a disk operation. Writes that were not
//! durable at the cut are kept completely, in part (torn), or not at all. After each cut the library is
//! opened anew.
//!
//! The rule for every read of a name: it returns the contents that the name had at the cut, or nothing. After
//! a power cut it may also return contents that the name had at the beginning of the last completed
//! checkpoint or later. It never returns other contents.

use std::collections::HashMap;
use std::time::Duration;

use foxy_base::Rng;
use foxy_disk::{Keep, MemDisk, Unsynced};
use foxy_hummingbird::{Checkpoint, Config, Error};

use super::harness::{Harness, config};

const NAMES: u64 = 40;
const DISK: u64 = 3 << 20;

/// The numbers of the contents that a name had, newest last. `None` means that there was no file.
type States = Vec<Option<u64>>;

struct History {
    harness: Harness,
    rng: Rng,
    states: HashMap<u64, States>,
    number: u64,
    /// A checkpoint under way, and the number of states that each name had when it began.
    checkpoint: Option<(Checkpoint, HashMap<u64, usize>)>,
    /// True if no call has changed anything since the last checkpoint began.
    nothing_new: bool,
    points: u64,
    /// Number of reads of names that had contents at the last checkpoint. The reads come after a crash that
    /// followed this checkpoint. `found` is the number of these reads that found the file.
    lookups: u64,
    found: u64,
}

fn name(number: u64) -> Vec<u8> {
    format!("http://site-{}/\0{number}", number % 7).into_bytes()
}

/// Returns contents in which the name and the number are written. Some files have several parts.
fn body(name: u64, number: u64) -> Vec<u8> {
    let mut rng = Rng::new(name << 40 | number);
    let most = if rng.chance(0.05) { 60_000 } else { 5000 };
    let mut body = [name.to_le_bytes(), number.to_le_bytes()].concat();
    for _ in 0..rng.below(most) / 8 {
        body.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    body
}

impl History {
    fn new(seed: u64) -> Self {
        let config = Config {
            pack_age: Duration::from_millis(500),
            ..config()
        };
        Self {
            harness: Harness::on(MemDisk::new(DISK, 512, seed), config, seed),
            rng: Rng::new(seed),
            states: HashMap::new(),
            number: 0,
            checkpoint: None,
            nothing_new: false,
            points: 0,
            lookups: 0,
            found: 0,
        }
    }

    fn now(&mut self, name: u64, state: Option<u64>) {
        let states = self.states.entry(name).or_insert_with(|| vec![None]);
        states.push(state);
        self.nothing_new = false;
    }

    fn call(&mut self) {
        let (fs, target) = (self.harness.fs.clone(), self.rng.below(NAMES));
        match self.rng.below(16) {
            0 => {
                let deleted = fs.delete_file(&name(target));
                assert!(matches!(deleted, Ok(()) | Err(Error::NotFound)));
                self.now(target, None);
            }
            1 | 2 => {
                // A hint changes the place of contents, but not the contents.
                let _ = fs.collocate_files(&name(self.rng.below(NAMES)), &name(target));
                self.nothing_new = false;
            }
            3 if self.checkpoint.is_none() => {
                let lengths = self.states.iter().map(|(name, s)| (*name, s.len()));
                self.checkpoint = Some((fs.begin_checkpoint(), lengths.collect()));
                self.nothing_new = true;
            }
            way => {
                self.number += 1;
                let contents = body(target, self.number);
                let written = match way {
                    4 => fs.write_nomem_file(&name(target), contents),
                    5..8 => fs.write_file_beside(&name(target), contents, &name(target % 5)),
                    _ => fs.write_file(&name(target), contents),
                };
                self.now(target, written.is_ok().then_some(self.number));
            }
        }
    }

    /// Calls `Driver::turn` once. Each disk operation of this call becomes a crash point with probability
    /// `share`. `cut` tests a crash point in several ways.
    fn turn(&mut self, share: f64) {
        self.harness.disk.set_step(true);
        self.harness.clock.advance(Duration::from_millis(100));
        self.harness.driver.turn();
        while let Some(op) = self.harness.disk.held().first().cloned() {
            if self.rng.chance(share) {
                self.cut();
            }
            self.harness.disk.release(op.id);
        }
        let ended = self.checkpoint.take_if(|(c, _)| c.is_done());
        let Some((checkpoint, lengths)) = ended else {
            return;
        };
        checkpoint.wait().unwrap();
        for (name, length) in lengths {
            if let Some(states) = self.states.get_mut(&name) {
                states.drain(..length - 1);
            }
        }
        if self.nothing_new {
            // Everything is durable, so a cut may lose only files that were dropped when their space was
            // reused.
            let again = self.harness.crash(Keep::Nothing);
            for (number, states) in &self.states {
                if states.last().is_some_and(Option::is_some) {
                    self.lookups += 1;
                    self.found += u64::from(again.read(&name(*number)).is_some());
                }
            }
            self.check(&again, false, "after a checkpoint");
        }
    }

    fn cut(&mut self) {
        self.after(Keep::All, true, "a kill");
        self.after(Keep::Nothing, false, "nothing kept");
        let seed = self.rng.next_u64();
        self.after(Keep::Random(seed), false, "writes or blocks at random");
        let mut rng = self.rng.fork("sectors");
        let mut torn = |_: &Unsynced, _: u64| rng.chance(0.5);
        self.after(Keep::Sectors(&mut torn), false, "sectors at random");
    }

    fn after(&mut self, keep: Keep<'_>, kill: bool, what: &str) {
        self.points += 1;
        let again = self.harness.crash(keep);
        self.check(&again, kill, what);
    }

    fn check(&self, again: &Harness, kill: bool, what: &str) {
        for number in 0..NAMES {
            let Some(file) = again.read(&name(number)) else {
                continue;
            };
            let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
            assert_eq!(word(0), number, "{what}: another name's contents");
            assert_eq!(file, body(number, word(8)), "{what}: other bytes");
            let states = self.states.get(&number).map_or(&[][..], Vec::as_slice);
            let states = if kill {
                &states[states.len().saturating_sub(1)..]
            } else {
                states
            };
            let allowed = states.contains(&Some(word(8)));
            assert!(
                allowed,
                "{what}: {number} gave {}, not of {states:?}",
                word(8)
            );
        }
    }

    /// Makes calls of the library and iterations of the driver until there were `points` crash points.
    fn run(&mut self, points: u64, share: f64) {
        while self.points < points {
            for _ in 0..self.rng.below(12) {
                self.call();
            }
            for _ in 0..1 + self.rng.below(3) {
                self.turn(share);
            }
        }
    }
}

/// Usually tests 300 crash points in two histories; with `FOXY_LONG`, 10,000 in twenty histories.
#[test]
fn no_crash_gives_older_or_other_contents() {
    let long = std::env::var_os("FOXY_LONG").is_some();
    let (seeds, points) = if long { (20, 500) } else { (2, 150) };
    let (mut all, mut lookups, mut found) = (0, 0, 0);
    for seed in 1..=seeds {
        println!("seed {seed}");
        let mut history = History::new(seed);
        history.run(points, 0.2);
        all += history.points;
        lookups += history.lookups;
        found += history.found;
    }
    println!("{all} crash points; {found} of {lookups} files found after a checkpoint");
    assert!(all >= seeds * points);
    // Without this check, a library that forgets every file would pass.
    assert!(
        lookups > 20 && found * 100 > lookups * 80,
        "{found} of {lookups}"
    );
}
