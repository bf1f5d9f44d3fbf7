//! The redirect of a site from http to https.

use foxy_http1::{Authority, RequestParts, Scheme};

use super::{Conn, Finish};
use crate::Outcome;
use crate::manner::ToHttps;
use crate::net::Transport;
use crate::reply::send_page_with;
use crate::route::Refusal;

impl<T: Transport> Conn<T> {
    /// Sends the client to the same URL with https: its host, path and query stay as they are.
    pub(super) async fn moved(&mut self, parts: RequestParts, keep: bool, to: ToHttps) -> Finish {
        let head = parts.head(self.buf.filled(), &self.slots);
        // A body that nobody reads would be taken for the next request.
        let keep = keep && parts.framing().is_empty();
        let mut fields = b"Location: https://".to_vec();
        let mut refusal = Refusal {
            status: to.status,
            reason: "https-only",
        };
        match head.url(Scheme::Http) {
            Some(url) => {
                let authority = Authority {
                    port: Some(to.port),
                    ..url.authority
                };
                authority.write_normalised(Scheme::Https, &mut fields);
                fields.extend_from_slice(if url.path.is_empty() { b"/" } else { url.path });
                fields.extend_from_slice(b"\r\n");
            }
            None => {
                fields.clear();
                (refusal.status, refusal.reason) = (400, "missing-host");
            }
        }
        let (local, io, scratch) = (&self.local, &self.io, &mut self.scratch);
        let page = (refusal, &*self.role);
        let sent = send_page_with(local, io, scratch, page, &fields, Some(&head), keep).await;
        Finish {
            outcome: Outcome::Local,
            reason: refusal.reason,
            status: refusal.status,
            keep: keep && sent.is_ok(),
            body: sent.unwrap_or(0),
            ..Finish::default()
        }
    }
}
