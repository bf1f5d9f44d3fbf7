//! Modelled file systems and raw partitions over a modelled drive.

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
#[cfg(test)]
mod tests;
mod ufs;

pub use config::{FsConfig, Metadata};
pub use counters::{FsCounters, IoKind};
pub use files::{DirId, FileId, Files, FsError};
pub use lat_fs::{DeleteOrder, LatFs, lat_fs};
pub use raw::Raw;
pub use ufs::Ufs;
