//! A body that breaks off is continued by a range request, once for all followers, where a strong
//! validator proves that the rest is of the same representation (RFC 9110 section 15.3.7).

use std::pin::pin;

use bytes::Bytes;
use foxy_base::values;
use foxy_http_rules::range::{ContentRange, Span};
use foxy_http1::{BodyFraming, Method, ResponseHead, ResponseParts};

use super::body::unless_abandoned;
use super::{FillHead, Job, permit};
use crate::fill::FillWriter;
use crate::local::Local;
use crate::upstream::UpstreamError;
use crate::upstream::exchange::Leased;
use crate::via::Changes;

/// Attempts without a single new byte before the fetch fails.
const FRUITLESS_MAX: u8 = 2;

/// Where the bytes of a running fetch come from, and how to go on after a break.
#[derive(Debug)]
pub(super) struct Source {
    /// Offset of the first byte of this body in the representation.
    start: u64,
    /// One past its last byte, if that is known.
    end: Option<u64>,
    /// The strong ETag; without one a broken body stays broken.
    etag: Option<Bytes>,
    /// Bytes that had come at the last break, and the attempts since then that brought none.
    broke_at: u64,
    fruitless: u8,
    /// Whether the connection can be used again after this body.
    persistent: bool,
    continued: bool,
}

impl Source {
    /// For the body of `head`; `part` if that is a part of the representation.
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

    /// Whether a body that ended after `pushed` bytes is shorter than it should be: the origin may
    /// answer a range request with less than was asked for.
    pub(super) fn lacks(&self, pushed: u64) -> bool {
        self.continued && self.end.is_some_and(|end| self.start + pushed < end)
    }

    /// Whether the connection can be used again after this body.
    pub(super) const fn persistent(&self) -> bool {
        self.persistent
    }

    /// A connection that brings the bytes after those pushed so far.
    ///
    /// # Errors
    /// `error`, if the body cannot be continued.
    pub(super) async fn rest(
        &mut self,
        local: &Local,
        job: &Job,
        writer: &FillWriter<FillHead>,
        error: UpstreamError,
    ) -> Result<(Leased, BodyFraming), UpstreamError> {
        let pushed = writer.pushed();
        let etag = self.etag.clone().filter(|_| {
            matches!(error, UpstreamError::Truncated | UpstreamError::Stalled) && pushed > 0
        });
        let Some(etag) = etag else {
            return Err(error);
        };
        self.fruitless = match pushed > self.broke_at {
            true => 0,
            false => self.fruitless + 1,
        };
        self.broke_at = pushed;
        while self.fruitless < FRUITLESS_MAX {
            match self.ask(local, job, writer, &etag).await {
                Ok(Some(next)) => return Ok(next),
                // Another version, or an origin without ranges.
                Ok(None) => break,
                Err(UpstreamError::GivenUp) => break,
                Err(_) => self.fruitless += 1,
            }
        }
        Err(error)
    }

    /// Asks once; `None` if the answer is not the rest of this body.
    async fn ask(
        &mut self,
        local: &Local,
        job: &Job,
        writer: &FillWriter<FillHead>,
        etag: &Bytes,
    ) -> Result<Option<(Leased, BodyFraming)>, UpstreamError> {
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
        let request = job.ask.upstream_head(local, &changes);
        let asking = pin!(async {
            let _permit = permit(local, job, writer).await?;
            let (mut leased, first) = Leased::ask(local, &job.ask.to, &request, true).await?;
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
        self.end = end.or(self.end);
        self.persistent = parts.persistent(Method::Get);
        self.continued = true;
        leased.up.buf.consume(parts.len());
        Ok(Some((leased, parts.framing(Method::Get))))
    }

    /// Whether an answer is the rest from byte `from` on: then the end of the whole body, if it
    /// says so.
    fn continues(
        &self,
        head: &ResponseHead<'_>,
        status: u16,
        from: u64,
        etag: &Bytes,
    ) -> Option<Option<u64>> {
        let mut lines = values(head, "Content-Range");
        let range = ContentRange::parse(lines.next()?)?;
        let alone = lines.next().is_none();
        let span = range.span?;
        let same = status == 206 && super::strong_etag(head).as_ref() == Some(etag);
        let inside = self.end.is_none_or(|end| span.end <= end);
        // A body of unknown length ends where the representation does.
        let end = self.end.or(range.complete);
        (same && alone && inside && span.start == from && end.is_some()).then_some(end)
    }
}
