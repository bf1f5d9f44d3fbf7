//! Kinds of trouble in a history.

use std::time::Duration;

use foxy_base::Rng;
use foxy_disk::{Fault, FaultPlan, FaultRule, OpClass};

use super::content::{LONG_PAGES, PAGES};

/// Faults of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiskTrouble {
    None,
    /// Reported by the disk.
    Honest,
    /// Also such as the disk says nothing about.
    Any,
}

/// Ends of a life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// One life.
    None,
    Kills,
    /// Kills and power cuts.
    PowerCuts,
}

/// The trouble of one history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profile {
    /// Cuts, resets and refusals of the network, and failures of the origin.
    pub(super) network: bool,
    pub(super) disk: DiskTrouble,
    pub(super) ends: Ends,
    /// Little memory for requests.
    pub(super) short: bool,
    pub(super) workers: usize,
    pub(super) stores: usize,
    /// Stores are taken out, put back, drained and made longer.
    pub(super) moves: bool,
    /// Settings are reloaded.
    pub(super) reloads: bool,
    /// Sites beside the forward proxy.
    pub(super) sites: bool,
    /// Long bodies, small windows of fetches, and large fragments.
    pub(super) wide: bool,
    /// Memory of the engine, in bytes.
    pub(super) memory: u64,
    /// The first of the pages that are asked for most.
    pub(super) hot: usize,
}

impl Profile {
    pub(super) fn of(seed: u64, rng: &mut Rng) -> Self {
        // The kinds of trouble come round every eight seeds, and these numbers have no divisor in common:
        // everything meets everything.
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

    /// The lives of a process that ends. What a store brings back that was not there in a life must still be
    /// fresh, so lives are short where stores come and go.
    pub(super) fn lives(&self, rng: &mut Rng) -> u64 {
        match self.moves {
            true => 4 + rng.below(5),
            false => 2 + rng.below(3),
        }
    }

    /// The length of such a life.
    pub(super) fn life(&self, rng: &mut Rng) -> Duration {
        let most = match (self.moves, rng.below(3)) {
            (_, 0) => 3000,
            (true, _) => 9000,
            (false, _) => 30_000,
        };
        Duration::from_millis(rng.below(most))
    }

    /// A page, most often one of those that are hot in this history.
    pub(super) fn page(&self, rng: &mut Rng) -> usize {
        if self.wide && rng.chance(0.35) {
            return PAGES.len() - 1 - rng.below(LONG_PAGES as u64) as usize;
        }
        let most = (PAGES.len() - LONG_PAGES) as u64;
        // Few pages: otherwise no client requests an object that a store brings back.
        let hot = if self.moves { 0.8 } else { 0.5 };
        match rng.chance(hot) {
            true => (self.hot + rng.below(6) as usize) % most as usize,
            false => rng.below(most) as usize,
        }
    }

    /// Bytes of a segment, of a cluster and of the summary of a segment. Followers of a fetch read back from
    /// the store only what is stored in fragments of at least 64 KiB.
    pub(super) const fn geometry(&self) -> (u32, u32, u32) {
        match self.wide {
            true => (272 << 10, 136 << 10, 24 << 10),
            false => (64 << 10, 16 << 10, 4 << 10),
        }
    }

    /// True if a well-behaved request may fail.
    pub(super) fn may_fail(&self) -> bool {
        self.network || self.short
    }

    /// The faults of a life's disk.
    pub(super) fn faults(&self, rng: &mut Rng) -> FaultPlan {
        let honest = [
            (OpClass::Any, Fault::EIO),
            (OpClass::Write, Fault::ENOSPC),
            (OpClass::Write, Fault::TornError),
            (OpClass::Read, Fault::Short(512)),
            (OpClass::Any, Fault::Looks(3)),
        ];
        // None of these undoes a removal together with a kill: a kill loses no write.
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
