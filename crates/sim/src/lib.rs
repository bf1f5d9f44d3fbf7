//! The simulator: caches, systems of the papers and modelled hardware under one workload.

pub mod model;
