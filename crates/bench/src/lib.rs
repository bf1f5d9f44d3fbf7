//! Load tools: an origin server whose bytes can all be checked, and a load generator that checks these bytes.
//!
//! [`Origin`] answers `/o/<id>?s=<size>&...` with a body that follows from host, id, version and size
//! ([`Identity`]). The URL also contains all other behaviour of the origin (latency, broken answers,
//! caching fields), see [`Knobs`]. The load generator requests such URLs directly or through a proxy.

mod body;
mod chunked;
pub mod cli;
mod delay;
mod floor;
mod histogram;
mod knobs;
pub mod load;
mod origin;
pub mod ranges;
mod resolver;
mod speed;
mod spin;
pub mod store;
pub mod together;

pub use body::{BodyKey, Identity};
pub use chunked::{Dechunk, Piece};
pub use delay::{Delay, parse_time};
pub use floor::BaselineServer;
pub use histogram::Histogram;
pub use knobs::{Knobs, MAX_AGE, without_port};
pub use origin::{Origin, OriginConfig, OriginCounters, parse_counters};
pub use resolver::{Phase, PhaseKind, TestResolver, Zone};
pub use speed::Speed;
