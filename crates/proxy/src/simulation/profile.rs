//! Kinds of trouble in a history.

use super::content::PAGES;
use foxy_base::Rng;
use foxy_disk::{Fault, FaultPlan, FaultRule, OpClass};

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
        let none = Self {
            network: false,
            disk: DiskTrouble::None,
            ends: Ends::None,
            short: false,
            workers: [2, 1, 3][(round % 3) as usize],
            stores,
            moves: stores > 1,
            memory: [512 << 10, 2 << 20][rng.below(2) as usize],
            hot: rng.below(PAGES.len() as u64) as usize,
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
