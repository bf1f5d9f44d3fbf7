//! The end of a body (RFC 9112 section 6.3), derived from the head.

use crate::facts::Length;
use crate::{Method, Reject};

/// The way in which the body of a message is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is no body, and the head does not state a length.
    None,
    /// The body has this many bytes; the head states the length even if it is zero.
    Length(u64),
    /// The body has the chunked transfer coding.
    Chunked,
    /// The body extends to the end of the connection; responses only.
    UntilClose,
    /// The connection is a tunnel from here on, and no longer carries messages (2xx to CONNECT,
    /// 101).
    Tunnel,
}

impl BodyFraming {
    /// True if the body has no bytes.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }

    /// The length, if it is known before the body is read.
    #[must_use]
    pub const fn length(self) -> Option<u64> {
        match self {
            Self::None => Some(0),
            Self::Length(n) => Some(n),
            Self::Chunked | Self::UntilClose | Self::Tunnel => None,
        }
    }
}

/// The framing of a request. A request without Content-Length and Transfer-Encoding has no body.
pub(crate) fn of_request(method: Method, length: Length) -> Result<BodyFraming, Reject> {
    let framing = match length {
        Length::Unsaid => BodyFraming::None,
        Length::Bytes(n) => BodyFraming::Length(n),
        Length::Chunked => BodyFraming::Chunked,
    };
    // For requests with these methods, some servers expect content, and other servers do not. So the bytes
    // after the head could be a body or a smuggled request.
    if matches!(method, Method::Connect | Method::Trace) && !framing.is_empty() {
        return Err(Reject::UNEXPECTED_BODY);
    }
    Ok(framing)
}

/// The framing of a response. The status of the response and the method of the request have precedence over
/// the fields.
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
