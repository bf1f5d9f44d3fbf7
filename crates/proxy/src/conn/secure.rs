//! Clients that speak TLS: the handshake, and the hosts that they may then ask for.

use std::io;

use foxy_base::rule;
use foxy_http1::{RequestHead, RequestParts, Scheme};
use foxy_tls::{Certificate, Failure};

use super::Conn;
use super::caller::Caller;
use crate::Event;
use crate::http::Link;
use crate::net::{Doing, TlsStream, Transport};
use crate::route::Refusal;

/// The request is for a host that is not on the certificate of the connection.
const MISDIRECTED: Refusal = Refusal {
    status: 421,
    reason: "host-not-on-certificate",
};

impl Conn<TlsStream> {
    /// Carries out the handshake, as slowly as a request head may come; false if it failed.
    pub(crate) async fn secure(&mut self) -> bool {
        let io = self.link.io();
        io.set_doing(Doing::Handshake);
        let deadline = io.deadline(self.local.patience.head);
        let done = loop {
            if let Some(done) = io.transport().try_handshake() {
                break done;
            }
            if let Err(error) = io.readable(deadline).await {
                let late = error.kind() == io::ErrorKind::TimedOut;
                self.local.count(match late {
                    true => Event::TlsFailedTimeout,
                    false => Event::TlsFailedHandshake,
                });
                return false;
            }
        };
        self.local.count(match done {
            Ok(()) => Event::TlsHandshakes,
            Err(Failure::UnknownName) => Event::TlsFailedName,
            Err(Failure::Version) => Event::TlsFailedVersion,
            Err(
                Failure::Expired
                | Failure::NotYetValid
                | Failure::UnknownIssuer
                | Failure::BadCertificate,
            ) => Event::TlsFailedCertificate,
            Err(_) => Event::TlsFailedHandshake,
        });
        let stream = self.link.io().transport();
        if done.is_ok() && stream.is_resumed() {
            self.local.count(Event::TlsResumed);
        }
        self.caller.shook_hands(&self.local, stream);
        done.is_ok()
    }
}

impl Caller {
    /// Why this request may not come over this connection. A client that asked for one name in the
    /// handshake may ask for all names of the same certificate, and for no others (RFC 9110 section
    /// 7.4). One that got the default certificate may ask for any.
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
