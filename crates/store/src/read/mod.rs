//! Lookups, and the reads that they ask for: their order at the disk, and the objects that their bytes
//! become.
//!
//! Uses `purge`, `removal` and the rooms below them.
//!
//! | file | has |
//! |---|---|
//! | `keys` | the hash of keys |
//! | `lookups` | what memory says of a key, and where to read it if it is on a disk |
//! | `peek` | looks that count nothing and mark nothing as used |
//! | `finish` | checks what was read, and takes the object into the RAM tier |
//! | `queue` | the read queue of one thread |
//! | `neighbours` | longer reads that bring the neighbours of an object along |
//!
//! Reads go to a store's disk as they come, or sorted if the disk rotates.
//! Every thread has a queue of its own. It hands reads on as they come, and times some of them
//! ([`ReadGauge`](foxy_policy::ReadGauge)); once a disk turns out to rotate, reads of all threads
//! gather in one place while the head is at work. A thread that finds the disk idle takes all of
//! them, sorts them in elevator order, joins neighbours, and carries them out. It hands the reads of
//! other threads over when they have ended. No read ever waits while the disk is idle, so neither a
//! timeout nor a thread of its own is needed.

mod finish;
mod keys;
mod lookups;
mod neighbours;
mod peek;
mod queue;

use std::sync::Arc;

use foxy_base::Clock;

pub use self::keys::Keys;
pub(crate) use self::neighbours::Neighbours;
pub use self::peek::{DiskPlace, Peek};
use crate::interface::EngineCounters;
use crate::memory::{Ground, Holds, MemoryBudget, Tables};
use crate::purge::Purges;
use crate::removal::Catalogue;
use crate::shared::Registry;

/// Lookups of all threads, the reads that they ask for, and what follows when one is done. Each plan of
/// a lookup ends in one of the functions in `finish`.
#[derive(Debug)]
pub struct Reads {
    keys: Arc<Keys>,
    tables: Tables,
    open: Arc<Registry>,
    catalogue: Arc<Catalogue>,
    purges: Arc<Purges>,
    neighbours: Arc<Neighbours>,
    budget: Arc<MemoryBudget>,
    holds: Holds,
    clock: Arc<dyn Clock>,
    counters: Arc<EngineCounters>,
}

impl Reads {
    pub(crate) fn new(
        ground: &Ground,
        keys: &Arc<Keys>,
        catalogue: &Arc<Catalogue>,
        purges: &Arc<Purges>,
        neighbours: &Arc<Neighbours>,
    ) -> Self {
        Self {
            keys: Arc::clone(keys),
            tables: ground.tables.clone(),
            open: Arc::clone(ground.fleet.registry()),
            catalogue: Arc::clone(catalogue),
            purges: Arc::clone(purges),
            neighbours: Arc::clone(neighbours),
            budget: Arc::clone(&ground.budget),
            holds: ground.holds.clone(),
            clock: Arc::clone(&ground.clock),
            counters: Arc::clone(&ground.counters),
        }
    }
}
