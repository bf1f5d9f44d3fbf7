//! The object store: RAM tier, write path, read path, recovery and reuse of space.
//!
//! It promises: a lookup returns the latest version stored under a key that was not superseded
//! or purged, or a miss; never an earlier one, never other bytes. It may forget. Trouble with a
//! disk is never an error to a request. Memory and space stay within what was configured.
//!
//! It is *driven*: no thread of its own outlives a call (while summaries are loaded, a second one
//! may help for one step), and it has no runtime. [`Engine`] is shared by all threads;
//! each store's [`Writer`] is driven by one thread that calls [`Writer::turn`]; disk reads are
//! carried out by the caller, with a queue of its own ([`Reads::open_reads`]).

mod admit;
mod around;
mod away;
mod catalogue;
mod company;
mod condition;
mod drain;
mod engine;
mod fleet;
mod gate;
mod gone;
mod hold;
mod inbox;
mod lookup;
mod lookups;
mod membership;
mod memory;
mod object;
mod offline;
mod options;
mod pressure;
mod purge;
mod puts;
mod reads;
mod recovery;
mod registry;
mod removals;
mod routes;
mod scrub;
mod shard;
mod shared;
mod spot;
mod stats;
mod ticket;
mod trust;
mod weight;
mod writer;

#[cfg(test)]
mod tests;

pub use drain::{Drain, DrainStep};
pub use engine::{Engine, INDEX_PAGES};
pub use fleet::{DutyError, Fleet};
pub use foxy_policy::AdmissionRule;
pub use foxy_policy::{Backlog, Device};
pub use gate::{AdmissionConfig, GATE_MEMORY_PART};
pub use lookup::{Admission, DropReason, Lookup, Put, ReadMiss, ReadPlan, StoreId};
pub use lookups::{DiskPlace, Peek};
pub use object::{MAX_KEY_BYTES, NewObject, Object, ObjectMeta};
pub use offline::{
    Inspection, OfflineError, SegmentReport, SegmentWord, Verification, inspect, verify,
};
pub use options::{EngineConfig, OpenError, StoreOptions};
#[cfg(any(test, feature = "fuzz"))]
pub use purge::fuzzing;
pub use purge::{
    KeyParts, Place, Places, Purge, PurgeError, PurgeKind, PurgeStatus, Purges, Sweep, SweepStep,
    Walk, WalkStep, Walked, for_each_tag,
};
pub use puts::{FragmentPut, LargePut, NewLarge, Stored};
pub use reads::{ReadMode, Reads};
pub use recovery::identity;
pub use scrub::{Scrub, ScrubStep};
pub use stats::{Duty, EngineCounts, Health, MemoryShares, OneStoreStats, StoreCounts, StoreStats};
pub use ticket::{Durable, SyncTicket};
pub use writer::{GrowError, Grown, Turn, WakeHandle, Writer};
