//! The encoder of chunked bodies. A chunk header is made in a small array on the stack, and is sent before
//! the data. So the data need not be copied.

use foxy_base::Fields;

use super::trailers::is_trailer_allowed;
use crate::write;

/// Bytes after the data of each chunk.
pub const CHUNK_END: &[u8] = b"\r\n";

/// The last chunk, without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The line before a chunk's data.
#[derive(Clone, Copy, Debug)]
pub struct ChunkHeader {
    text: [u8; 18],
    start: usize,
}

impl ChunkHeader {
    /// The line, including CRLF.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[self.start..]
    }
}

/// The line before `len` bytes of data. `len` must not be 0, because a chunk of length 0 ends the
/// body. [`write_last_chunk`] writes that chunk.
#[must_use]
pub fn chunk_header(len: u64) -> ChunkHeader {
    debug_assert!(len > 0);
    let mut text = [0; 18];
    text[16..].copy_from_slice(b"\r\n");
    let (mut start, mut left) = (16, len);
    while left > 0 || start == 16 {
        start -= 1;
        text[start] = b"0123456789abcdef"[(left & 15) as usize];
        left >>= 4;
    }
    ChunkHeader { text, start }
}

/// Appends the last chunk and a trailer section. The section contains the fields in `trailers` that are
/// permitted in a trailer section.
pub fn write_last_chunk<F: Fields + ?Sized>(trailers: &F, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    for i in 0..trailers.count() {
        let (name, value) = trailers.field(i);
        if is_trailer_allowed(name) {
            write::field(out, name, value);
        }
    }
    out.extend_from_slice(b"\r\n");
}
