//! Fetches the rest of a body by a range request, after the source that delivered the beginning has failed.

use std::rc::Rc;

use bytes::Bytes;
use foxy_base::first;
use foxy_http_rules::range::ContentRange;
use foxy_http1::{BodyReader, Method};

use crate::cache::owned_request::OwnedRequest;
use crate::fill::fetch::strong_etag;
use crate::http::connection::Link;
use crate::http::net::Transport;
use crate::http::via::Changes;
use crate::origin::UpstreamError;
use crate::origin::exchange::Leased;
use crate::state::local::Local;

/// The missing bytes of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    /// Offset of the first missing byte.
    pub(crate) from: u64,
    /// Offset after the last missing byte.
    pub(crate) until: u64,
    /// Length of the complete object, if known.
    pub(crate) complete: Option<u64>,
    /// The strong ETag of the bytes sent so far.
    pub(crate) etag: Bytes,
}

impl Rest {
    /// Fetches the missing bytes and sends them without any framing, because the head of the answer announced
    /// their length. Returns the number of bytes sent, which is the number of missing bytes.
    ///
    /// # Errors
    /// Returned if at least one of the missing bytes is not available. The caller must then abort the
    /// connection.
    pub(super) async fn send<T: Transport>(
        &self,
        local: &Rc<Local>,
        req: &OwnedRequest,
        link: &Link<T>,
    ) -> Result<u64, UpstreamError> {
        if self.from >= self.until {
            return Ok(0);
        }
        let range = format!("bytes={}-{}", self.from, self.until - 1);
        let changes = Changes {
            drop_conditions: true,
            drop_range: true,
            as_get: true,
            add: &[("Range", range.as_bytes()), ("If-Range", &self.etag)],
        };
        let request = req.upstream_head(local, &changes);
        let (mut leased, begun) = Leased::ask(local, req, &request, true).await?;
        let parts = leased.up.final_head(local, begun, |_| {}).await?;
        let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
        let range = first(&head, "Content-Range").and_then(ContentRange::parse);
        let same = parts.status() == 206
            && strong_etag(&head).as_ref() == Some(&self.etag)
            && range.is_some_and(|range| {
                let span = range.span.map(|span| (span.start, span.end));
                let lengths = range.complete.zip(self.complete);
                span == Some((self.from, self.until)) && lengths.is_none_or(|(now, was)| now == was)
            });
        if !same {
            return Err(UpstreamError::BadResponse("rest-not-available"));
        }
        leased.up.buf.consume(parts.len());
        let mut reader = BodyReader::new(parts.framing(Method::Get), &local.limits);
        let wanted = self.until - self.from;
        let mut sent = 0;
        loop {
            let piece = leased
                .up
                .next_piece(&mut reader, leased.up.timeouts.progress)
                .await?;
            if piece.end {
                break;
            }
            let bytes = &leased.up.buf.filled()[piece.range];
            sent += bytes.len() as u64;
            if sent > wanted {
                return Err(UpstreamError::BadResponse("rest-too-long"));
            }
            let written = link.send(local, bytes);
            written.await.map_err(|_| UpstreamError::GivenUp)?;
            leased.up.buf.consume(piece.consumed);
        }
        if sent < wanted {
            return Err(UpstreamError::Truncated);
        }
        if parts.persistent(Method::Get) && reader.is_done() {
            leased.give_back(local, &req.to);
        }
        Ok(sent)
    }
}
