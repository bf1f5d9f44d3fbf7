//! Rules that decide which objects a cache keeps, where it puts them and in which order it reads them.
//!
//! The crate is pure logic: it does no I/O, reads no clock (times are arguments) and needs no runtime. The
//! proxy and the simulator share these rules, so that each rule exists once. The head of each file names the
//! rule's source.

mod admission;
mod backlog;
mod cache;
mod filter;
mod ghost;
mod lfu_aging;
mod locality;
mod named;
mod queues;
mod read_around;
mod read_gauge;
mod read_order;
mod rewrite_budget;
mod s3_fifo;
mod size_limited;
mod sketch;
mod slab;
mod w_tiny_lfu;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use admission::{
    Admission, Admit, AdmitAll, Budgeted, Frequency, SecondUse, SizeLimit, TokenBucket,
};
pub use backlog::Backlog;
pub use cache::{Cache, CachePolicy, Evicted, Inserted, Key, Rule, SharedRule};
pub use filter::{AdmissionRule, Filter};
pub use ghost::Ghost;
pub use lfu_aging::{LfuAging, LfuAgingRule};
pub use locality::{BufferId, GroupId, LocalityBuffers, LocalityConfig, Placement};
pub use named::{AnyCache, PolicyKind};
pub use queues::{Clock, ClockRule, Fifo, FifoRule, Lru, LruRule, Sieve, SieveRule};
pub use read_around::ReadAround;
pub use read_gauge::{Device, ReadGauge};
pub use read_order::{MergedRead, PendingRead, ReadOrder, ReadOrderConfig, ReadQueue, merge};
pub use rewrite_budget::RewriteBudget;
pub use s3_fifo::{S3Fifo, S3FifoConfig, S3FifoRule};

/// The policy of the memory tier of Foxy's store. The simulator uses it too, to predict the effect of other
/// memory sizes.
pub type MemoryTier<K, V> = S3Fifo<K, V>;
pub use size_limited::{LruTh, SizeLimited};
pub use sketch::Sketch;
pub use slab::Slab;
pub use w_tiny_lfu::{WTinyLfu, WTinyLfuConfig, WTinyLfuRule};
