//! The library on disks in memory, driven by hand, and on a real file with its own threads.

#![expect(clippy::unwrap_used, reason = "tests may")]

mod calls;
mod crash;
mod hints;
mod lifetimes;
mod long;
mod real;
mod rig;
