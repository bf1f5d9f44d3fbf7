//! Tests of the library on disks in memory, where the test calls `Driver::turn`, and on a real
//! file, with the library's own threads.

#![expect(clippy::unwrap_used, reason = "tests may")]

mod calls;
mod crash;
mod hints;
mod lifetimes;
mod long;
mod real;
mod rig;
