//! A client's connection at the level of HTTP/1.1: the head of the next request, the bytes of its body,
//! reservations of memory in the kernel's send buffers, and the end of the connection. None of its code
//! decides about an answer.

mod link;
mod pieces;
mod queue;
mod read;
mod reader;
mod room;
#[cfg(test)]
mod tests;

pub(crate) use link::{Ends, Link, Received};
pub(crate) use pieces::{last_chunk, write_piece};
pub(crate) use queue::{Queued, SliceLost};
pub(crate) use read::NoRequest;
pub(crate) use room::MEMORY;
