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

// Rooms in layers: `cargo xtask arrows` holds their order, docs/architecture.md says what each is for.
mod engine;
mod fleet;
mod interface;
mod maintenance;
mod memory;
mod offline;
mod purge;
mod put;
mod read;
mod recovery;
mod removal;
mod shared;
mod writer;

#[cfg(test)]
mod tests;

pub use engine::Engine;
pub use fleet::{DutyError, Fleet};
pub use foxy_policy::AdmissionRule;
pub use foxy_policy::{Backlog, Device};
pub use interface::{
    Admission, AdmissionConfig, DropReason, Durable, Duty, EngineConfig, EngineCounts, Health,
    MemoryShares, OneStoreStats, OpenError, ReadMiss, ReadMode, ReadPlan, StoreCounts, StoreId,
    StoreOptions, StoreStats, SyncTicket,
};
pub use maintenance::{
    Drain, DrainStep, Place, Scrub, ScrubStep, Sweep, SweepStep, Walk, WalkStep, Walked,
};
pub use memory::{
    GATE_MEMORY_PART, INDEX_PAGES, Lookup, MAX_KEY_BYTES, NewObject, Object, ObjectMeta, Put,
};
pub use offline::{
    Inspection, OfflineError, SegmentReport, SegmentWord, Verification, inspect, verify,
};
#[cfg(any(test, feature = "fuzz"))]
pub use purge::fuzzing;
pub use purge::{
    KeyParts, Places, Purge, PurgeError, PurgeKind, PurgeStatus, Purges, for_each_tag,
};
pub use put::{FragmentPut, LargePut, NewLarge, Stored};
pub use read::{DiskPlace, Keys, Peek, Reads};
pub use recovery::identity;
pub use writer::{GrowError, Grown, Turn, WakeHandle, Writer};
