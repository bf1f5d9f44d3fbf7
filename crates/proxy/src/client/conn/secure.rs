//! The handshake of clients that use TLS.

use std::io;

use foxy_tls::Failure;

use super::Conn;
use crate::Event;
use crate::http::net::{Activity, TlsStream};

impl Conn<TlsStream> {
    /// Carries out the handshake, within the time limit of a request head. Returns false if the handshake
    /// failed.
    pub(crate) async fn secure(&mut self) -> bool {
        let io = self.link.io();
        io.set_activity(Activity::Handshake);
        let deadline = io.deadline(self.local.timeouts.head);
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
        self.context.shook_hands(&self.local, stream);
        done.is_ok()
    }
}
