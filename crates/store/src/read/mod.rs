//! Lookups and the reads that they request: the order of reads at the disk, and the objects that are
//! made of the bytes.
//!
//! This module uses `purge`, `removal` and the modules below them.
//!
//! | file | has |
//! |---|---|
//! | `keys` | the hash of keys |
//! | `lookups` | what memory knows about a key, and where to read its record if the record is on a disk |
//! | `peek` | lookups that change no counter and mark nothing as used |
//! | `finish` | checks what was read, and takes the object into the RAM tier |
//! | `queue` | the read queue of one thread |
//! | `neighbours` | longer reads that include the neighbours of an object |
//!
//! The reads go to a store's disk in the order in which they arrive, or sorted if the disk rotates. Every
//! thread has its own queue. The queue passes reads on in the order in which they arrive. To find out the
//! kind of the disk, it times some of them ([`ReadGauge`](foxy_policy::ReadGauge)). Once a disk proves to be
//! a rotating disk, the reads of all threads gather in one place while the disk is busy. A thread that finds
//! the disk idle takes all gathered reads, sorts them by their positions on the disk (elevator order), joins
//! reads that are close together, and carries the reads out. It passes the bytes of other threads' reads to
//! those threads when the reads have ended. No read ever waits while the disk is idle, so sorting needs
//! neither a timeout nor a separate thread.

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
use crate::memory::{EngineCore, Holds, MemoryBudget, Tables};
use crate::purge::Purges;
use crate::removal::Catalogue;
use crate::shared::Registry;

/// The lookups of all threads, the reads that they request, and the steps after the end of a read. The caller
/// passes each [`crate::ReadPlan`] that a lookup returns to one of the functions in `finish`.
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
        core: &EngineCore,
        keys: &Arc<Keys>,
        catalogue: &Arc<Catalogue>,
        purges: &Arc<Purges>,
        neighbours: &Arc<Neighbours>,
    ) -> Self {
        Self {
            keys: Arc::clone(keys),
            tables: core.tables.clone(),
            open: Arc::clone(core.fleet.registry()),
            catalogue: Arc::clone(catalogue),
            purges: Arc::clone(purges),
            neighbours: Arc::clone(neighbours),
            budget: Arc::clone(&core.budget),
            holds: core.holds.clone(),
            clock: Arc::clone(&core.clock),
            counters: Arc::clone(&core.counters),
        }
    }
}
