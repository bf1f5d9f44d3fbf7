//! Names and sizes of the loads that fill Foxy's queues, and the code that runs each load.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::clients::{Clients, Sources};
use super::fixture::Fixture;
use super::greedy::Phases;
use super::tally::Tally;
use super::{loads, objects};

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Load {
    /// 500 connections request distinct 8 KB objects
    #[value(name = "misses-8k")]
    Misses8k,
    /// 100 connections request distinct 60 KB objects
    #[value(name = "misses-60k")]
    Misses60k,
    /// 100 connections request distinct 2 MB objects
    #[value(name = "misses-2m")]
    Misses2m,
    /// 2,000 clients request stored 8 MB objects and do not read the answers
    Unread,
    /// 3,000 clients send 60 KB of a request head and never complete it
    HalfHeads,
    /// 10,000 idle connections
    Idle,
    /// 1,000 clients request one 10 MB object
    Crowd,
    /// Start with a store that has many objects
    Restart,
    /// A purge by tag removes many objects
    Purge,
    /// All of the above at once, except restart
    All,
    /// One client uses as many resources of Foxy as it can
    Greedy,
}

/// All loads in their order.
pub(super) const LOADS: [Load; 11] = [
    Load::Misses8k,
    Load::Misses60k,
    Load::Misses2m,
    Load::Unread,
    Load::HalfHeads,
    Load::Idle,
    Load::Crowd,
    Load::Restart,
    Load::Purge,
    Load::All,
    Load::Greedy,
];

/// The parts of [`Load::All`].
const PARTS: [Load; 8] = [
    Load::Misses8k,
    Load::Misses60k,
    Load::Misses2m,
    Load::Unread,
    Load::HalfHeads,
    Load::Idle,
    Load::Crowd,
    Load::Purge,
];

/// Duration and size of loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Time during which clients begin requests.
    pub(super) time: Duration,
    /// The number of clients of every load is divided by this number.
    pub(super) divisor: usize,
    /// Time from the end of a load until the resident memory is read for the last time.
    pub(super) after: Duration,
}

impl Load {
    /// Name in reports and options.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Misses8k => "misses-8k",
            Self::Misses60k => "misses-60k",
            Self::Misses2m => "misses-2m",
            Self::Unread => "unread",
            Self::HalfHeads => "half-heads",
            Self::Idle => "idle",
            Self::Crowd => "crowd",
            Self::Restart => "restart",
            Self::Purge => "purge",
            Self::All => "all",
            Self::Greedy => "greedy",
        }
    }

    /// True if the load uses the large stored objects.
    pub(super) const fn needs_large(self) -> bool {
        matches!(self, Self::Unread | Self::All | Self::Greedy)
    }

    /// True if the load begins with a store that has many objects.
    pub(super) const fn needs_objects(self) -> bool {
        matches!(self, Self::Restart | Self::Purge | Self::All)
    }

    /// Number of clients at full scale.
    const fn clients(self) -> usize {
        match self {
            Self::Misses8k => 500,
            Self::Misses60k | Self::Misses2m => 100,
            Self::Unread => 2_000,
            Self::HalfHeads => 3_000,
            Self::Idle => 10_000,
            Self::Crowd => 1_000,
            Self::Restart | Self::Purge | Self::All | Self::Greedy => 0,
        }
    }
}

/// Results of a load.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Results of well-behaved clients.
    pub(super) own: Option<Tally>,
    /// Results of clients that do not behave well, or whose results are not judged.
    pub(super) others: Tally,
    pub(super) notes: Vec<String>,
    /// Failures other than failed requests.
    pub(super) problems: Vec<String>,
    /// Phases of [`Load::Greedy`].
    pub(super) phases: Option<Phases>,
}

impl Outcome {
    /// An outcome with a note (`Ok`) or a problem (`Err`).
    pub(super) fn of(result: Result<String, String>) -> Self {
        let mut outcome = Self::default();
        match result {
            Ok(note) => outcome.notes.push(note),
            Err(problem) => outcome.problems.push(problem),
        }
        outcome
    }

    fn merge(&mut self, name: &str, part: Self) {
        if let Some(tally) = part.own {
            self.notes.push(format!("{name}: {}", tally.text()));
            self.own.get_or_insert_default().merge(tally);
        }
        self.others.merge(part.others);
        self.notes.extend(part.notes);
        self.problems.extend(part.problems);
    }
}

/// Runs one load. For [`Load::All`], runs all its parts at the same time. For [`Load::Restart`] and
/// [`Load::Greedy`], nothing happens here, because the module `run` handles these loads.
pub(super) async fn run(load: Load, fixture: &Arc<Fixture>, scale: Scale) -> Outcome {
    let until = Instant::now() + scale.time;
    if load != Load::All {
        return one(load, fixture, scale, until, load.clients()).await;
    }
    let mut outcome = Outcome::default();
    let mut running = tokio::task::JoinSet::new();
    for part in PARTS {
        // Foxy permits 16,384 connections with its defaults. All clients together must stay below this
        // number, so there are fewer idle clients here than in the load `idle` alone.
        let count = match part {
            Load::Idle => 8_500,
            _ => part.clients(),
        };
        let fixture = Arc::clone(fixture);
        running.spawn(async move { (part, one(part, &fixture, scale, until, count).await) });
    }
    while let Some(ended) = running.join_next().await {
        if let Ok((part, result)) = ended {
            outcome.merge(part.name(), result);
        }
    }
    outcome
}

async fn one(
    load: Load,
    fixture: &Arc<Fixture>,
    scale: Scale,
    until: Instant,
    count: usize,
) -> Outcome {
    let network = 10 + load as u8;
    let count = count.div_ceil(scale.divisor);
    let clients = || Clients::new(fixture, Sources::Own(network), count, until);
    let own = |tally| Outcome {
        own: Some(tally),
        ..Outcome::default()
    };
    let others = |tally| Outcome {
        others: tally,
        ..Outcome::default()
    };
    match load {
        Load::Misses8k => own(loads::misses(clients(), 8_000).await),
        Load::Misses60k => own(loads::misses(clients(), 60_000).await),
        Load::Misses2m => own(loads::misses(clients(), 2_000_000).await),
        Load::Crowd => own(loads::crowd(clients()).await),
        Load::Unread => others(loads::unread(clients()).await),
        Load::HalfHeads => others(loads::half_heads(clients()).await),
        Load::Idle => others(loads::idle(clients()).await),
        Load::Purge => Outcome::of(objects::purge(fixture).await),
        Load::Restart | Load::All | Load::Greedy => Outcome::default(),
    }
}

/// Address of the greedy client.
pub(super) const GREEDY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
