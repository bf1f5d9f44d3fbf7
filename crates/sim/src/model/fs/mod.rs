//! Modelled file systems and raw partitions over a modelled drive.

mod config;
mod counters;
mod files;
mod raw;
mod ufs;

pub use config::{FsConfig, Metadata};
pub use counters::{FsCounters, IoKind};
pub use files::{DirId, FileId, Files, FsError};
pub use raw::Raw;
pub use ufs::Ufs;
