//! The rule that decides which stores are trusted when several stores are opened at a start.
//!
//! A store records on its disk the company in which it was open. The record has three parts: an *epoch*,
//! which increases whenever a different set of stores is open together; the members; and the members at
//! earlier epochs. Every store records a new company before anything is stored under it. If two stores
//! record different companies, one store was missing in a run of the other store, and cannot know what was
//! removed or replaced in that run:
//!
//! - If store A records the present company of store B as a past company, B was missing in a later run: B
//!   begins empty.
//! - If neither store records the present company of the other store as a past company, but both record the
//!   same company at a past epoch, each store ran without the other: both begin empty.
//!
//! Two stores that share no past come from different machines. Then the company of the first listed store
//! counts, and the stores that do not belong to it begin empty. If a start ends while the stores record
//! their new company one by one, nothing was stored under that company. The next start of the same stores
//! detects this, and trusts all of them.

use foxy_base::{hash64, rule};
use foxy_format::{Company, FORMER_MAX, StoreUuid, Superblock};

/// The relation of a company to an earlier company, or to another company of the same epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    /// The newer company continues the older company: it records the members of the older company at the
    /// older company's epoch.
    Own,
    /// Both companies continue one earlier company, but the newer company does not continue the older one.
    /// This is also assumed if the newer company does not record enough epochs to exclude it.
    Shared,
    /// The two companies have no earlier company in common.
    None,
}

/// Returns a hash that identifies a set of stores. It does not depend on the order of the stores.
pub(crate) fn members(uuids: impl Iterator<Item = StoreUuid>) -> u64 {
    let mut uuids: Vec<_> = uuids.map(|uuid| uuid.0).collect();
    uuids.sort_unstable();
    hash64(0, uuids.as_flattened())
}

/// Returns the company that follows the company `of`: it has the next epoch and these members.
fn next(of: &Company, members: u64) -> Company {
    let mut former = [0; FORMER_MAX];
    former[0] = of.members;
    former[1..].copy_from_slice(&of.former[..FORMER_MAX - 1]);
    Company {
        epoch: of.epoch + 1,
        members,
        former,
    }
}

/// Returns the hash of the members at `epoch`, if the company `of` records this epoch.
fn at(of: &Company, epoch: u64) -> Option<u64> {
    match of.epoch.checked_sub(epoch)? {
        0 => Some(of.members),
        back => of.former.get(back as usize - 1).copied(),
    }
}

fn past(newer: &Company, older: &Company) -> Past {
    if at(newer, older.epoch) == Some(older.members) {
        return Past::Own;
    }
    let first = newer.epoch.saturating_sub(FORMER_MAX as u64).max(1);
    let met = |epoch: u64| at(older, epoch).is_some_and(|m| at(newer, epoch) == Some(m));
    let shared = (first..=older.epoch).any(met);
    // If the newer company does not record all epochs from 1 on, an epoch that it does not record may be
    // shared.
    match shared || first > 1 {
        true => Past::Shared,
        false => Past::None,
    }
}

/// The company of the stores of an engine, as the stores record it on their disks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Circle {
    /// The company that the trusted stores record.
    now: Company,
    /// True if a start may have been interrupted while its stores recorded `now` one by one. Then stores
    /// that still record the company before `now` are trusted, too.
    interrupted: bool,
}

impl Circle {
    /// Makes the circle of the stores that are opened at a start, from their superblocks. `all` is true if
    /// every disk of the start has a superblock in `found`.
    pub(crate) fn meet(found: &[Superblock], all: bool) -> Self {
        let mut said = found.iter().map(|s| s.company).filter(|c| c.epoch > 0);
        let Some(mut now) = said.next() else {
            return Self::default();
        };
        let mut parted = false;
        for one in said {
            let (newer, older) = match one.epoch > now.epoch {
                true => (one, now),
                false => (now, one),
            };
            match past(&newer, &older) {
                Past::None => continue,
                Past::Shared => {
                    parted = rule!(
                        "company: stores that served apart both begin empty",
                        true,
                        parted
                    );
                }
                Past::Own => {}
            }
            now = newer;
        }
        if parted {
            // No store records the company that is made here, so no store is trusted.
            now = next(&now, hash64(1, &now.members.to_le_bytes()));
        }
        Self {
            now,
            interrupted: rule!(
                "company: a start was cut short only if all of its stores are there",
                all,
                true
            ) && now.members == members(found.iter().map(|s| s.uuid)),
        }
    }

    /// Returns the company that the stores record now.
    pub(crate) const fn now(&self) -> &Company {
        &self.now
    }

    /// Returns whether the contents of a store that records this company are trusted.
    pub(crate) fn believes(&self, said: &Company) -> bool {
        rule!(
            "company: a store that was not there is not believed",
            *said == self.now,
            true
        ) || rule!(
            "company: a start that was cut short costs nobody its contents",
            self.interrupted && next(said, self.now.members) == self.now,
            false
        )
    }

    /// Notes that these stores are open together from now on. Returns the company that they must record.
    pub(crate) fn renew(&mut self, uuids: impl Iterator<Item = StoreUuid>) -> Company {
        let members = members(uuids);
        if self.now.epoch == 0 || self.now.members != members {
            self.now = next(&self.now, members);
        }
        self.interrupted = false;
        self.now
    }

    /// If the circle has no company yet, it takes over the company that the engine's first store records
    /// (`said`).
    pub(crate) fn begin(&mut self, said: &Company) {
        if self.now.epoch == 0 {
            self.now = *said;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_format::{Geometry, LogPosition};

    fn says(company: Company, uuid: u8) -> Superblock {
        Superblock {
            extensions: 0,
            generation: 1,
            uuid: StoreUuid([uuid; 16]),
            geometry: Geometry::fit(1 << 24, 64 << 10, 16 << 10, 512).unwrap(),
            floor: LogPosition(0),
            company,
            quarantine: Vec::new(),
            seed: foxy_base::KeySeed::default(),
        }
    }

    /// A start ended before the second of two stores had recorded the new company. If the next start has one
    /// more disk, which contains no store, it does not count as a repetition of the first start. Then the
    /// second store is not trusted.
    #[test]
    fn a_start_was_cut_short_only_if_the_same_disks_are_there() {
        let before = Company {
            epoch: 1,
            members: 7,
            ..Company::default()
        };
        let both = members([StoreUuid([1; 16]), StoreUuid([2; 16])].into_iter());
        let found = [says(next(&before, both), 1), says(before, 2)];
        assert!(Circle::meet(&found, true).believes(&before));
        assert!(!Circle::meet(&found, false).believes(&before));
    }
}
