//! Continues a truncated or stalled body by a range request. One such request fetches the rest for all
//! requests that share the fetch. A strong validator must prove that the rest belongs to the same
//! representation (RFC 9110 section 15.3.7).

use std::pin::pin;

use bytes::Bytes;
use foxy_http_rules::range::{ContentRange, Span};
use foxy_http1::{BodyFraming, Method, ResponseHead, ResponseParts};

use super::body::{Body, Ended, unless_abandoned};
use super::{FillHead, Job, permit};
use crate::fill::FillWriter;
use crate::http::net::Ticks;
use crate::http::via::Changes;
use crate::origin::UpstreamError;
use crate::origin::exchange::Leased;
use crate::origin::timeouts::OriginTimeoutTicks;
use crate::state::local::Local;

/// Largest number of attempts in a row that bring no new byte. After these attempts the fetch fails.
const FRUITLESS_MAX: u8 = 2;

/// The source of the bytes of a running fetch, and the data needed to continue after a break.
#[derive(Debug)]
pub(super) struct Source {
    /// Offset of the first byte of this body in the representation.
    start: u64,
    /// Offset after the last byte of this body, if it is known.
    end: Option<u64>,
    /// The strong ETag. Without it the body cannot be continued after a break.
    etag: Option<Bytes>,
    /// `broke_at` is the number of bytes received at the last break. `fruitless` counts the attempts since
    /// then without a new byte.
    broke_at: u64,
    fruitless: u8,
    /// True if the connection can be used again after this body.
    persistent: bool,
    continued: bool,
}

/// An answer that is the rest of a body.
struct Rest {
    leased: Leased,
    parts: ResponseParts,
    /// Offset after the last byte of the complete body, if known.
    end: Option<u64>,
}

/// The result of requesting the rest on a second connection while the origin is silent on the first.
pub(super) enum Beside {
    /// The body has ended on the first connection, completely or with an error.
    Ended(Result<Ended, UpstreamError>),
    /// A second connection delivers the rest.
    Elsewhere(Box<Leased>, BodyFraming),
}

impl Source {
    /// Returns the source for the body of `head`. `part` is the span of the body if it is a part of the
    /// representation.
    pub(super) fn of(head: &FillHead, part: Option<Span>, parts: &ResponseParts) -> Self {
        let start = part.map_or(0, |span| span.start);
        let end = match part {
            Some(span) => Some(span.end),
            None => head.length,
        };
        let whole = head.status == 200 || part.is_some();
        Self {
            start,
            end,
            etag: head.strong_etag.clone().filter(|_| whole),
            broke_at: 0,
            fruitless: 0,
            persistent: parts.persistent(Method::Get),
            continued: false,
        }
    }

    /// True if a body that ended after `pushed` bytes is too short. This is possible because the origin may
    /// answer a range request with fewer bytes than requested.
    pub(super) fn lacks(&self, pushed: u64) -> bool {
        self.continued && self.end.is_some_and(|end| self.start + pushed < end)
    }

    /// True if the connection can be used again after this body.
    pub(super) const fn persistent(&self) -> bool {
        self.persistent
    }

    /// Returns the longest time for which the origin may be silent while it sends the body. After this time
    /// the rest is requested on a second connection, if the rest can be requested.
    pub(super) fn timeout(&self, of: &OriginTimeoutTicks) -> Ticks {
        match self.etag.is_some() && self.fruitless < FRUITLESS_MAX {
            true => of.quiet,
            false => of.progress,
        }
    }

    /// Opens a connection that delivers the bytes after the first `pushed` bytes.
    ///
    /// # Errors
    /// Returns `error` if the body cannot be continued.
    pub(super) async fn rest(
        &mut self,
        local: &Local,
        job: &Job,
        writer: &FillWriter<FillHead>,
        error: UpstreamError,
    ) -> Result<(Leased, BodyFraming), UpstreamError> {
        let broken = matches!(error, UpstreamError::Truncated | UpstreamError::Stalled);
        if !broken || self.etag.is_none() || writer.pushed() == 0 {
            return Err(error);
        }
        self.note(writer.pushed());
        while self.fruitless < FRUITLESS_MAX {
            match self.ask(local, job, writer).await {
                Ok(Some(next)) => return Ok(self.take(next)),
                // The answer is of another version, the origin does not support ranges, or all followers have
                // left.
                Ok(None) | Err(UpstreamError::GivenUp) => break,
                Err(_) => self.fruitless += 1,
            }
        }
        Err(error)
    }

    /// Called when the origin has been silent for some time. Requests the rest on a second connection and
    /// keeps waiting on the first. The connection that delivers first is used.
    pub(super) async fn beside(
        &mut self,
        local: &Local,
        job: &Job,
        writer: &FillWriter<FillHead>,
        mut body: Body<'_>,
    ) -> Beside {
        let pushed = writer.pushed();
        self.note(pushed);
        let asked = {
            let asking = pin!(self.ask(local, job, writer));
            let mut running = pin!(body.run(local, writer));
            tokio::select! {
                biased;
                ended = running.as_mut() => return Beside::Ended(ended),
                asked = asking => match asked {
                    Ok(Some(next)) if writer.pushed() == pushed => next,
                    // The first connection has resumed, or there is no other source.
                    _ => return Beside::Ended(running.await),
                },
            }
        };
        let (leased, framing) = self.take(asked);
        Beside::Elsewhere(Box::new(leased), framing)
    }

    /// Notes that the body has stopped after `pushed` bytes.
    fn note(&mut self, pushed: u64) {
        self.fruitless = match pushed > self.broke_at {
            true => 0,
            false => self.fruitless + 1,
        };
        self.broke_at = pushed;
    }

    fn take(&mut self, next: Rest) -> (Leased, BodyFraming) {
        self.end = next.end.or(self.end);
        self.persistent = next.parts.persistent(Method::Get);
        self.continued = true;
        (next.leased, next.parts.framing(Method::Get))
    }

    /// Requests the rest once; `None` if the answer is not the rest of this body.
    async fn ask(
        &self,
        local: &Local,
        job: &Job,
        writer: &FillWriter<FillHead>,
    ) -> Result<Option<Rest>, UpstreamError> {
        let Some(etag) = &self.etag else {
            return Ok(None);
        };
        let from = self.start + self.broke_at;
        let range = match self.end {
            Some(end) => format!("bytes={from}-{}", end.saturating_sub(1)),
            None => format!("bytes={from}-"),
        };
        let changes = Changes {
            drop_conditions: true,
            drop_range: true,
            as_get: true,
            add: &[("Range", range.as_bytes()), ("If-Range", etag)],
        };
        let request = job.req.upstream_head(local, &changes);
        let asking = pin!(async {
            let _permit = permit(local, job, writer).await?;
            let (mut leased, first) = Leased::ask(local, &job.req, &request, true).await?;
            let parts = leased.up.final_head(local, first, |_| {}).await?;
            Ok((leased, parts))
        });
        let asked = match job.background {
            true => asking.await,
            false => unless_abandoned(writer, asking)
                .await
                .unwrap_or(Err(UpstreamError::GivenUp)),
        };
        let (mut leased, parts) = asked?;
        let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
        let Some(end) = self.continues(&head, parts.status(), from, etag) else {
            return Ok(None);
        };
        leased.up.buf.consume(parts.len());
        Ok(Some(Rest { leased, parts, end }))
    }

    /// Checks that an answer is the rest of this body from offset `from` on. Returns the end of the complete
    /// body; `None` if the answer is not the rest.
    fn continues(
        &self,
        head: &ResponseHead<'_>,
        status: u16,
        from: u64,
        etag: &Bytes,
    ) -> Option<Option<u64>> {
        let range = ContentRange::of_part(head)?;
        let span = range.span?;
        let same = status == 206 && super::strong_etag(head).as_ref() == Some(etag);
        let inside = self.end.is_none_or(|end| span.end <= end);
        // If the end of the body was unknown so far, the body extends to the end of the representation.
        let end = self.end.or(range.complete);
        (same && inside && span.start == from && end.is_some()).then_some(end)
    }
}
