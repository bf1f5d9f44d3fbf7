//! Tests of the whole store, on a disk in memory.

/// The same allocator as in production. The system's allocator would write zeros to all of the index's
/// reserved memory.
#[global_allocator]
static ALLOCATOR: foxy_disk::Allocator = foxy_disk::Allocator;

/// Returns whether a test should use many more seeds (`cargo xtask check --long`).
fn is_long() -> bool {
    std::env::var_os("FOXY_LONG").is_some()
}

mod around;
mod basic;
mod breaches;
mod chain;
mod colliding_keys;
mod crash_points;
mod crowded;
mod fault_histories;
mod faults;
mod flips;
mod gaps;
mod gate;
mod golden;
mod handed_over;
mod interleavings;
mod kept;
mod live;
mod live_random;
mod live_rig;
mod loading;
mod lost;
mod membership;
mod memory_budget;
mod misread;
mod model;
mod offline;
mod order;
mod past_memory;
mod pressure;
mod purge_journal;
mod purge_limits;
mod purge_model;
mod purged;
mod purges;
mod quarantine;
mod ratio;
mod reads;
mod removal_ends;
mod removal_log;
mod removal_ring;
pub(crate) mod rig;
mod routing;
mod rules;
mod scan;
mod scrub;
mod seeds;
mod several;
mod several_rig;
mod slots;
mod space_model;
mod sparse;
mod starts;
mod summary;
mod threads;
