//! Failures of origins, and the answer that the client gets for each failure.

use foxy_http_rules::Flags;
use foxy_store::Object;
use foxy_tls::Failure;

use crate::access::guard::Forbidden;
use crate::cache::stored::stored_facts;
use crate::mirrors::BadBody;
use crate::sites::local_responses::MAINTENANCE;
use crate::{Outcome, Trouble};

/// Reason why there is no answer, or no complete answer, from an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamError {
    /// The guard of destinations or an access rule forbids the destination.
    Forbidden(Forbidden),
    /// The name does not exist.
    NoSuchName,
    /// No name server answered.
    NameService,
    /// No address accepted a connection.
    Connect,
    /// No address accepted a connection in time.
    ConnectTimeout,
    /// The TLS handshake failed, or the origin's certificate was rejected.
    Tls(Failure),
    /// No answer began in time.
    FirstByteTimeout,
    /// No byte arrived for too long in the middle of an answer.
    Stalled,
    /// The connection ended before the head of an answer.
    Closed,
    /// The connection ended in the middle of a body.
    Truncated,
    /// The answer is not HTTP, or is ambiguous. The value is the fixed word for the error.
    BadResponse(&'static str),
    /// The origin no longer has the stored version.
    AnotherVersion,
    /// The origin answered a request for missing bytes with an error status. This status does not show
    /// whether the origin still has the stored version.
    ErrorStatus,
    /// Foxy gave up the fetch.
    GivenUp,
    /// The origins of the site are not asked now, because of maintenance.
    Maintenance,
    /// Too many requests wait for this origin.
    Busy,
    /// The origin cannot be reached, and the stored answer must not be used without validation. The value is
    /// the fixed word for the error that prevented the validation.
    Unvalidated(&'static str),
}

impl From<BadBody> for UpstreamError {
    fn from(BadBody(reason): BadBody) -> Self {
        Self::BadResponse(reason)
    }
}

impl UpstreamError {
    /// Returns the error for a request whose stored answer is `stored`. If the stored answer must be
    /// validated and the origin cannot be reached, the error has the status 504 (RFC 9111 section 5.2.2.2).
    pub(crate) fn validating(self, stored: Option<&Object>) -> Self {
        let must = Flags::MUST_REVALIDATE.with(Flags::PROXY_REVALIDATE);
        let facts = stored.and_then(stored_facts);
        match self {
            Self::NoSuchName | Self::NameService | Self::Connect | Self::Closed | Self::Tls(_)
                if facts.is_some_and(|facts| facts.flags.any(must)) =>
            {
                Self::Unvalidated(self.reason())
            }
            other => other,
        }
    }

    /// Returns true if the destination cannot be reached now.
    pub(super) const fn is_no_connection(self) -> bool {
        matches!(
            self,
            Self::NameService | Self::Connect | Self::ConnectTimeout
        )
    }

    /// Returns the status for the client, if no bytes were sent to the client yet.
    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::Forbidden(_) => 403,
            Self::ConnectTimeout
            | Self::FirstByteTimeout
            | Self::Stalled
            | Self::Unvalidated(_) => 504,
            Self::NameService | Self::GivenUp | Self::Busy | Self::Maintenance => 503,
            _ => 502,
        }
    }

    /// Returns true if a second attempt may succeed. The caller uses this function for an exchange that
    /// failed before the head of an answer arrived.
    pub(crate) const fn is_transport(self) -> bool {
        !matches!(
            self,
            Self::Forbidden(_) | Self::NoSuchName | Self::Busy | Self::Maintenance | Self::Tls(_)
        )
    }

    /// Returns the fixed word for the error. Logs and error answers contain this word.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Forbidden(why) => why.reason(),
            Self::NoSuchName => "origin-name-unknown",
            Self::NameService => "name-service-unavailable",
            Self::Connect => "origin-unreachable",
            Self::ConnectTimeout => "origin-connect-timeout",
            Self::Tls(failure) => tls_reason(failure),
            Self::FirstByteTimeout => "origin-answer-timeout",
            Self::Stalled => "origin-stalled",
            Self::Closed => "origin-closed",
            Self::Truncated => "origin-truncated",
            Self::BadResponse(why) | Self::Unvalidated(why) => why,
            Self::AnotherVersion => "another-version",
            Self::ErrorStatus => "range-not-available",
            Self::GivenUp => "fetch-given-up",
            Self::Busy => "origin-busy",
            Self::Maintenance => MAINTENANCE.reason,
        }
    }

    /// Returns true if the origin may have carried out the request. `replayed` is true if the request was
    /// first sent on a pooled connection that broke. In this case, the origin may have received the request
    /// on the broken connection, even if Foxy then failed to open a new one.
    pub(crate) const fn may_have_reached_it(self, replayed: bool) -> bool {
        match self {
            Self::Forbidden(_) | Self::NoSuchName | Self::NameService | Self::Maintenance => false,
            Self::Connect | Self::ConnectTimeout | Self::Tls(_) => replayed,
            _ => true,
        }
    }

    /// Returns the kind of failure of the origin. Returns `None` if Foxy itself, and not the origin, is the
    /// cause of the error.
    pub(crate) const fn trouble(self) -> Option<Trouble> {
        Some(match self {
            Self::NoSuchName | Self::NameService => Trouble::Name,
            Self::Connect => Trouble::Connect,
            Self::ConnectTimeout => Trouble::ConnectTimeout,
            Self::Tls(_) => Trouble::Tls,
            Self::FirstByteTimeout => Trouble::AnswerTimeout,
            Self::Stalled => Trouble::Stalled,
            Self::Closed | Self::Truncated => Trouble::Closed,
            Self::BadResponse(_) => Trouble::BadResponse,
            Self::Busy => Trouble::Busy,
            Self::Forbidden(_)
            | Self::AnotherVersion
            | Self::ErrorStatus
            | Self::GivenUp
            | Self::Maintenance
            | Self::Unvalidated(_) => return None,
        })
    }

    /// Returns the outcome of the request, which logs and counters use.
    pub(crate) const fn outcome(self) -> Outcome {
        match self {
            Self::Forbidden(_) => Outcome::Denied,
            Self::Maintenance => Outcome::Local,
            Self::ConnectTimeout | Self::FirstByteTimeout | Self::Stalled => Outcome::OriginTimeout,
            _ => Outcome::OriginError,
        }
    }
}

const fn tls_reason(failure: Failure) -> &'static str {
    match failure {
        Failure::Expired => "origin-certificate-expired",
        Failure::NotYetValid => "origin-certificate-not-yet-valid",
        Failure::WrongName => "origin-certificate-name",
        Failure::UnknownIssuer => "origin-certificate-issuer",
        Failure::BadCertificate => "origin-certificate-invalid",
        Failure::Version => "origin-tls-version",
        Failure::UnknownName | Failure::Handshake => "origin-tls-handshake",
    }
}
