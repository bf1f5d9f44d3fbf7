//! Faults inside random histories, for every fault that the [`Disk`](foxy_disk::Disk) trait defines.
//!
//! - One test puts one fault into a history, at every operation in turn. It checks that the fault undoes no
//!   removal that was acknowledged or is older than [`LIMIT`].
//! - The other test puts many faults into a history. For every removed version that returns, it leaves out
//!   one fault after the other, until it has the smallest set of faults that causes the return. A single
//!   fault must not be enough.
//!
//! In both tests, a lookup never returns other bytes than were stored under its key.

mod bench;
mod history;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use foxy_base::Rng;
use foxy_disk::Fault;

use self::history::{History, Hit, SESSIONS, Seen};

/// One fault must not undo a removal that is older than this limit. The limit is the sync interval plus the
/// time of the flushes that cover the removal.
const LIMIT: Duration = Duration::from_secs(3);

/// Faults that the disk does not report. After one of these, a power cut would count as a second fault.
const SILENT: [Fault; 6] = [
    Fault::Torn,
    Fault::Lost,
    Fault::Misdirected(24 << 10),
    Fault::Late(3),
    Fault::BitRot(1),
    Fault::FlushLies,
];
const HONEST: [Fault; 7] = [
    Fault::EIO,
    Fault::ENOSPC,
    Fault::Short(1024),
    Fault::TornError,
    Fault::Looks(3),
    Fault::Delay(Duration::from_millis(150)),
    Fault::Stuck,
];

fn is_silent(fault: Fault) -> bool {
    SILENT.contains(&fault)
}

/// Tests every operation of every session, once with each fault. The ordinary run tests only a part of
/// them.
#[test]
fn one_fault_anywhere_undoes_no_removal_that_counts() {
    let (seeds, step) = match super::is_long() {
        true => (0..6, 1),
        false => (0..2, 23),
    };
    let (mut runs, mut faults, mut young, mut given) = (0, 0, 0, 0);
    let mut wrong = BTreeMap::new();
    for seed in seeds {
        let clean = History::short(seed).run();
        assert!(clean.returns.is_empty(), "seed {seed}: {:?}", clean.returns);
        assert!(clean.given > 40, "seed {seed}: {}", clean.given);
        assert!(!clean.refused);
        for (number, fault) in SILENT.into_iter().chain(HONEST).enumerate() {
            for (session, operations) in clean.operations.iter().enumerate() {
                let first = (number as u64 * 5 + seed) % step;
                for at in (first..*operations).step_by(step as usize) {
                    let hit = Hit { session, at, fault };
                    let history = History {
                        hits: vec![hit],
                        // A session ends by a power cut only if that does not count as a second fault.
                        cuts: [!is_silent(fault) && at % 2 == 0; SESSIONS],
                        ..History::short(seed)
                    };
                    let seen = history.run();
                    if !seen.returns.is_empty() {
                        let first = format!("first: seed {seed}, {hit:?}: {:?}", seen.returns);
                        wrong.entry(history.name()).or_insert((0, first)).0 += 1;
                    }
                    runs += 1;
                    faults += seen.faults;
                    young += seen.young;
                    given += seen.given;
                }
            }
        }
    }
    println!(
        "{runs} histories with one fault ({faults} met): {given} answers, {young} young removals undone"
    );
    assert!(wrong.is_empty(), "one fault is enough: {wrong:#?}");
    assert!(faults > runs * 3 / 4, "{faults} of {runs}");
    assert!(given > runs * 25, "{given} of {runs}");
}

/// Two of a hundred operations fail. If a removed version returns, at least two faults must have caused this.
/// A power cut counts as a fault.
#[test]
fn what_many_faults_bring_back_needs_two_of_them() {
    let seeds = if super::is_long() { 10_000 } else { 250 };
    let (mut faults, mut young, mut given, mut kinds) = (0, 0, 0, BTreeMap::new());
    let mut refused = 0;
    let mut wrong = Vec::new();
    for seed in 0..seeds {
        let history = many(seed);
        let seen = history.run();
        faults += seen.faults;
        young += seen.young;
        given += seen.given;
        refused += u32::from(seen.refused);
        let Some(first) = seen.returns.first() else {
            continue;
        };
        let least = smallest(history);
        let name = least.name();
        if least.hits.len() + least.power_cuts() < 2 {
            wrong.push(format!("seed {seed}: {name}: {first:?}"));
        }
        *kinds.entry(name).or_insert(0) += 1;
    }
    let mut report = String::new();
    for (kind, count) in &kinds {
        let _ = writeln!(report, "   {count} x {kind}");
    }
    let returns: u32 = kinds.values().sum();
    println!(
        "{seeds} histories with {faults} faults: {given} answers, none wrong; {refused} ended with a store \
         that cannot be opened; {young} young removals undone; in {returns} histories more came back:\n{report}"
    );
    assert!(wrong.is_empty(), "one fault is enough: {wrong:#?}");
    assert!(given > seeds * 60 && faults > seeds * 4, "{given} {faults}");
}

fn many(seed: u64) -> History {
    let mut rng = Rng::new(seed).fork("faults");
    let mut history = History::long(seed);
    for session in 0..SESSIONS {
        history.cuts[session] = rng.chance(0.3);
        for at in 0..600 {
            if rng.chance(0.02) {
                let kinds = SILENT.len() + HONEST.len();
                let pick = rng.below(kinds as u64) as usize;
                let all = SILENT.iter().chain(&HONEST);
                if let Some(fault) = all.copied().nth(pick) {
                    history.hits.push(Hit { session, at, fault });
                }
            }
        }
    }
    history
}

/// Removes from a history each fault and each power cut that is not needed for a removed version to return.
fn smallest(mut history: History) -> History {
    let returns = |history: &History| !history.run().returns.is_empty();
    loop {
        let size = history.hits.len() + history.power_cuts();
        // Large parts are tried first.
        let mut part = history.hits.len().next_power_of_two() / 2;
        while part > 0 {
            let mut at = 0;
            while at < history.hits.len() {
                let mut less = history.clone();
                less.hits.drain(at..(at + part).min(history.hits.len()));
                if returns(&less) {
                    history = less;
                } else {
                    at += part;
                }
            }
            part /= 2;
        }
        for session in 0..SESSIONS {
            let mut less = history.clone();
            if std::mem::take(&mut less.cuts[session]) && returns(&less) {
                history = less;
            }
        }
        if history.hits.len() + history.power_cuts() == size {
            return history;
        }
    }
}

impl History {
    fn power_cuts(&self) -> usize {
        self.cuts.iter().filter(|cut| **cut).count()
    }

    /// Describes the faults by kind, and by the places where they struck.
    fn name(&self) -> String {
        let Seen { struck, .. } = self.run();
        let mut parts: Vec<_> = struck;
        parts.extend((0..self.power_cuts()).map(|_| "power cut".to_owned()));
        parts.sort_unstable();
        parts.join(" + ")
    }
}
