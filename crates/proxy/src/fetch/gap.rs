//! Fetches a run of fragments that a stored large object lacks, by one range request. Bytes are
//! taken under the same strong validator only; an answer of another version ends the object's life.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use foxy_base::values;
use foxy_http_rules as rules;
use foxy_http_rules::range::{ContentRange, Span};
use foxy_http1::{BodyReader, Method, ResponseHead};
use foxy_store::Object;

use super::FillHead;
use super::body::Body;
use super::judge::{Times, strong_etag};
use super::keep::Keeper;
use crate::Event;
use crate::ask::Ask;
use crate::fill::{Cover, FillWriter};
use crate::local::Local;
use crate::upstream::UpstreamError;
use crate::upstream::exchange::Leased;
use crate::via::Changes;

/// The origin no longer has what is stored.
pub(crate) const ANOTHER_VERSION: UpstreamError = UpstreamError::BadResponse("another-version");

/// A run that is missing.
#[derive(Debug)]
struct Job {
    ask: Rc<Ask>,
    head: Arc<Object>,
    etag: Bytes,
    span: Span,
}

/// Starts the task that writes `writer`: the bytes of `cover`, in whole fragments.
pub(crate) fn spawn(
    local: &Rc<Local>,
    ask: &Rc<Ask>,
    head: &Arc<Object>,
    cover: Cover,
    writer: FillWriter<FillHead>,
) {
    let busy = local.busy();
    let local = Rc::clone(local);
    local.count(Event::FillsStarted);
    let span = Span::new(cover.start, cover.end.min(head.total_length()));
    let job = strong_etag(head.fields())
        .zip(span)
        .map(|(etag, span)| Job {
            ask: Rc::clone(ask),
            head: Arc::clone(head),
            etag,
            span,
        });
    tokio::task::spawn_local(Box::pin(async move {
        let fill = Arc::clone(writer.fill());
        let done = match job {
            Some(job) => job.run(&local, &writer).await,
            None => Err(UpstreamError::GivenUp),
        };
        match done {
            Ok(true) => writer.finish(Bytes::new()),
            Ok(false) => writer.stop(),
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
    /// Whether all of the run came.
    async fn run(
        &self,
        local: &Local,
        writer: &FillWriter<FillHead>,
    ) -> Result<bool, UpstreamError> {
        let range = format!("bytes={}-{}", self.span.start, self.span.end - 1);
        let changes = Changes {
            drop_conditions: true,
            drop_range: true,
            as_get: true,
            add: &[("Range", range.as_bytes()), ("If-Range", &self.etag)],
        };
        let request = self.ask.upstream_head(local, &changes);
        let (asked, purge) = (local.wall(), local.proxy.engine.purge_sequence());
        let (mut leased, first) = Leased::ask(local, &self.ask.to, &request, true).await?;
        let parts = leased.up.final_head(local, first, |_| {}).await?;
        let times = Times {
            request: asked,
            response: local.wall(),
            purge,
        };
        let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
        let length = parts.framing(Method::Get).length();
        let mut keeper = match self.judge(local, &head, length, times) {
            Verdict::Store => Keeper::resume(local, &self.head, self.span),
            Verdict::Pass => Keeper::nothing(local),
            Verdict::Refuse { changed } => {
                leased.count(local);
                if changed {
                    self.forget(local, writer);
                    return Err(ANOTHER_VERSION);
                }
                return Err(UpstreamError::BadResponse("range-not-available"));
            }
        };
        leased.up.buf.consume(parts.len());
        writer.keep(keeper.window());
        let mut reader = BodyReader::new(parts.framing(Method::Get), &local.limits);
        let mut body = Body {
            background: false,
            most: self.span.len(),
            leased: &mut leased,
            reader: &mut reader,
            keeper: &mut keeper,
        };
        let ended = body.run(local, writer).await;
        if ended.is_ok() && parts.persistent(Method::Get) && reader.is_done() {
            leased.give_back(local, &self.ask.to);
        } else {
            leased.count(local);
        }
        ended?;
        Ok(writer.pushed() == self.span.len())
    }

    fn judge(
        &self,
        local: &Local,
        head: &ResponseHead<'_>,
        length: Option<u64>,
        times: Times,
    ) -> Verdict {
        if head.status() != 206 {
            // An error says nothing about the object, another answer that it changed.
            let digest = super::judge::as_get(&self.ask);
            let changed = rules::supersedes(&digest, head.status()) || head.status() == 416;
            return Verdict::Refuse { changed };
        }
        if strong_etag(head).as_ref() != Some(&self.etag) {
            return Verdict::Refuse { changed: true };
        }
        let complete = self.head.total_length();
        let mut lines = values(head, "Content-Range");
        let range = lines.next().and_then(ContentRange::parse);
        let exact = range.is_some_and(|range| {
            // Less than was asked for is allowed, a beginning elsewhere of no use.
            let fits = range.span.is_some_and(|span| {
                let whole = length.is_none_or(|length| length == span.len());
                whole && span.start == self.span.start && span.end <= self.span.end
            });
            fits && range.complete.is_none_or(|length| length == complete)
        });
        if !exact || lines.next().is_some() {
            let other = range.and_then(|range| range.complete);
            let changed = other.is_some_and(|length| length != complete);
            return Verdict::Refuse { changed };
        }
        let request_head = self.ask.head();
        let request = rules::Request {
            digest: &super::judge::as_get(&self.ask),
            target: rules::invalidation::TargetUri::default(),
            fields: &request_head,
        };
        let response = rules::Response {
            status: 206,
            fields: head,
            request_time: times.request,
            response_time: times.response,
        };
        let config = local.proxy.rules(self.ask.rule);
        match rules::can_store(&request, &response, config) {
            Ok(_) => Verdict::Store,
            Err(_) => Verdict::Pass,
        }
    }

    /// The stored bytes are of a version that is gone.
    fn forget(&self, local: &Local, writer: &FillWriter<FillHead>) {
        let engine = &local.proxy.engine;
        let _ = writer.fill().if_storable(|| {
            if engine.is_current_version(&self.head) {
                engine.supersede(self.head.hash(), self.head.key());
            }
        });
    }
}

/// What is done with an answer.
enum Verdict {
    /// It is sent and stored.
    Store,
    /// It is sent only.
    Pass,
    /// Not the bytes that were asked for.
    Refuse {
        /// The stored ones are out of date too.
        changed: bool,
    },
}
