//! Reads a body of any framing piece by piece, without copying.

use std::ops::Range;

use crate::chunked::ChunkedDecoder;
use crate::{BodyFraming, Limits, Reject};

/// One step of a [`BodyReader`] or [`ChunkedDecoder`]. All offsets count from the start of the input of that
/// step. After each step the caller removes `consumed` bytes from its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyStep {
    /// Body bytes: `input[data]`, never empty.
    Data {
        /// Bytes consumed, including the bytes of `data`.
        consumed: usize,
        /// Position of the data in the input.
        data: Range<usize>,
    },
    /// More input is needed after the bytes that were consumed.
    NeedMore {
        /// Bytes consumed.
        consumed: usize,
    },
    /// The body has ended. The bytes after the consumed bytes belong to the next message.
    End {
        /// Bytes consumed.
        consumed: usize,
        /// The trailer section in the input, for [`chunked::parse_trailers`](crate::chunked::parse_trailers);
        /// empty if there is no trailer section.
        trailers: Range<usize>,
    },
}

/// Reads one body of any framing.
#[derive(Clone, Debug)]
pub struct BodyReader(State);

#[derive(Clone, Debug)]
enum State {
    Length(u64),
    Chunked(ChunkedDecoder),
    UntilClose,
}

impl BodyReader {
    /// A reader for a body with this framing. A tunnel is read until the end of the connection.
    #[must_use]
    pub fn new(framing: BodyFraming, limits: &Limits) -> Self {
        Self(match framing {
            BodyFraming::None => State::Length(0),
            BodyFraming::Length(n) => State::Length(n),
            BodyFraming::Chunked => State::Chunked(ChunkedDecoder::new(limits)),
            BodyFraming::UntilClose | BodyFraming::Tunnel => State::UntilClose,
        })
    }

    /// Reads `input`, which are the bytes that were received and not yet consumed. Call this function again
    /// after [`BodyStep::Data`]. After [`BodyStep::End`], every further step is an empty End.
    ///
    /// # Errors
    /// Bad chunking, with status 400 or 431. For the body of an origin, convert the error with
    /// [`Reject::of_response`].
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

    /// Call this function when the connection ends. It returns an error if the body has not ended, because
    /// the body is then truncated. A truncated body must not be stored, and must not be presented as
    /// complete.
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

    /// True if the body has ended by its own framing.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.0 {
            State::Length(left) => *left == 0,
            State::Chunked(decoder) => decoder.is_done(),
            State::UntilClose => false,
        }
    }

    /// Number of body bytes still to come; `None` if it is not known.
    #[must_use]
    pub const fn remaining(&self) -> Option<u64> {
        match &self.0 {
            State::Length(left) => Some(*left),
            State::Chunked(_) | State::UntilClose => None,
        }
    }
}
