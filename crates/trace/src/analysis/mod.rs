//! What one measures on a stream of requests.

mod infinite;

pub use infinite::{Infinite, InfiniteReport};
