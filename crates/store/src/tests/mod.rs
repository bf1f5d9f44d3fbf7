//! Tests of the whole store, on a disk in memory.

mod basic;
mod model;
mod rig;
