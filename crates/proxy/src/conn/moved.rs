//! Redirects of a site: from http to https, and those that its rules say.

use foxy_http1::{Authority, RequestHead, RequestParts, Scheme};

use super::{Conn, Finish};
use crate::Outcome;
use crate::local::Local;
use crate::manner::ToHttps;
use crate::net::{Io, Transport};
use crate::reply::{Extra, Scratch, send_page_with};
use crate::rewriting::Recipient;
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
        Self::send_away(
            (&self.local, &self.io, &mut self.scratch),
            (refusal, Recipient::new(&self.role, &self.client)),
            (&head, &fields),
            keep,
        )
        .await
    }

    /// Sends the client to another URL, as a rule of its site says.
    pub(super) async fn redirected(
        &mut self,
        parts: RequestParts,
        keep: bool,
        (status, url): (u16, &[u8]),
    ) -> Finish {
        let head = parts.head(self.buf.filled(), &self.slots);
        let keep = keep && parts.framing().is_empty();
        let refusal = Refusal {
            status,
            reason: "redirect",
        };
        let mut fields = Vec::new();
        foxy_http1::write::field(&mut fields, b"Location", url);
        Self::send_away(
            (&self.local, &self.io, &mut self.scratch),
            (refusal, Recipient::new(&self.role, &self.client)),
            (&head, &fields),
            keep,
        )
        .await
    }

    async fn send_away(
        (local, io, scratch): (&Local, &Io<T>, &mut Scratch),
        page: (Refusal, Recipient<'_>),
        (head, fields): (&RequestHead<'_>, &[u8]),
        keep: bool,
    ) -> Finish {
        let extra = Extra {
            fields,
            ..Extra::default()
        };
        let sent = send_page_with(local, io, scratch, page, &extra, Some(head), keep).await;
        Finish::refused(page.0, Outcome::Local, keep, sent)
    }
}
