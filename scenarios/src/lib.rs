//! The environment for scenarios: an origin that plays prepared replies, a Foxy in this process with a
//! clock that a scenario moves, and a client. All of them use real sockets.
//!
//! A scenario is one short file under `tests/it` that reads like a story:
//!
//! ```
//! use foxy_scenarios::*;
//!
//! let scene = Scene::new();
//! scene.origin.plays("/a", Reply::ok("hello").field("Cache-Control", "max-age=60"));
//! scene.get("/a").miss().says("hello");
//! scene.get("/a").hit().says("hello");
//! scene.origin.was_asked(1);
//! ```
//!
//! All functions panic if the behaviour differs from the story, because this is test code.

mod answer;
mod client;
mod incident;
mod origin;
mod other_cache;
mod reply;
mod scene;
mod untrusted;

pub use answer::Answer;
pub use client::Client;
pub use incident::Incident;
pub use origin::{Asked, Origin};
pub use other_cache::{Next, OtherCache, READING};
pub use reply::Reply;
pub use scene::{Scene, SceneBuilder, TOKEN, secs};
pub use untrusted::untrusted_origin;
