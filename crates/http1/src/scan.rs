//! Finds the end of a head while bytes arrive. Each byte is examined once.
//!
//! This module makes two promises. The result does not depend on how the input was split. Three errors are
//! refused as soon as the wrong byte arrives: a line that ends with LF without CR, a head over its limits,
//! and a first byte that cannot begin a message.

use crate::{Limits, Reject};

/// The position up to which the head in a growing buffer was examined. Each connection has its own scanner.
/// The scanner resets itself after each complete head.
#[derive(Clone, Debug, Default)]
pub struct HeadScanner {
    /// Number of bytes examined.
    seen: usize,
    /// Start of the current line, as an offset in the buffer.
    line_start: usize,
    /// Number of complete lines, without empty lines.
    lines: usize,
    /// True if the first byte of the first line was acceptable.
    started: bool,
}

/// The kind of message to which the head belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Response,
}

/// Largest number of bytes of a request's first line, not counting the target: a method of 32 bytes, two
/// spaces, the version, CRLF.
const AROUND_TARGET: usize = 32 + 2 + 8 + 2;

impl HeadScanner {
    /// A scanner that has examined no bytes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets a partly examined head, for instance because the buffer was emptied.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// The length of the request head at the start of `bytes`, including an empty line before it; `None` if
    /// more bytes are needed. `bytes` must begin with the bytes of the previous call.
    ///
    /// # Errors
    /// The reason to refuse the bytes received so far: limits, bare LF, a bad first byte.
    pub fn request(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Reject> {
        self.advance(bytes, limits, Kind::Request)
    }

    /// Does the same as [`request`](Self::request), for a response head.
    ///
    /// # Errors
    /// The same errors as `request`, with status 502.
    pub fn response(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Reject> {
        self.advance(bytes, limits, Kind::Response)
            .map_err(Reject::of_response)
    }

    pub(crate) fn advance(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        kind: Kind,
    ) -> Result<Option<usize>, Reject> {
        if self.seen == 0 && is_one_head(bytes, limits, kind) {
            return Ok(Some(bytes.len()));
        }
        loop {
            let limit = self.window(limits, kind);
            let end = bytes.len().min(limit);
            // Bytes past the limit are not examined. Otherwise the result would depend on how many of these
            // bytes have arrived.
            self.check_start(&bytes[..end], kind)?;
            let Some(found) = memchr::memchr(b'\n', bytes.get(self.seen..end).unwrap_or(&[]))
            else {
                self.seen = self.seen.max(end);
                return if bytes.len() >= limit {
                    Err(self.too_large(&bytes[..end], kind))
                } else {
                    Ok(None)
                };
            };
            let at = self.seen + found;
            if self.end_line(bytes, at, limits, kind)? {
                self.reset();
                return Ok(Some(at + 1));
            }
        }
    }

    /// Checks the first byte of the first line. It distinguishes a request or response from other data, so
    /// that a TLS handshake on a plain port is refused before a line end arrives.
    fn check_start(&mut self, bytes: &[u8], kind: Kind) -> Result<(), Reject> {
        let Some(&first) = bytes.get(self.line_start).filter(|_| !self.started) else {
            return Ok(());
        };
        let fits = match kind {
            Kind::Request => is_token_byte(first),
            Kind::Response => first == b'H',
        };
        // An empty line before a request is checked when its LF arrives.
        let empty_line = kind == Kind::Request && first == b'\r' && self.line_start == 0;
        self.started = fits;
        match first {
            _ if fits || empty_line => Ok(()),
            b'\n' => Err(Reject::BARE_LF),
            _ if kind == Kind::Response => Err(Reject::BAD_STATUS_LINE),
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => Err(Reject::LEADING_WHITESPACE),
            _ => Err(Reject::BAD_METHOD),
        }
    }

    /// The largest permitted offset of the end of the current line.
    fn window(&self, limits: &Limits, kind: Kind) -> usize {
        if self.lines == 0 && kind == Kind::Request {
            let first_line = limits.target_bytes.saturating_add(AROUND_TARGET);
            limits
                .head_bytes
                .min(self.line_start.saturating_add(first_line))
        } else {
            limits.head_bytes
        }
    }

    /// The reason why a head that exceeds its limit is refused. If the first line of a request has no end
    /// before the limit and begins with a method, its target is too long. If it does not begin with a method,
    /// the reason is the bad method. `bytes` end at the limit.
    fn too_large(&self, bytes: &[u8], kind: Kind) -> Reject {
        if self.lines > 0 || kind == Kind::Response {
            return Reject::HEAD_TOO_LARGE;
        }
        let line = bytes.get(self.line_start..).unwrap_or_default();
        let method = line.iter().take_while(|b| is_token_byte(**b)).count();
        if method <= 32 && line.get(method) == Some(&b' ') {
            Reject::TARGET_TOO_LONG
        } else {
            Reject::BAD_METHOD
        }
    }

    /// Processes the line that ends with the LF at `at`. Returns true if this line ends the head.
    fn end_line(
        &mut self,
        bytes: &[u8],
        at: usize,
        limits: &Limits,
        kind: Kind,
    ) -> Result<bool, Reject> {
        if at == self.line_start || bytes[at - 1] != b'\r' {
            return Err(Reject::BARE_LF);
        }
        let empty = at - 1 == self.line_start;
        self.seen = at + 1;
        self.line_start = at + 1;
        if empty {
            // RFC 9112 section 2.2: one empty line before a request is ignored, because old clients send one
            // after a body. `check_start` refuses a second empty line.
            debug_assert!(self.lines > 0 || kind == Kind::Request);
            return Ok(self.lines > 0);
        }
        if !self.started {
            // The first line begins with a CR that is not the end of an empty line.
            return Err(Reject::LEADING_WHITESPACE);
        }
        self.lines += 1;
        if self.lines - 1 > limits.fields_max() {
            return Err(Reject::TOO_MANY_FIELDS);
        }
        Ok(false)
    }
}

/// True if `bytes` are exactly one complete head that is not large and has no error that a scanner finds.
/// This is the usual case. In all other cases, the complete scan decides.
fn is_one_head(bytes: &[u8], limits: &Limits, kind: Kind) -> bool {
    let starts = match (kind, bytes.first()) {
        (Kind::Request, Some(first)) => is_token_byte(*first),
        (Kind::Response, first) => first == Some(&b'H'),
        (_, None) => false,
    };
    let largest = limits.head_bytes.min(limits.target_bytes);
    if !starts || bytes.len() > largest {
        return false;
    }
    let (mut lines, mut line_start) = (0, 0);
    for at in memchr::memchr_iter(b'\n', bytes) {
        if at == 0 || bytes[at - 1] != b'\r' {
            return false;
        }
        if at == line_start + 1 {
            return at + 1 == bytes.len() && lines <= limits.fields_max() + 1;
        }
        lines += 1;
        line_start = at + 1;
    }
    false
}

/// True for the bytes of a token (RFC 9110 section 5.6.2).
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    TOKEN[byte as usize]
}

static TOKEN: [bool; 256] = token_table();

const fn token_table() -> [bool; 256] {
    let mut table = [false; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = (i as u8).is_ascii_alphanumeric();
        i += 1;
    }
    let others = b"!#$%&'*+-.^_`|~";
    i = 0;
    while i < others.len() {
        table[others[i] as usize] = true;
        i += 1;
    }
    table
}
