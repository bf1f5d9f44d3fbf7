//! Reads that lookups ask for: their order at the disk, and the objects that their bytes become.
//!
//! Uses `purge`, `removal` and the rooms below them.
//!
//! | file | has |
//! |---|---|
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
mod neighbours;
mod queue;

pub use self::finish::Reads;
pub(crate) use self::neighbours::Neighbours;
