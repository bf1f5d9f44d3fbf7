//! Reads a body from a connection, piece by piece, through its read buffer.

use std::io;
use std::ops::Range;

use foxy_http1::{BodyReader, BodyStep, Reject};

use super::{Io, ReadBuf, Ticks, Transport};

/// Largest number of bytes in the read buffer while a body is read.
const PIECE: usize = 64 << 10;

/// A piece of a body, as offsets into [`ReadBuf::filled`]. The caller uses the piece and then calls
/// [`ReadBuf::consume`] with `consumed`.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Number of bytes to consume.
    pub(crate) consumed: usize,
    /// Range of the body bytes. At the end of the body, this is the trailer section.
    pub(crate) range: Range<usize>,
    /// True at the end of the body.
    pub(crate) end: bool,
}

/// Reason why a body could not be read to its end.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// The connection failed, or made no progress in time (`TimedOut`).
    Io(io::Error),
    /// The framing is broken, or the body ended early.
    Framing(Reject),
}

/// Returns the next piece. Fails if no byte arrives for `timeout`. Cancel safe.
pub(crate) async fn next_piece<T: Transport>(
    io: &Io<T>,
    buf: &mut ReadBuf,
    reader: &mut BodyReader,
    timeout: Ticks,
) -> Result<Piece, BodyError> {
    loop {
        match reader.step(buf.filled()).map_err(BodyError::Framing)? {
            BodyStep::Data { consumed, data } => {
                return Ok(Piece {
                    consumed,
                    range: data,
                    end: false,
                });
            }
            BodyStep::End { consumed, trailers } => {
                return Ok(Piece {
                    consumed,
                    range: trailers,
                    end: true,
                });
            }
            BodyStep::NeedMore { consumed } => {
                buf.consume(consumed);
                let deadline = io.deadline(timeout);
                let n = buf.fill(io, PIECE, deadline).await.map_err(BodyError::Io)?;
                if n == 0 {
                    reader.end_of_input().map_err(BodyError::Framing)?;
                    return Ok(Piece {
                        consumed: 0,
                        range: 0..0,
                        end: true,
                    });
                }
            }
        }
    }
}
