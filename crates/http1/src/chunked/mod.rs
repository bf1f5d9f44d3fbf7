//! The chunked transfer coding (RFC 9112 section 7.1): decoder, encoder, trailers.

mod decode;
mod encode;
mod trailers;

pub use decode::ChunkedDecoder;
pub use encode::{CHUNK_END, ChunkHeader, LAST_CHUNK, chunk_header, write_last_chunk};
pub use trailers::{is_trailer_allowed, parse_trailers};
