//! Seeded streams of requests: one seed and one configuration always give the same stream.

mod dist;
mod polygraph;
mod sizes;
mod zipf;
mod zipf_web;

pub use dist::{exponential, lognormal, normal, pareto};
pub use polygraph::{Polygraph, PolygraphConfig};
pub use sizes::Sizes;
pub use zipf::Zipf;
pub use zipf_web::{ZipfWeb, ZipfWebConfig};
