//! The library on disks in memory, driven by hand, and on a real file with its own threads.

mod calls;
mod crash;
mod hints;
mod lifetimes;
mod long;
mod real;
mod rig;
