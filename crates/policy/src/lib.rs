//! Every rule that decides what a cache keeps, where it puts it and in which order it reads.
//!
//! Pure logic: no I/O, no clock (times come in as arguments), no runtime. The proxy and the
//! simulator share these, so a rule exists once. Each file's head names the rule's source.

mod admission;
mod cache;
mod ghost;
mod locality;
mod read_order;
mod s3_fifo;

pub use admission::{Admission, Admit, AdmitAll, Budgeted, SecondUse, SizeLimit, TokenBucket};
pub use cache::{CachePolicy, Evicted, Inserted, Key};
pub use ghost::Ghost;
pub use locality::{BufferId, GroupId, LocalityBuffers, LocalityConfig, Placement};
pub use read_order::{MergedRead, PendingRead, ReadOrder, ReadOrderConfig, ReadQueue, merge};
pub use s3_fifo::{S3Fifo, S3FifoConfig};
