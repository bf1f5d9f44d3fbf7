//! How an origin can fail, and what the client is told then.

use crate::Outcome;
use crate::guard::Forbidden;

/// Why there is no (complete) answer from an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamError {
    /// The destination may not be reached.
    Forbidden(Forbidden),
    /// The name does not exist.
    NoSuchName,
    /// No name server answered.
    NameService,
    /// No address accepted a connection.
    Connect,
    /// No address accepted a connection in time.
    ConnectTimeout,
    /// No answer in time.
    FirstByteTimeout,
    /// An answer that stopped in the middle for too long.
    Stalled,
    /// The connection ended before the head of an answer.
    Closed,
    /// The connection ended inside a body.
    Truncated,
    /// An answer that is not HTTP, or is ambiguous; the word says what.
    BadResponse(&'static str),
    /// The fetch was given up on Foxy's side.
    GivenUp,
    /// Too many requests wait for this origin already.
    Busy,
}

impl UpstreamError {
    /// The status for the client, if nothing was sent to it yet.
    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::Forbidden(_) => 403,
            Self::ConnectTimeout | Self::FirstByteTimeout | Self::Stalled => 504,
            Self::NameService | Self::GivenUp | Self::Busy => 503,
            _ => 502,
        }
    }

    /// Whether the exchange failed before a head for a reason that another attempt may not meet.
    pub(crate) const fn is_transport(self) -> bool {
        !matches!(self, Self::Forbidden(_) | Self::NoSuchName | Self::Busy)
    }

    /// The stable word.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Forbidden(why) => why.reason(),
            Self::NoSuchName => "origin-name-unknown",
            Self::NameService => "name-service-unavailable",
            Self::Connect => "origin-unreachable",
            Self::ConnectTimeout => "origin-connect-timeout",
            Self::FirstByteTimeout => "origin-answer-timeout",
            Self::Stalled => "origin-stalled",
            Self::Closed => "origin-closed",
            Self::Truncated => "origin-truncated",
            Self::BadResponse(why) => why,
            Self::GivenUp => "fetch-given-up",
            Self::Busy => "origin-busy",
        }
    }

    /// The word for log and counters.
    pub(crate) const fn outcome(self) -> Outcome {
        match self {
            Self::Forbidden(_) => Outcome::Denied,
            Self::ConnectTimeout | Self::FirstByteTimeout | Self::Stalled => Outcome::OriginTimeout,
            _ => Outcome::OriginError,
        }
    }
}
