//! A strict decoder of the chunked coding (RFC 9112 section 7.1). Only the load tool uses it. It shares no
//! code with the proxy's decoder, so it can detect mistakes of the proxy.

/// State of the decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dechunk {
    state: State,
    /// Number of bytes that are left in the chunk. While the line with the chunk's size is being read, it is
    /// the value of the digits so far.
    left: u64,
    digits: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// The decoder is at the start of a trailer line.
    Trailer,
    TrailerLine,
    TrailerLf,
    LastLf,
    Done,
}

/// Kind and length of the next part of the decoder's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// This number of bytes is framing (chunk sizes, line ends, trailers). The caller continues after these
    /// bytes.
    Framing(usize),
    /// This number of bytes belongs to the body.
    Data(usize),
    /// The body ended after this many bytes.
    End(usize),
}

impl Dechunk {
    /// Decodes the beginning of `input`, which must not be empty.
    ///
    /// # Errors
    /// Returned if the coding is invalid.
    pub fn next(&mut self, input: &[u8]) -> Result<Piece, &'static str> {
        if self.state == State::Data {
            let n = self.left.min(input.len() as u64);
            self.left -= n;
            if self.left == 0 {
                self.state = State::DataCr;
            }
            return Ok(Piece::Data(n as usize));
        }
        for (at, byte) in input.iter().enumerate() {
            self.step(*byte)?;
            match self.state {
                State::Data => return Ok(Piece::Framing(at + 1)),
                State::Done => return Ok(Piece::End(at + 1)),
                _ => {}
            }
        }
        Ok(Piece::Framing(input.len()))
    }

    fn step(&mut self, byte: u8) -> Result<(), &'static str> {
        self.state = match (self.state, byte) {
            (State::Size, b) if b.is_ascii_hexdigit() => {
                if self.digits >= 15 {
                    return Err("chunk size too long");
                }
                let digit = (b as char).to_digit(16).map_or(0, u64::from);
                self.left = self.left << 4 | digit;
                self.digits += 1;
                State::Size
            }
            (State::Size, b'\r') if self.digits > 0 => State::SizeLf,
            (State::Size, b';') if self.digits > 0 => State::Extension,
            (State::Extension, b'\r') => State::SizeLf,
            (State::Extension, b) if b != b'\n' => State::Extension,
            (State::SizeLf, b'\n') => {
                self.digits = 0;
                if self.left == 0 {
                    State::Trailer
                } else {
                    State::Data
                }
            }
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size,
            (State::Trailer, b'\r') => State::LastLf,
            (State::Trailer | State::TrailerLine, b) if !matches!(b, b'\r' | b'\n') => {
                State::TrailerLine
            }
            (State::TrailerLine, b'\r') => State::TrailerLf,
            (State::TrailerLf, b'\n') => State::Trailer,
            (State::LastLf, b'\n') => State::Done,
            _ => return Err("chunked coding is broken"),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(input: &[u8], step: usize) -> Result<(Vec<u8>, usize), &'static str> {
        let (mut decoder, mut body, mut at) = (Dechunk::default(), Vec::new(), 0);
        while at < input.len() {
            let end = input.len().min(at + step);
            match decoder.next(&input[at..end])? {
                Piece::Framing(n) => at += n,
                Piece::Data(n) => {
                    body.extend_from_slice(&input[at..at + n]);
                    at += n;
                }
                Piece::End(n) => return Ok((body, at + n)),
            }
        }
        Err("not ended")
    }

    #[test]
    fn any_split_gives_the_same() {
        let text =
            b"5;x=y\r\nhello\r\n1\r\n!\r\n00A\r\n0123456789\r\n0\r\nA: b\r\nC: d\r\n\r\nrest";
        for step in 1..text.len() {
            let (body, used) = decode(text, step).unwrap();
            assert_eq!(
                (&body[..], used),
                (&b"hello!0123456789"[..], text.len() - 4),
                "{step}"
            );
        }
    }

    #[test]
    fn broken_coding_is_refused() {
        for text in [
            "\r\n",
            "g\r\n",
            "5\nhello",
            "5\r\nhelloX",
            "5\r\nhello\n",
            ";\r\n",
            "0\r\n\n",
            "1000000000000000\r\n",
            "5;\nhello",
        ] {
            let error = decode(text.as_bytes(), 3).unwrap_err();
            assert_ne!(error, "not ended", "{text:?}");
        }
    }
}
