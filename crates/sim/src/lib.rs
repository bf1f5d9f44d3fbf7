//! The simulator: caches, systems of the papers and modelled hardware under one workload.
//!
//! A workload goes through the cache [`levels`]; what they ask of the disk goes to a
//! [`layout`], which is a file-space algorithm over a [`model`] of drive and file system; [`run`]
//! puts them together. [`live`] puts them behind a real front end.

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
