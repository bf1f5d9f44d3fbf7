//! Seeded streams of requests: the same seed and configuration always give the same stream.

pub mod check;
mod dist;
mod polygraph;
mod sessions;
mod sizes;
mod zipf;
mod zipf_web;

pub use dist::{exponential, lognormal, normal, pareto};
pub use polygraph::{Polygraph, PolygraphConfig};
pub use sessions::{SessionConfig, Sessions};
pub use sizes::Sizes;
pub use zipf::Zipf;
pub use zipf_web::{ZipfWeb, ZipfWebConfig};
