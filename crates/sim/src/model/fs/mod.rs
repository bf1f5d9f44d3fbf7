//! Modelled file systems and raw partitions over a modelled drive.
//!
//! [`Ufs`] keeps places and lengths, never contents. What costs time in it:
//!
//! - *names*: directories are lists in blocks of their own (a tree when journalled), scanned unless
//!   the name cache knows the name; creating and deleting change inode, directory and free maps;
//! - *metadata*: see [`Metadata`]; blocks of inodes, free maps and pointers live in a small cache;
//! - *contents*: a page cache of given size, least recently used first out; reads take along what
//!   follows in a run; writes gather into clusters; a part of a page that is not in memory is read
//!   before it is written; a writer waits when too much of its file is queued;
//! - *time passing*: a daemon writes what is old, an access dirties the inode.
//!
//! Not modelled: several processes at once, links and renames, the loss of an inode's pages when
//! the inode leaves memory, pages freed behind a sequential reader, the limit on the dependencies
//! of soft updates, the tail of the log being pushed when the log is full.

mod cache;
mod config;
mod counters;
mod daemon;
mod device;
mod files;
mod groups;
mod inode;
mod lat_fs;
mod names;
mod pages;
mod raw;
mod runs;
#[cfg(test)]
mod tests;
mod ufs;

pub use config::{FsConfig, Metadata};
pub use counters::{FsCounters, IoKind};
pub use files::{DirId, FileId, Files, FsError};
pub use lat_fs::{DeleteOrder, LatFs, lat_fs};
pub use raw::{Device, Raw};
pub use ufs::Ufs;
