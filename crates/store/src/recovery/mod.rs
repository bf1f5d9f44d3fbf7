//! Recovery: opens a store and fills the index from it. The order of the steps makes recovery correct.
//!
//! First the superblocks are read. Then the open segments are searched for their clusters. From then on
//! lookups are answered. Then the sealed segments are loaded from their summaries (lists of their entries),
//! newest first. A record gets an index entry only if the index does not have its key yet. Removed records
//! are left out, whether the removals are in the log or are made while loading. Clean and unclean starts run
//! the same code. `docs/recovery.md` contains the argument for its correctness.
//!
//! This module uses `engine` and the modules below it, to fill the tables of an engine from a disk.
//! `start` opens a store, `load` takes in its segments, `replay` replays the purge journal, and
//! `membership` decides which stores are trusted.

mod chain;
mod load;
mod membership;
mod part;
mod pieces;
mod replay;
mod scan;
mod slots;
mod start;
mod stock;
mod superblocks;
mod take;

pub(crate) use chain::{GivenUp, Judged};
pub(crate) use load::Loader;
pub(crate) use part::summary_entries;
pub(crate) use pieces::Piece;
pub(crate) use scan::scan_segment;
#[cfg(test)]
pub(crate) use slots::{Found, SPAN_BYTES, read_slot, read_slots, spans};
pub(crate) use start::{Opened, open};
pub use superblocks::identity;
pub(crate) use superblocks::{other_format, write_both, write_superblock};
