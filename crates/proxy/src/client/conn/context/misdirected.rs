//! Checks that the host of a request is on the certificate of its TLS connection.

use foxy_base::rule;
use foxy_http1::{RequestHead, RequestParts, Scheme};
use foxy_tls::Certificate;

use super::ConnectionContext;
use crate::access::refusal::Refusal;
use crate::http::connection::Link;
use crate::http::net::Transport;

/// Refusal of a request for a host that is not on the certificate of the connection.
const MISDIRECTED: Refusal = Refusal {
    status: 421,
    reason: "host-not-on-certificate",
};

impl ConnectionContext {
    /// Returns a refusal if this request must not be sent over this connection. If the client named a host in
    /// the handshake and got a certificate for this host, it may send requests only for hosts on this
    /// certificate (RFC 9110 section 7.4). If the client got the default certificate, it may send requests
    /// for any host. The connections of the forward proxy have no such restriction.
    #[inline]
    pub(super) fn misdirected<T: Transport>(
        &self,
        link: &Link<T>,
        parts: &RequestParts,
    ) -> Option<Refusal> {
        let served = self.served.as_ref()?;
        not_on(served.certificate(), &link.head(parts))
    }
}

fn not_on(certificate: &Certificate, head: &RequestHead<'_>) -> Option<Refusal> {
    let url = head.url(Scheme::Https)?;
    let right = match url.authority.host {
        foxy_http1::Host::Name(name) => certificate.is_for(name),
        foxy_http1::Host::V6(ip) => certificate.is_for(ip.to_string().as_bytes()),
    };
    let wrong = rule!(
        "site: a connection is for the hosts on its certificate",
        !right,
        false
    );
    wrong.then_some(MISDIRECTED)
}
