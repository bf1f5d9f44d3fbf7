//! The profile of a history (one run of the simulation): the kinds of faults that occur in it, and its other
//! properties.

use std::time::Duration;

use foxy_base::Rng;
use foxy_disk::{Fault, FaultPlan, FaultRule, OpClass};

use super::content::{LONG_PAGES, PAGES};

/// Faults of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiskTrouble {
    None,
    /// The disk reports each fault.
    Honest,
    /// The disk does not report some of its faults.
    Any,
}

/// The ways in which a life of the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// The process has only one life.
    None,
    Kills,
    /// The process is killed or loses power.
    PowerCuts,
}

/// The faults and other properties of one history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profile {
    /// True if the network cuts, resets and refuses connections, and the origin fails.
    pub(super) network: bool,
    pub(super) disk: DiskTrouble,
    pub(super) ends: Ends,
    /// True if there is little memory for requests.
    pub(super) short: bool,
    pub(super) workers: usize,
    pub(super) stores: usize,
    /// True if stores are taken out, put back, drained and grown.
    pub(super) moves: bool,
    /// True if settings are reloaded.
    pub(super) reloads: bool,
    /// True if there are sites in addition to the forward proxy.
    pub(super) sites: bool,
    /// True if there are long bodies, small windows of fetches (buffers for their readers), and large
    /// fragments.
    pub(super) wide: bool,
    /// Memory of the engine, in bytes.
    pub(super) memory: u64,
    /// Index of the first hot page. Hot pages are the pages that are requested most often.
    pub(super) hot: usize,
}

impl Profile {
    pub(super) fn of(seed: u64, rng: &mut Rng) -> Self {
        // The kinds of faults repeat every eight seeds. Eight seeds are a round. The other properties repeat
        // after 2, 3, 5, 7 and 11 rounds. These numbers have no common divisor, so all combinations occur.
        let round = seed / 8;
        let stores = 1 + usize::from(round % 2 == 1);
        let wide = matches!(round % 11, 3 | 6 | 8);
        let none = Self {
            network: false,
            disk: DiskTrouble::None,
            ends: Ends::None,
            short: false,
            workers: [2, 1, 3][(round % 3) as usize],
            stores,
            moves: stores > 1,
            reloads: matches!(round % 5, 1 | 2),
            sites: matches!(round % 7, 1 | 3 | 5),
            wide,
            memory: match wide {
                true => 4 << 20,
                false => [512 << 10, 2 << 20][rng.below(2) as usize],
            },
            hot: rng.below((PAGES.len() - LONG_PAGES) as u64) as usize,
        };
        match seed % 8 {
            0 => none,
            1 => Self {
                disk: DiskTrouble::Any,
                ..none
            },
            2 | 3 => Self {
                network: true,
                ..none
            },
            4 => Self {
                ends: Ends::Kills,
                ..none
            },
            5 => Self {
                ends: Ends::PowerCuts,
                ..none
            },
            6 => Self {
                network: true,
                disk: DiskTrouble::Honest,
                ends: Ends::PowerCuts,
                ..none
            },
            _ => Self {
                network: true,
                disk: DiskTrouble::Any,
                ends: Ends::Kills,
                short: true,
                ..none
            },
        }
    }

    /// Returns the number of lives of the process, for histories in which the process ends. If stores are
    /// taken out and put back, there are more lives, because a store may be missing during a complete life.
    /// Each life is shorter, so that the objects of this store are still fresh when it is put back.
    pub(super) fn lives(&self, rng: &mut Rng) -> u64 {
        match self.moves {
            true => 4 + rng.below(5),
            false => 2 + rng.below(3),
        }
    }

    /// Returns the duration of one life of the process, for histories in which the process ends.
    pub(super) fn life(&self, rng: &mut Rng) -> Duration {
        let most = match (self.moves, rng.below(3)) {
            (_, 0) => 3000,
            (true, _) => 9000,
            (false, _) => 30_000,
        };
        Duration::from_millis(rng.below(most))
    }

    /// Chooses a page. Most often it is one of the few pages that are hot (often requested) in this history.
    pub(super) fn page(&self, rng: &mut Rng) -> usize {
        if self.wide && rng.chance(0.35) {
            return PAGES.len() - 1 - rng.below(LONG_PAGES as u64) as usize;
        }
        let most = (PAGES.len() - LONG_PAGES) as u64;
        // If stores move, most requests are for the few hot pages. Otherwise no client would request an
        // object of a store that was put back.
        let hot = if self.moves { 0.8 } else { 0.5 };
        match rng.chance(hot) {
            true => (self.hot + rng.below(6) as usize) % most as usize,
            false => rng.below(most) as usize,
        }
    }

    /// Returns the sizes in bytes of a segment, a cluster and the summary of a segment. The size of fragments
    /// depends on them. If fragments have less than 64 KiB, a client that is late in a shared fetch cannot
    /// read its missing bytes from the store.
    pub(super) const fn geometry(&self) -> (u32, u32, u32) {
        match self.wide {
            true => (272 << 10, 136 << 10, 24 << 10),
            false => (64 << 10, 16 << 10, 4 << 10),
        }
    }

    /// Returns true if a well-behaved request may fail.
    pub(super) fn may_fail(&self) -> bool {
        self.network || self.short
    }

    /// Returns the faults of the disk in a life.
    pub(super) fn faults(&self, rng: &mut Rng) -> FaultPlan {
        let honest = [
            (OpClass::Any, Fault::EIO),
            (OpClass::Write, Fault::ENOSPC),
            (OpClass::Write, Fault::TornError),
            (OpClass::Read, Fault::Short(512)),
            (OpClass::Any, Fault::Looks(3)),
        ];
        // These faults never occur together with power failures, only with kills or in histories with one
        // life. A kill loses no write, so none of these faults undoes a removal.
        let silent = [
            (OpClass::Read, Fault::BitRot(1)),
            (OpClass::Read, Fault::Misdirected(24 << 10)),
            (OpClass::Read, Fault::Stuck),
        ];
        let mut plan = FaultPlan::none();
        let kinds: Vec<_> = match self.disk {
            DiskTrouble::None => return plan,
            DiskTrouble::Honest => honest.to_vec(),
            DiskTrouble::Any => honest.into_iter().chain(silent).collect(),
        };
        for (class, fault) in kinds {
            if rng.chance(0.5) {
                let rule = FaultRule::new(class, fault).after(rng.below(200));
                let chance = [0.01, 0.1, 0.5][rng.below(3) as usize];
                plan = plan.and(rule.times(1 + rng.below(6)).chance(chance));
            }
        }
        plan
    }
}
