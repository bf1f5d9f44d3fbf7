//! Fetches a run (consecutive fragments that a stored large object lacks) by one range request. Bytes are
//! accepted only if the answer has the strong ETag of the stored object. If the answer is of another version,
//! the stored object is outdated and is removed.
//!
//! An origin may answer with fewer bytes than requested (RFC 9110 section 14.2). The rest is requested again
//! as long as requests make progress. If two such fetches for one object fail in a row because the origin
//! sends unusable bytes or too few bytes, the object is removed. The next request then fetches the complete
//! object.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use foxy_http_rules as rules;
use foxy_http_rules::range::{ContentRange, Span};
use foxy_http1::{BodyReader, Method, ResponseHead};
use foxy_store::Object;

use super::body::{Body, Ended};
use super::judge::{Times, strong_etag};
use super::keep::Keeper;
use super::{FillHead, permit_for_followers};
use crate::Event;
use crate::cache::owned_request::OwnedRequest;
use crate::fill::{Cover, FillWriter};
use crate::http::via::Changes;
use crate::origin::UpstreamError;
use crate::origin::exchange::Leased;
use crate::state::local::Local;

/// Number of requests that are always allowed for one run, however few bytes the origin sends.
const SHORT_ANSWERS: u64 = 8;
/// Number of fetched bytes that allow one more request for the same run.
const SHORT_BYTES: u64 = 4 << 10;

/// The task to fetch one run of missing fragments.
#[derive(Debug)]
struct Job {
    req: Rc<OwnedRequest>,
    head: Arc<Object>,
    etag: Bytes,
    span: Span,
}

/// Starts the task that writes the bytes of `cover` to `writer`, in whole fragments.
pub(crate) fn spawn(
    local: &Rc<Local>,
    req: &Rc<OwnedRequest>,
    head: &Arc<Object>,
    cover: Cover,
    writer: FillWriter<FillHead>,
) {
    let busy = local.busy();
    let local = Rc::clone(local);
    local.count(Event::FillsStarted);
    let span = Span::new(cover.start, cover.end.min(head.total_length()));
    let whole = req.comes_whole();
    if whole && local.proxy.engine.is_current_version(head) {
        local.proxy.engine.supersede(head.hash(), head.key());
    }
    let job = strong_etag(head.fields())
        .filter(|_| !whole)
        .zip(span)
        .map(|(etag, span)| Job {
            req: Rc::clone(req),
            head: Arc::clone(head),
            etag,
            span,
        });
    tokio::task::spawn_local(Box::pin(async move {
        let fill = Arc::clone(writer.fill());
        let done = match &job {
            Some(job) => job.run(&local, &writer).await,
            None => Err(UpstreamError::GivenUp),
        };
        if let Some(job) = &job {
            job.learn(&local, &writer, done.as_ref().err());
        }
        match done {
            Ok(Ended::Whole(trailers)) => writer.finish(trailers),
            Ok(Ended::Overtaken) => writer.stop(),
            Err(error) => {
                local.count(Event::FillsFailed);
                writer.fail(error);
            }
        }
        local.proxy.fills.leave(&fill);
        drop(busy);
    }));
}

impl Job {
    /// Sends range requests until all bytes of the run have arrived.
    async fn run(
        &self,
        local: &Local,
        writer: &FillWriter<FillHead>,
    ) -> Result<Ended, UpstreamError> {
        let mut keeper: Option<Keeper> = None;
        for asked in 1.. {
            let before = writer.pushed();
            if writer.is_overtaken() {
                return Ok(Ended::Overtaken);
            }
            let Some(rest) = Span::new(self.span.start + before, self.span.end) else {
                break;
            };
            if writer.followers() == 0
                && let Some(keeper) = &mut keeper
            {
                keeper.worth_finishing(local, before)?;
            }
            let ended = self.ask(local, writer, rest, &mut keeper).await;
            let pushed = writer.pushed();
            match ended {
                Ok(Ended::Overtaken) => return Ok(Ended::Overtaken),
                Ok(Ended::Whole(_)) if pushed >= self.span.len() => break,
                // The answer was truncated or too short. The rest is requested as long as each answer
                // contains new bytes.
                Ok(Ended::Whole(_)) | Err(UpstreamError::Truncated) if pushed > before => {
                    if asked > SHORT_ANSWERS + pushed / SHORT_BYTES {
                        return Err(UpstreamError::BadResponse("range-too-short"));
                    }
                }
                Ok(Ended::Whole(_)) => {
                    return Err(UpstreamError::BadResponse("range-too-short"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Ended::Whole(Bytes::new()))
    }

    /// Sends one range request for `rest` and handles the answer.
    async fn ask(
        &self,
        local: &Local,
        writer: &FillWriter<FillHead>,
        rest: Span,
        keeper: &mut Option<Keeper>,
    ) -> Result<Ended, UpstreamError> {
        let range = format!("bytes={}-{}", rest.start, rest.end - 1);
        let changes = Changes {
            drop_conditions: true,
            drop_range: true,
            as_get: true,
            add: &[("Range", range.as_bytes()), ("If-Range", &self.etag)],
        };
        let request = self.req.upstream_head(local, &changes);
        let permit = permit_for_followers(local, &self.req, writer).await?;
        let (asked, purge) = (local.wall(), local.proxy.engine.purges().purge_sequence());
        let (mut leased, first) = Leased::ask(local, &self.req, &request, true).await?;
        let parts = leased.up.final_head(local, first, |_| {}).await?;
        drop(permit);
        let times = Times {
            request: asked,
            response: local.wall(),
            purge,
        };
        let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
        let length = parts.framing(Method::Get).length();
        let (verdict, part) = match self.judge(local, &head, rest, length, times) {
            Ok(judged) => judged,
            Err(error) => {
                leased.count(local);
                if error == UpstreamError::AnotherVersion {
                    self.forget(local, writer);
                }
                return Err(error);
            }
        };
        let mut kept = match (keeper.take(), verdict) {
            (Some(kept), Verdict::Store) => kept,
            (None, Verdict::Store) => Keeper::resume(local, writer.fill(), (&self.head, self.span)),
            // The caching rules forbid storing this answer, so its bytes are only sent.
            (_, Verdict::Pass) => Keeper::nothing(local),
        };
        writer.keep(kept.window());
        leased.up.buf.consume(parts.len());
        let mut reader = BodyReader::new(parts.framing(Method::Get), &local.limits);
        let mut body = Body {
            background: false,
            most: rest.start - self.span.start + part.len(),
            timeout: leased.up.timeouts.progress,
            leased: &mut leased,
            reader: &mut reader,
            keeper: &mut kept,
            edit: None,
        };
        let ended = body.run(local, writer).await;
        *keeper = Some(kept);
        if ended.is_ok() && parts.persistent(Method::Get) && reader.is_done() {
            leased.give_back(local, &self.req.to);
        } else {
            leased.count(local);
        }
        ended
    }

    fn judge(
        &self,
        local: &Local,
        head: &ResponseHead<'_>,
        rest: Span,
        length: Option<u64>,
        times: Times,
    ) -> Result<(Verdict, Span), UpstreamError> {
        const UNFIT: UpstreamError = UpstreamError::BadResponse("range-not-available");
        if head.status() != 206 {
            // 304, 5xx and the statuses that depend on the request (such as 401) do not show whether the
            // object has changed. All other statuses show that it has changed. 416 depends on the request
            // too. But here it shows a change, because the requested range lies within the stored object.
            let facts = super::judge::as_get(&self.req);
            let changed = rules::supersedes(&facts, head.status()) || head.status() == 416;
            return Err(match head.status() {
                _ if changed => UpstreamError::AnotherVersion,
                500.. => UpstreamError::ErrorStatus,
                _ => UNFIT,
            });
        }
        if strong_etag(head).as_ref() != Some(&self.etag) {
            return Err(UpstreamError::AnotherVersion);
        }
        let complete = self.head.total_length();
        let range = ContentRange::of_part(head);
        let exact = range.and_then(|range| {
            let same = range.complete.is_none_or(|length| length == complete);
            range.span.filter(|span| {
                // Fewer bytes than requested are allowed. Bytes that begin at a different offset are useless.
                let fits = span.start == rest.start && span.end <= rest.end;
                same && fits && length.is_none_or(|length| length == span.len())
            })
        });
        let Some(part) = exact else {
            let other = range.and_then(|range| range.complete);
            let changed = other.is_some_and(|length| length != complete);
            return Err(if changed {
                UpstreamError::AnotherVersion
            } else {
                UNFIT
            });
        };
        let request_head = self.req.head();
        let request = rules::Request {
            facts: &super::judge::as_get(&self.req),
            target: rules::invalidation::TargetUri::default(),
            fields: &request_head,
        };
        let response = rules::Response {
            status: 206,
            fields: head,
            request_time: times.request,
            response_time: times.response,
        };
        let config = local.proxy.rules(self.req.rule);
        let verdict = match rules::can_store(&request, &response, config) {
            Ok(_) => Verdict::Store,
            Err(_) => Verdict::Pass,
        };
        Ok((verdict, part))
    }

    /// Records the result of this fetch. If the origin has sent unusable bytes or too few bytes in two
    /// fetches of the object in a row, removes the object.
    fn learn(&self, local: &Local, writer: &FillWriter<FillHead>, error: Option<&UpstreamError>) {
        let (broken, key, now) = (&local.proxy.broken, self.head.hash(), local.wall());
        match error {
            None => broken.note(key, false, now),
            Some(UpstreamError::BadResponse(_) | UpstreamError::Truncated) => {
                if broken.has(key, now) {
                    broken.note(key, false, now);
                    self.forget(local, writer);
                } else {
                    broken.note(key, true, now);
                }
            }
            Some(_) => {}
        }
    }

    /// Removes the object, because its stored bytes are of an outdated version or can never be completed.
    fn forget(&self, local: &Local, writer: &FillWriter<FillHead>) {
        let engine = &local.proxy.engine;
        let _ = writer.fill().if_storable(|| {
            if engine.is_current_version(&self.head) {
                engine.supersede(self.head.hash(), self.head.key());
            }
        });
    }
}

/// The decision about the received bytes of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The bytes are sent and stored.
    Store,
    /// The bytes are only sent.
    Pass,
}
