//! End of a body (RFC 9112 section 6.3), derived from the head.

use crate::facts::Length;
use crate::{Method, Reject};

/// Delimitation of the body of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// No body, and nothing said about its length.
    None,
    /// That many bytes; zero is said explicitly.
    Length(u64),
    /// Chunked transfer coding.
    Chunked,
    /// Everything up to the end of the connection; responses only.
    UntilClose,
    /// Not a message any more: the connection is a tunnel from here on (2xx to CONNECT, 101).
    Tunnel,
}

impl BodyFraming {
    /// No byte of body will come.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }

    /// The length, where it is known before the body is read.
    #[must_use]
    pub const fn length(self) -> Option<u64> {
        match self {
            Self::None => Some(0),
            Self::Length(n) => Some(n),
            Self::Chunked | Self::UntilClose | Self::Tunnel => None,
        }
    }
}

/// A request without Content-Length and Transfer-Encoding has no body.
pub(crate) fn of_request(method: Method, length: Length) -> Result<BodyFraming, Reject> {
    let framing = match length {
        Length::Unsaid => BodyFraming::None,
        Length::Bytes(n) => BodyFraming::Length(n),
        Length::Chunked => BodyFraming::Chunked,
    };
    // Servers disagree on whether these have content, so bytes behind them could be either a
    // body or a smuggled request.
    if matches!(method, Method::Connect | Method::Trace) && !framing.is_empty() {
        return Err(Reject::UNEXPECTED_BODY);
    }
    Ok(framing)
}

/// The status and the request's method decide before the fields do.
pub(crate) fn of_response(status: u16, length: Length, request: Method) -> BodyFraming {
    match status {
        101 => return BodyFraming::Tunnel,
        200..=299 if request == Method::Connect => return BodyFraming::Tunnel,
        100..=199 | 204 | 304 => return BodyFraming::None,
        _ if request == Method::Head => return BodyFraming::None,
        _ => {}
    }
    match length {
        Length::Unsaid => BodyFraming::UntilClose,
        Length::Bytes(n) => BodyFraming::Length(n),
        Length::Chunked => BodyFraming::Chunked,
    }
}
