//! Tests of the library. Some tests use disks in memory and call `Driver::turn` themselves. The others use a
//! real file and the library's own threads.

#![expect(clippy::unwrap_used, reason = "tests may")]

mod calls;
mod crash;
mod harness;
mod hints;
mod lifetimes;
mod long;
mod real;
