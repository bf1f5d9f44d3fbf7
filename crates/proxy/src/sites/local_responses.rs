//! Responses that a site makes without its origins: redirects to https, maintenance, and error pages. The
//! module also defines the time limits for the origins of a site ([`OriginTimeouts`]).

use std::sync::Arc;
use std::time::Duration;

use crate::access::refusal::Refusal;

/// Refusal of a request while the site is under maintenance.
pub(crate) const MAINTENANCE: Refusal = Refusal {
    status: 503,
    reason: "maintenance",
};

/// Settings of the responses that a site makes without its origins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalResponses {
    /// The redirect for clients that do not use TLS.
    pub to_https: Option<ToHttps>,
    /// The state of maintenance, which decides whether the origins are asked.
    pub maintenance: Maintenance,
    /// Time in the field `Retry-After` of refusals during maintenance.
    pub retry_after: Duration,
    /// Error pages that replace Foxy's own pages, by status.
    pub pages: Arc<[ErrorPage]>,
}

/// A redirect to the same URL with https.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToHttps {
    /// 301 or 308.
    pub status: u16,
    /// The port of the https URL.
    pub port: u16,
}

/// The state of maintenance of a site, which decides whether its origins are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maintenance {
    /// The origins are asked.
    #[default]
    Off,
    /// The origins are not asked. Stored objects are sent, and every other request is answered with 503.
    Origin,
    /// Every request is answered with 503.
    All,
}

/// A page for answers that Foxy makes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPage {
    /// The status.
    pub status: u16,
    /// The media type.
    pub content_type: &'static str,
    /// The page.
    pub body: Arc<[u8]>,
}

/// Time limits for the origins of a site. `None` stands for the general limit of the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OriginTimeouts {
    /// Time to resolve the name, to connect and to complete the TLS handshake.
    pub connect: Option<Duration>,
    /// Time from the end of a request to the first byte of the answer.
    pub first_byte: Option<Duration>,
    /// Time without progress in a body.
    pub progress: Option<Duration>,
}

/// The treatment of a request before the cache is asked.
pub(crate) enum Aside {
    /// The request is handled as usual.
    No,
    /// The request is redirected.
    Moved(ToHttps),
    /// The request is refused.
    Closed,
}

impl LocalResponses {
    /// Returns the treatment of a request that came with TLS (`secure`) or without it.
    #[inline]
    pub(crate) fn aside(&self, secure: bool) -> Aside {
        match (self.to_https, self.maintenance) {
            (Some(to), _) if !secure => Aside::Moved(to),
            (_, Maintenance::All) => Aside::Closed,
            _ => Aside::No,
        }
    }

    /// Returns the page for a status.
    pub(crate) fn page(&self, status: u16) -> Option<&ErrorPage> {
        self.pages.iter().find(|page| page.status == status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_concern_plain_requests_and_go_before_maintenance() {
        let to = ToHttps {
            status: 308,
            port: 443,
        };
        let responses = |to_https, maintenance| LocalResponses {
            to_https,
            maintenance,
            ..LocalResponses::default()
        };
        let word = |responses: &LocalResponses, secure| match responses.aside(secure) {
            Aside::No => "no",
            Aside::Moved(_) => "moved",
            Aside::Closed => "closed",
        };
        for (to_https, maintenance, plain, secure) in [
            (None, Maintenance::Off, "no", "no"),
            (Some(to), Maintenance::Off, "moved", "no"),
            (None, Maintenance::Origin, "no", "no"),
            (None, Maintenance::All, "closed", "closed"),
            (Some(to), Maintenance::All, "moved", "closed"),
        ] {
            let responses = responses(to_https, maintenance);
            assert_eq!(
                (word(&responses, false), word(&responses, true)),
                (plain, secure)
            );
        }
    }
}
