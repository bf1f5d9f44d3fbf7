//! Modelled hardware and file systems, in simulated time only.
//!
//! The code of this module reads no clock, does no I/O and draws no random numbers: the same calls give the
//! same times on every machine. The layers are, from the bottom:
//!
//! - [`drive`]: a disk or flash device that serves one request after another and records the position of
//!   its head ([`Drive`]), and a request queue with an elevator over it ([`Queue`]);
//! - [`fs`]: a Unix file system with page cache, name cache and several ways to write metadata
//!   ([`Ufs`], [`FsConfig`]), and a partition without file system ([`Raw`]).
//!
//! Systems that keep files use the trait [`Files`], so that a real file system can replace the modelled one.
//! Systems that own a partition use [`Raw`], which can be on a real [`Device`].
//!
//! One foreground process is modelled. It has one clock, [`Files::now`] or [`Raw::now`]. A call moves this
//! clock to the time at which a Unix process would continue after the same call. Background work of the
//! kernel (write-behind, read-ahead, periodic flushes) competes for the drive and appears as waiting time of
//! later calls.

pub mod drive;
pub mod fs;
pub(crate) mod hash;
mod time;

pub use drive::{Drive, DriveStats, Op, Queue, Request, Schedule};
pub use fs::{
    Device, DirId, FileId, Files, FsConfig, FsCounters, FsError, IoKind, Metadata, Raw, Ufs,
};
pub use time::SimTime;
