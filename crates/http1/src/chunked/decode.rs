//! The incremental decoder of chunked bodies.
//!
//! The decoder makes three promises. The decoded bytes do not depend on how the input was split.
//! Body bytes are never copied. Input that two decoders could read differently is refused: LF
//! without CR, CR without LF, signs, prefixes and white space around sizes, sizes over 2^63 - 1,
//! missing CRLF after data.

use super::trailers;
use crate::body::BodyStep;
use crate::{Limits, Reject};

/// Largest number of digits of a chunk size, including leading zeros.
const SIZE_DIGITS: u8 = 16;

/// Decodes one chunked body.
#[derive(Clone, Debug)]
pub struct ChunkedDecoder {
    state: State,
    /// While a chunk size is read, this is the value of its digits so far. After that, it is the number of
    /// bytes of the chunk that are still to come.
    left: u64,
    /// Number of digits of the size so far.
    digits: u8,
    /// Number of bytes of the current chunk line so far.
    line: usize,
    /// Number of bytes of chunk extensions that this body may still have.
    extensions_left: usize,
    /// Number of bytes of the trailer section that were already searched for its end.
    searched: usize,
    line_max: usize,
    trailer_max: usize,
    trailer_fields: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailers,
    Done,
}

impl ChunkedDecoder {
    /// A decoder at the start of a body.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            state: State::Size,
            left: 0,
            digits: 0,
            line: 0,
            extensions_left: limits.chunk_extension_bytes,
            searched: 0,
            line_max: limits.chunk_line_bytes,
            trailer_max: limits.trailer_bytes,
            trailer_fields: limits.trailer_fields,
        }
    }

    /// True if the last chunk and its trailers have been read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Decodes until it has found one contiguous piece of body bytes, or until the body or the input ends.
    /// The trailer section is consumed only when it is complete, so that it is contiguous in the input.
    ///
    /// # Errors
    /// Status 400, or 431 for a trailer section beyond its limits. An unreadable trailer section is an error,
    /// because the message is then incomplete.
    pub fn step(&mut self, input: &[u8]) -> Result<BodyStep, Reject> {
        let mut at = 0;
        loop {
            match self.state {
                State::Trailers => return self.trailers(input, at),
                State::Done => {
                    return Ok(BodyStep::End {
                        consumed: at,
                        trailers: at..at,
                    });
                }
                _ => {}
            }
            let Some(&byte) = input.get(at) else {
                return Ok(BodyStep::NeedMore { consumed: at });
            };
            if self.state == State::Data {
                return Ok(self.data(at, input.len()));
            }
            self.framing_byte(byte)?;
            at += 1;
        }
    }

    fn data(&mut self, at: usize, len: usize) -> BodyStep {
        let n = usize::try_from(self.left).map_or(len - at, |left| left.min(len - at));
        self.left -= n as u64;
        if self.left == 0 {
            self.state = State::DataCr;
        }
        BodyStep::Data {
            consumed: at + n,
            data: at..at + n,
        }
    }

    fn framing_byte(&mut self, byte: u8) -> Result<(), Reject> {
        match self.state {
            State::Size => self.size_byte(byte),
            State::Extension => self.extension_byte(byte),
            State::SizeLf => self.size_line_end(byte),
            State::DataCr if byte == b'\r' => {
                self.state = State::DataLf;
                Ok(())
            }
            State::DataLf if byte == b'\n' => {
                self.start_line();
                Ok(())
            }
            State::DataCr if byte == b'\n' => Err(Reject::BARE_LF),
            _ => Err(Reject::BAD_CHUNK_END),
        }
    }

    fn start_line(&mut self) {
        (self.state, self.left, self.digits, self.line) = (State::Size, 0, 0, 0);
    }

    fn count_line_byte(&mut self) -> Result<(), Reject> {
        self.line += 1;
        if self.line > self.line_max {
            return Err(Reject::CHUNK_LINE_TOO_LONG);
        }
        Ok(())
    }

    fn size_byte(&mut self, byte: u8) -> Result<(), Reject> {
        self.count_line_byte()?;
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            b'\n' => return Err(Reject::BARE_LF),
            b'\r' | b';' if self.digits > 0 => {
                self.state = if byte == b';' {
                    State::Extension
                } else {
                    State::SizeLf
                };
                return Ok(());
            }
            _ => return Err(Reject::BAD_CHUNK_SIZE),
        };
        self.digits += 1;
        // The new digit adds 4 bits to `left`. So the size fits in 63 bits only if `left` is below 2^59
        // before.
        if self.digits > SIZE_DIGITS || self.left >= 1 << 59 {
            return Err(Reject::BAD_CHUNK_SIZE);
        }
        self.left = self.left << 4 | u64::from(digit);
        Ok(())
    }

    /// Checks and discards one byte of a chunk extension. Extensions may contain no control byte.
    fn extension_byte(&mut self, byte: u8) -> Result<(), Reject> {
        self.count_line_byte()?;
        match byte {
            b'\r' => self.state = State::SizeLf,
            b'\n' => return Err(Reject::BARE_LF),
            byte if byte.is_ascii_control() && byte != b'\t' => {
                return Err(Reject::BAD_CHUNK_EXTENSION);
            }
            _ if self.extensions_left == 0 => return Err(Reject::CHUNK_LINE_TOO_LONG),
            _ => self.extensions_left -= 1,
        }
        Ok(())
    }

    fn size_line_end(&mut self, byte: u8) -> Result<(), Reject> {
        self.count_line_byte()?;
        if byte != b'\n' {
            return Err(Reject::BARE_CR);
        }
        self.state = if self.left == 0 {
            State::Trailers
        } else {
            State::Data
        };
        Ok(())
    }

    /// Searches for the empty line that ends the trailer section, which begins at `at`.
    fn trailers(&mut self, input: &[u8], at: usize) -> Result<BodyStep, Reject> {
        let section = &input[at..];
        let window = &section[..section.len().min(self.trailer_max)];
        while let Some(found) = memchr::memchr(b'\n', window.get(self.searched..).unwrap_or(&[])) {
            let lf = self.searched + found;
            if lf == 0 || window[lf - 1] != b'\r' {
                return Err(Reject::BARE_LF);
            }
            self.searched = lf + 1;
            if lf == 1 || window[..lf].ends_with(b"\r\n\r") {
                let fields = if lf == 1 { 0 } else { lf + 1 };
                trailers::check(&section[..fields], self.trailer_fields)?;
                self.state = State::Done;
                return Ok(BodyStep::End {
                    consumed: at + lf + 1,
                    trailers: at..at + fields,
                });
            }
        }
        self.searched = window.len();
        if section.len() >= self.trailer_max {
            return Err(Reject::TRAILERS_TOO_LARGE);
        }
        Ok(BodyStep::NeedMore { consumed: at })
    }
}
