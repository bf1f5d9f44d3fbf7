//! Recovery, in the order that makes it right.
//!
//! Superblocks; then what the open segments hold, by their clusters; then lookups are answered;
//! then sealed segments by their summaries, newest first, each key only if it is absent. What
//! removals name is left out: removals in the log, and those made while loading. Clean and
//! unclean starts take the same way. `docs/recovery.md` has the argument.

mod load;
mod scan;
mod start;

pub(crate) use load::{Loader, summary_entries};
pub(crate) use scan::scan_segment;
pub(crate) use start::{Opened, open, write_superblock};
