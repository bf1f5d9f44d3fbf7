//! Reads a body of any framing, piece by piece and without copying.

use std::ops::Range;

use crate::chunked::ChunkedDecoder;
use crate::{BodyFraming, Limits, Reject};

/// One step of a [`BodyReader`] or [`ChunkedDecoder`]. All offsets count from the start of the
/// input given to that step; after each step the caller drops `consumed` bytes from its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyStep {
    /// Body bytes: `input[data]`, never empty.
    Data {
        /// Bytes consumed, with those of `data`.
        consumed: usize,
        /// Position of the data in the input.
        data: Range<usize>,
    },
    /// More input is needed after the bytes that were not consumed.
    NeedMore {
        /// Bytes consumed.
        consumed: usize,
    },
    /// The body is over; what follows belongs to the next message.
    End {
        /// Bytes consumed.
        consumed: usize,
        /// The trailer section in the input, for [`chunked::parse_trailers`](crate::chunked::parse_trailers);
        /// empty if there is none.
        trailers: Range<usize>,
    },
}

/// Reads one body.
#[derive(Clone, Debug)]
pub struct BodyReader(State);

#[derive(Clone, Debug)]
enum State {
    Length(u64),
    Chunked(ChunkedDecoder),
    UntilClose,
}

impl BodyReader {
    /// A reader for a body with this framing. A tunnel is read as bytes until the end of the connection.
    #[must_use]
    pub fn new(framing: BodyFraming, limits: &Limits) -> Self {
        Self(match framing {
            BodyFraming::None => State::Length(0),
            BodyFraming::Length(n) => State::Length(n),
            BodyFraming::Chunked => State::Chunked(ChunkedDecoder::new(limits)),
            BodyFraming::UntilClose | BodyFraming::Tunnel => State::UntilClose,
        })
    }

    /// Looks at `input`, the bytes received and not yet consumed. Ask again after
    /// [`BodyStep::Data`]; after [`BodyStep::End`] every further step is an empty End.
    ///
    /// # Errors
    /// Bad chunking, with status 400 or 431; use [`Reject::of_response`] for an origin's.
    pub fn step(&mut self, input: &[u8]) -> Result<BodyStep, Reject> {
        match &mut self.0 {
            State::Length(0) => Ok(BodyStep::End {
                consumed: 0,
                trailers: 0..0,
            }),
            State::Chunked(decoder) => decoder.step(input),
            _ if input.is_empty() => Ok(BodyStep::NeedMore { consumed: 0 }),
            State::Length(left) => {
                let n = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left -= n as u64;
                Ok(BodyStep::Data {
                    consumed: n,
                    data: 0..n,
                })
            }
            State::UntilClose => Ok(BodyStep::Data {
                consumed: input.len(),
                data: 0..input.len(),
            }),
        }
    }

    /// To be called when the connection ends: a body that is then not over is truncated, and
    /// must be neither stored nor presented as whole.
    ///
    /// # Errors
    /// [`Reject::TRUNCATED_BODY`].
    pub fn end_of_input(&self) -> Result<(), Reject> {
        let whole = match &self.0 {
            State::Length(left) => *left == 0,
            State::Chunked(decoder) => decoder.is_done(),
            State::UntilClose => true,
        };
        if whole {
            Ok(())
        } else {
            Err(Reject::TRUNCATED_BODY)
        }
    }

    /// The body is over by its own framing.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.0 {
            State::Length(left) => *left == 0,
            State::Chunked(decoder) => decoder.is_done(),
            State::UntilClose => false,
        }
    }

    /// Bytes of body still to come, where that is known.
    #[must_use]
    pub const fn remaining(&self) -> Option<u64> {
        match &self.0 {
            State::Length(left) => Some(*left),
            State::Chunked(_) | State::UntilClose => None,
        }
    }
}
