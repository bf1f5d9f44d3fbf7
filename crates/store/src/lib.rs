//! The object store: RAM tier, write path, read path, recovery and reuse of space.
//!
//! A lookup returns the latest version that was stored under the key, if that version was neither
//! superseded nor purged. Otherwise it returns a miss. A lookup never returns an earlier version, another
//! object or damaged bytes. The store may forget objects. A failing disk never causes an error for a
//! request. Memory and disk space stay within the configured limits.
//!
//! The crate is *driven* by its callers: it has no runtime, and no thread of its own outlives a call. (While
//! a store is loaded into the index, a call may use a second thread, which ends before the call returns.) All
//! threads share the [`Engine`]. One thread drives each store's [`Writer`] by calling [`Writer::turn`]. The
//! caller carries out disk reads with a read queue that it opens by [`Reads::open_reads`].

// The modules ("rooms") form layers: `cargo xtask arrows` checks their order, and docs/architecture.md
// states the purpose of each room.
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
