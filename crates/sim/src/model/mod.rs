//! Modelled hardware and file systems, in simulated time only.
//!
//! Nothing below reads a clock, does I/O or draws a random number: the same calls give the
//! same times on every machine. Layers, from the bottom:
//!
//! - [`drive`]: a disk or flash device that serves one request after another and knows where
//!   its head is ([`Drive`]), and a request queue with an elevator over it ([`Queue`]);
//! - [`fs`]: a Unix file system with page cache, name cache and three ways to keep metadata
//!   ([`Ufs`], [`FsConfig`]), and a partition without file system ([`Raw`]).
//!
//! Systems that keep files are written against the trait [`Files`], so that a real file
//! system can stand in for the modelled one; systems that own a partition use [`Raw`], which a real
//! [`Device`] can be under.
//!
//! One foreground process is modelled. It has one clock, [`Files::now`] or [`Raw::now`]; a
//! call moves this clock to the moment at which a Unix process would run again. What the
//! kernel does behind its back (write-behind, read-ahead, periodic flushes) competes for the
//! drive and shows up as waiting time of later calls.

pub mod drive;
pub mod fs;
pub(crate) mod hash;
mod time;

pub use drive::{Drive, DriveStats, Op, Queue, Request, Schedule};
pub use fs::{
    Device, DirId, FileId, Files, FsConfig, FsCounters, FsError, IoKind, Metadata, Raw, Ufs,
};
pub use time::SimTime;
