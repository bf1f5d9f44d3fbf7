//! Pieces of a body, framed by HTTP/1.1, for clients and for origins.

use std::io::{self, IoSlice};

use foxy_http1::{FieldSlots, chunked};

use crate::http::net::{Io, Ticks, Transport};
use crate::state::local::Local;

/// Sends the text `before`, and then a piece of a body.
///
/// # Errors
/// Returned if the peer has disconnected, or has accepted no data for `timeout`.
pub(crate) async fn write_piece<T: Transport>(
    io: &Io<T>,
    before: &[u8],
    bytes: &[u8],
    is_chunk: bool,
    timeout: Ticks,
) -> io::Result<()> {
    if is_chunk {
        let line = chunked::chunk_header(bytes.len() as u64);
        let mut slices = [
            IoSlice::new(before),
            IoSlice::new(line.as_bytes()),
            IoSlice::new(bytes),
            IoSlice::new(chunked::CHUNK_END),
        ];
        return io.write_all(&mut slices, timeout).await;
    }
    let mut slices = [IoSlice::new(before), IoSlice::new(bytes)];
    io.write_all(&mut slices, timeout).await
}

/// Returns the last chunk, with the trailers of a body that was just read.
pub(crate) fn last_chunk(local: &Local, trailers: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut slots = FieldSlots::new();
    match chunked::parse_trailers(trailers, &mut slots, &local.limits) {
        Ok(fields) => chunked::write_last_chunk(&fields, &mut out),
        Err(_) => out.extend_from_slice(chunked::LAST_CHUNK),
    }
    out
}
