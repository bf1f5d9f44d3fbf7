//! The simulator: caches, systems of the papers and modelled hardware run the same workloads.
//!
//! The cache [`levels`] turn the requests of a workload into disk operations. A [`layout`] executes these
//! operations. It is a file-space algorithm over a [`model`] of a drive and a file system. [`run`] combines
//! these parts. [`live`] uses levels and a layout behind a real front end.

pub mod cli;
pub mod figure;
pub mod layout;
pub mod levels;
pub mod live;
pub mod model;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod size;
pub mod systems;
