//! Tests of the whole store, on a disk in memory.

mod basic;
mod faults;
mod model;
mod ratio;
mod removal_log;
mod rig;
mod rules;
