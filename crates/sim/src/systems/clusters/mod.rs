//! Common part of UCFS and Hummingbird: a raw partition of fixed-size clusters, and the map of free clusters.

mod disk;
mod free;

pub use disk::{ClusterDisk, Stored, Written};
pub use free::FreeMap;
