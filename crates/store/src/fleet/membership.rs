//! The rule that decides which stores are trusted when several stores are opened at a start.
//!
//! The *store set* is the set of stores that are open together. Each store records it on its disk, in a
//! *membership record* with three parts: an *epoch*, which increases whenever a different set of stores is
//! open together; the members; and the members at earlier epochs. Every store records a new membership before
//! anything is stored under it. If two stores record different memberships, one store was missing in a run of
//! the other store, and cannot know what was removed or replaced in that run:
//!
//! - If the present membership of store B is among the past memberships that store A records, A later ran
//!   without B. So B begins empty.
//! - Otherwise, if A and B record the same membership for a past epoch, each of them ran without the other
//!   after that epoch. So both begin empty.
//!
//! Two stores that share no past come from different machines. Then the membership of the first listed store
//! is trusted, and the stores that do not belong to its store set begin empty. If a start is interrupted
//! while the stores record their new membership one by one, nothing was stored under that membership. The
//! next start of the same stores detects this, and trusts all of them.

use foxy_base::{hash64, rule};
use foxy_format::{FORMER_MAX, Membership, StoreUuid, Superblock};

/// The relation of a membership to an earlier membership, or to another membership of the same epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    /// The newer membership continues the older one: for the epoch of the older membership, it records the
    /// same members.
    Own,
    /// The newer membership does not continue the older one, but both continue a third membership, which is
    /// earlier than the two. If the newer membership records too few epochs to exclude such a third
    /// membership, this relation is assumed too.
    Shared,
    /// The two memberships have no earlier membership in common.
    None,
}

/// Returns a hash that identifies a set of stores. It does not depend on the order of the stores.
pub(crate) fn members(uuids: impl Iterator<Item = StoreUuid>) -> u64 {
    let mut uuids: Vec<_> = uuids.map(|uuid| uuid.0).collect();
    uuids.sort_unstable();
    hash64(0, uuids.as_flattened())
}

/// Returns the membership that follows the membership `of`: it has the next epoch and these members.
fn next(of: &Membership, members: u64) -> Membership {
    let mut former = [0; FORMER_MAX];
    former[0] = of.members;
    former[1..].copy_from_slice(&of.former[..FORMER_MAX - 1]);
    Membership {
        epoch: of.epoch + 1,
        members,
        former,
    }
}

/// Returns the hash of the members at `epoch`, if the membership `of` records this epoch.
fn at(of: &Membership, epoch: u64) -> Option<u64> {
    match of.epoch.checked_sub(epoch)? {
        0 => Some(of.members),
        back => of.former.get(back as usize - 1).copied(),
    }
}

fn past(newer: &Membership, older: &Membership) -> Past {
    if at(newer, older.epoch) == Some(older.members) {
        return Past::Own;
    }
    let first = newer.epoch.saturating_sub(FORMER_MAX as u64).max(1);
    let met = |epoch: u64| at(older, epoch).is_some_and(|m| at(newer, epoch) == Some(m));
    let shared = (first..=older.epoch).any(met);
    // If the newer membership does not record all epochs from 1 on, an epoch that it does not record may be
    // shared.
    match shared || first > 1 {
        true => Past::Shared,
        false => Past::None,
    }
}

/// The membership that the trusted stores of an engine record on their disks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrustedMembership {
    /// The newest membership that the trusted stores record.
    now: Membership,
    /// True if a start may have been interrupted while its stores recorded `now` one by one. Then stores
    /// that still record the membership before `now` are trusted, too.
    interrupted: bool,
}

impl TrustedMembership {
    /// Finds the trusted membership from the superblocks of the stores that are opened at a start. `all` is
    /// true if every disk of the start has a superblock in `found`.
    pub(crate) fn find(found: &[Superblock], all: bool) -> Self {
        let mut recorded = found.iter().map(|s| s.membership).filter(|c| c.epoch > 0);
        let Some(mut now) = recorded.next() else {
            return Self::default();
        };
        let mut parted = false;
        for one in recorded {
            let (newer, older) = match one.epoch > now.epoch {
                true => (one, now),
                false => (now, one),
            };
            match past(&newer, &older) {
                Past::None => continue,
                Past::Shared => {
                    parted = rule!(
                        "membership: stores that served apart both begin empty",
                        true,
                        parted
                    );
                }
                Past::Own => {}
            }
            now = newer;
        }
        if parted {
            // No store records the membership that is made here, so no store is trusted.
            now = next(&now, hash64(1, &now.members.to_le_bytes()));
        }
        Self {
            now,
            interrupted: rule!(
                "membership: a start was cut short only if all of its stores are there",
                all,
                true
            ) && now.members == members(found.iter().map(|s| s.uuid)),
        }
    }

    /// Returns the membership that the stores record now.
    pub(crate) const fn now(&self) -> &Membership {
        &self.now
    }

    /// Returns whether the contents of a store that records this membership are trusted.
    pub(crate) fn trusts(&self, recorded: &Membership) -> bool {
        rule!(
            "membership: a store that was not there is not trusted",
            *recorded == self.now,
            true
        ) || rule!(
            "membership: a start that was cut short costs nobody its contents",
            self.interrupted && next(recorded, self.now.members) == self.now,
            false
        )
    }

    /// Notes that these stores are open together from now on. Returns the membership that they must record.
    pub(crate) fn renew(&mut self, uuids: impl Iterator<Item = StoreUuid>) -> Membership {
        let members = members(uuids);
        if self.now.epoch == 0 || self.now.members != members {
            self.now = next(&self.now, members);
        }
        self.interrupted = false;
        self.now
    }

    /// If no membership is known yet, takes over the membership that the engine's first store records
    /// (`recorded`).
    pub(crate) fn begin(&mut self, recorded: &Membership) {
        if self.now.epoch == 0 {
            self.now = *recorded;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_format::{Geometry, LogPosition};

    fn superblock(membership: Membership, uuid: u8) -> Superblock {
        Superblock {
            extensions: 0,
            generation: 1,
            uuid: StoreUuid([uuid; 16]),
            geometry: Geometry::fit(1 << 24, 64 << 10, 16 << 10, 512).unwrap(),
            floor: LogPosition(0),
            membership,
            quarantine: Vec::new(),
            seed: foxy_base::KeySeed::default(),
        }
    }

    /// A start was interrupted before the second of two stores had recorded the new membership. The next
    /// start has one more disk, which contains no store. So the next start does not count as a repetition of
    /// the first start, and the second store is not trusted.
    #[test]
    fn a_start_was_cut_short_only_if_the_same_disks_are_there() {
        let before = Membership {
            epoch: 1,
            members: 7,
            ..Membership::default()
        };
        let both = members([StoreUuid([1; 16]), StoreUuid([2; 16])].into_iter());
        let found = [superblock(next(&before, both), 1), superblock(before, 2)];
        assert!(TrustedMembership::find(&found, true).trusts(&before));
        assert!(!TrustedMembership::find(&found, false).trusts(&before));
    }
}
