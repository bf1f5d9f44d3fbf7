//! Access logs: readers, generators, and analyses of streams of requests.
//!
//! Everything is a stream of [`Request`]. [`open`] reads a stream from a file in any of the known
//! [formats](Format); it decompresses the file, counts bad lines and uses bounded memory. The generators in
//! [`generate`] make a stream from a seed. [`compact`] writes and reads Foxy's own form. [`analysis`]
//! consumes a stream. [`ByteLru`] is the exact reference for hit ratios.

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
