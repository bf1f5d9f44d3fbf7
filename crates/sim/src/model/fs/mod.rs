//! Modelled file systems and raw partitions over a modelled drive.
//!
//! [`Ufs`] stores places and lengths, never contents. These activities take simulated time:
//!
//! - *names*: directories are lists in separate blocks (a tree if journalled). They are scanned unless the
//!   name cache contains the name. Creating and deleting change inode, directory and free maps;
//! - *metadata*: see [`Metadata`]. Blocks of inodes, free maps and pointers are in a small cache;
//! - *contents*: a page cache of given size evicts the least recently used page. Sequential reads cause
//!   read-ahead. Writes are collected into clusters. If only a part of a page is written and the page is not
//!   in memory, the page is read first. A writer waits if too much of its file is queued;
//! - *passing time*: a daemon sweeps the memory and writes old dirty data. A read makes the inode dirty if
//!   the file system keeps access times.
//!
//! The model leaves out the following:
//!
//! - several processes at the same time;
//! - links and renames;
//! - the loss of an inode's pages when the inode leaves memory;
//! - the freeing of pages behind a sequential reader;
//! - the limit on the dependencies of soft updates;
//! - the writes of old metadata by which space in a full log becomes free.

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
