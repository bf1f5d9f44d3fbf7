//! Access logs: readers, generators and what one measures on a stream of requests.
//!
//! Everything is a stream of [`Request`]: [`open`] reads one from a file in any of the known
//! [formats](Format) (decompressed on the way, bad lines counted, memory bounded), the
//! generators in [`generate`] make one from a seed, [`compact`] writes and reads our own form,
//! and [`analysis`] consumes one. [`ByteLru`] is the exact yardstick for hit ratios.

pub mod analysis;
mod bad_lines;
pub mod clean;
pub mod cli;
pub mod compact;
mod error;
pub mod export;
pub mod files;
mod format;
pub mod generate;
mod lru;
mod read;
mod reader;
mod request;

pub use bad_lines::{BadLine, BadLines, KEPT as BAD_LINES_KEPT};
pub use error::TraceError;
pub use format::Format;
pub use lru::{Access, ByteLru};
pub use read::json::FieldMap;
pub use reader::{Options, PROGRESS_EVERY, Progress, Reader, open};
pub use request::{Class, Flags, Method, Request};
