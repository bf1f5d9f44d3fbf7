//! The task of a fill (a fetch that several requests can share). It asks the origin, judges the answer when
//! its head arrives, and streams the answer into the store and to the followers (the requests that share the
//! fetch).

mod body;
mod gap;
mod head;
pub(crate) mod judge;
pub(crate) mod keep;
mod memory;
mod open;
pub(crate) mod pace;
mod part;
pub(crate) mod put;
pub(crate) mod refresh;
mod rest;

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use foxy_base::first;
use foxy_http_rules::range::Span;
use foxy_http_rules::{CachingFacts, conditional};
use foxy_http1::{BodyReader, Method, ResponseHead, ResponseParts, write};
use foxy_store::Object;

use crate::Event;
use crate::cache::owned_request::OwnedRequest;
use crate::cache::serve::find::Primary;
use crate::fill::FillWriter;
use crate::http::via::Changes;
use crate::mirrors::Edit;
use crate::origin::UpstreamError;
use crate::origin::exchange::Leased;
use crate::origin::limit::Permit;
use crate::state::ledger::Use;
use crate::state::local::Local;
use body::{Body, Ended, unless_abandoned};
pub(crate) use head::{FillHead, ReadableBody};
pub(crate) use judge::strong_etag;
use judge::{OriginRequest, Times};
use keep::Keeper;
use open::{Opened, complete, open};
use pace::Pace;
use part::Completion;
use rest::{Beside, Source};

/// The range that a fill requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ranged {
    /// No range: the complete object.
    No,
    /// The client's own range.
    Own,
    /// This range of whole fragments. It covers the client's range, or the first of the client's ranges.
    Aligned(String),
}

/// The instructions for the task of a fill.
pub(crate) struct Job {
    pub(crate) req: Rc<OwnedRequest>,
    /// The complete stored object, which the answer of this fetch validates or replaces.
    pub(crate) stored: Option<Arc<Object>>,
    /// True if the request for the origin contains the validators of the stored object.
    pub(crate) validate: bool,
    /// A response in progress, which another fetch is receiving. This fetch validates it.
    pub(crate) in_progress: Option<Arc<FillHead>>,
    /// The permit to ask the origin, if the request already has one. The number of permits for each origin is
    /// limited.
    pub(crate) permit: Cell<Option<Permit>>,
    /// A stored part, if no complete object is stored.
    pub(crate) part: Option<Arc<Object>>,
    pub(crate) range: Ranged,
    /// The facts about the object under the primary key, if that object has a Vary list.
    pub(crate) primary: Option<Primary>,
    /// True if the client's own conditions are sent, because no stored object has validators to use instead.
    pub(crate) own_conditions: bool,
    /// True if the fetch continues even without followers.
    pub(crate) background: bool,
    /// True if requests may join the fetch as soon as its head is known. Before that, no request can join it.
    pub(crate) offers: bool,
}

pub(crate) use gap::spawn as spawn_gap;

/// Starts the task of a fill.
pub(crate) fn spawn(local: &Rc<Local>, job: Job, writer: FillWriter<FillHead>) {
    let busy = local.busy();
    let local = Rc::clone(local);
    local.count(Event::FillsStarted);
    let memory = local.proxy.ledger.take(Use::Connections, FETCH_BYTES);
    // The future is boxed before the spawn, because it has several kilobytes, and the runtime would move it
    // several times.
    tokio::task::spawn_local(Box::pin(async move {
        let fill = Arc::clone(writer.fill());
        match fetch(&local, &job, &writer).await {
            Ok(Ended::Whole(trailers)) => writer.finish(trailers),
            Ok(Ended::Overtaken) => writer.stop(),
            Err(error) => {
                local.count(Event::FillsFailed);
                writer.fail(error);
            }
        }
        local.proxy.fills.leave(&fill);
        drop((busy, memory));
    }));
}

/// Estimated memory of a fetch in bytes: its task and its connection, without the read buffer and the body.
const FETCH_BYTES: usize = 24 << 10;

/// The data that one attempt to fetch can use. With these data, the origin need not send the complete object.
struct Base<'a> {
    /// The object to revalidate.
    stale: Option<&'a Arc<Object>>,
    /// The response in progress to validate.
    in_progress: Option<&'a Arc<FillHead>>,
    /// The stored prefix to complete.
    rest: Option<Completion>,
}

impl Job {
    /// Returns a job that fetches the complete object for one request.
    pub(crate) fn plain(req: Rc<OwnedRequest>) -> Self {
        Self {
            req,
            stored: None,
            validate: false,
            in_progress: None,
            permit: Cell::new(None),
            part: None,
            range: Ranged::No,
            primary: None,
            own_conditions: false,
            background: false,
            offers: false,
        }
    }

    fn base(&self) -> Base<'_> {
        let completes = self.range == Ranged::No && !self.own_conditions;
        Base {
            stale: self.stored.as_ref().filter(|_| self.validate),
            in_progress: self.in_progress.as_ref(),
            rest: self
                .part
                .as_ref()
                .filter(|_| completes)
                .and_then(Completion::of),
        }
    }

    /// True if the range of the fetch is not the client's own range.
    fn is_widened(&self) -> bool {
        let Ranged::Aligned(range) = &self.range else {
            return false;
        };
        first(&self.req.head(), "Range") != Some(range.as_bytes())
    }

    fn asked(&self, times: Times) -> OriginRequest<'_> {
        OriginRequest {
            req: &self.req,
            facts: judge::as_get(&self.req),
            stored: self.stored.as_ref(),
            primary: self.primary.as_ref(),
            part: self.part.as_ref(),
            aligned: matches!(self.range, Ranged::Aligned(_)),
            widened: self.is_widened(),
            times,
        }
    }
}

async fn fetch(
    local: &Local,
    job: &Job,
    writer: &FillWriter<FillHead>,
) -> Result<Ended, UpstreamError> {
    let stored = job.stored.as_ref().filter(|_| !job.background);
    if let Some(error) = job.req.fails_at_once(local, stored) {
        return Err(error);
    }
    let mut base = job.base();
    loop {
        let permit = permit(local, job, writer).await?;
        local.proxy.fills.asked(writer.fill());
        let (request, purge) = (local.wall(), local.proxy.engine.purges().purge_sequence());
        let (mut leased, parts) = {
            let asking = pin!(ask(local, job, &base, writer));
            if job.background {
                asking.await?
            } else {
                let answer = unless_abandoned(writer, asking).await;
                answer.ok_or(UpstreamError::GivenUp)??
            }
        };
        drop(permit);
        if job.req.is_refused(parts.status()) {
            local.proxy.forget(job.req.base_hash, &job.req.base);
        }
        let response = local.wall();
        let asked = job.asked(Times {
            request,
            response,
            purge,
        });
        if let Some(old) = base.stale.filter(|_| parts.status() == 304) {
            let refreshed = refresh::apply(local, &asked, writer, &leased, parts, old);
            leased.up.buf.consume(parts.len());
            let origin = leased.up.peer;
            if parts.persistent(Method::Get) {
                leased.give_back(local, &job.req.to);
            }
            if let Some(object) = refreshed {
                writer.head(refresh::head(object, origin), usize::MAX);
                return Ok(Ended::Whole(Bytes::new()));
            }
            // The 304 cannot be applied to the stored object. So the origin is asked again, without
            // conditions.
            base.stale = None;
            continue;
        }
        if let Some(old) = base.in_progress.filter(|_| parts.status() == 304) {
            let updated = refresh::in_progress(local, &asked, &leased, parts, old);
            leased.up.buf.consume(parts.len());
            if parts.persistent(Method::Get) {
                leased.give_back(local, &job.req.to);
            }
            if let Some(head) = updated {
                writer.head(head, usize::MAX);
                return Ok(Ended::Whole(Bytes::new()));
            }
            base.in_progress = None;
            continue;
        }
        let rest = base.rest.take_if(|_| matches!(parts.status(), 206 | 416));
        let opened = match &rest {
            None => open(local, &asked, writer, &leased, parts)?,
            Some(rest) => match complete(local, &asked, rest, writer, &leased, parts) {
                Some(opened) => opened,
                None => {
                    // The answer is not the rest of the stored prefix. So the complete object is requested.
                    leased.count(local);
                    continue;
                }
            },
        };
        return stream(local, job, writer, leased, parts, opened).await;
    }
}

/// Returns the permit to ask the origin. Waits until a permit is free.
async fn permit(
    local: &Local,
    job: &Job,
    writer: &FillWriter<FillHead>,
) -> Result<Permit, UpstreamError> {
    if let Some(permit) = job.permit.take() {
        return Ok(permit);
    }
    match job.background {
        true => local.proxy.origins.permit(&job.req.to, None).await,
        false => permit_for_followers(local, &job.req, writer).await,
    }
}

/// Waits for a permit to ask the origin for `req`, as long as there are followers.
async fn permit_for_followers(
    local: &Local,
    req: &OwnedRequest,
    writer: &FillWriter<FillHead>,
) -> Result<Permit, UpstreamError> {
    let waiting = pin!(local.proxy.origins.permit(&req.to, req.client.client));
    let permit = unless_abandoned(writer, waiting).await;
    permit.ok_or(UpstreamError::GivenUp)?
}

/// Sends the request, and reads the answer up to the final head.
async fn ask(
    local: &Local,
    job: &Job,
    base: &Base<'_>,
    writer: &FillWriter<FillHead>,
) -> Result<(Leased, ResponseParts), UpstreamError> {
    let mut add: Vec<(&str, &[u8])> = Vec::new();
    if let Some(object) = base.stale
        && let Some(facts) = CachingFacts::decode(&object.meta().rules)
    {
        let validators = conditional::validators(object.fields(), &facts);
        add.extend(validators.if_none_match.map(|v| ("If-None-Match", v)));
        add.extend(
            validators
                .if_modified_since
                .map(|v| ("If-Modified-Since", v)),
        );
    }
    if let Some(head) = base.in_progress
        && let Some(facts) = &head.facts
    {
        let validators = conditional::validators(&head.fields, facts);
        add.extend(validators.if_none_match.map(|v| ("If-None-Match", v)));
        add.extend(
            validators
                .if_modified_since
                .map(|v| ("If-Modified-Since", v)),
        );
    }
    if let Some(rest) = &base.rest {
        add.push(("Range", rest.range.as_bytes()));
        add.push(("If-Range", &rest.etag));
    }
    if job.req.is_doubted(local) {
        add.push(("Cache-Control", b"no-cache"));
    }
    let known = own_validators(&job.req, &mut add);
    add.extend(known.as_deref().map(|etag| ("If-None-Match", etag)));
    let head = job.req.head();
    if let Ranged::Aligned(range) = &job.range {
        add.push(("Range", range.as_bytes()));
        add.extend(first(&head, "If-Range").map(|v| ("If-Range", v)));
    }
    let changes = Changes {
        drop_conditions: !job.own_conditions,
        drop_range: job.range != Ranged::Own,
        as_get: true,
        add: &add,
    };
    let request = job.req.upstream_head(local, &changes);
    let (mut leased, first) = Leased::ask(local, &job.req, &request, true).await?;
    let told = |head: &ResponseHead<'_>| {
        if head.status() != 100 {
            writer.interim(interim_text(head).into());
        }
    };
    let parts = leased.up.final_head(local, first, told).await?;
    Ok((leased, parts))
}

/// Removes Foxy's own ETag of a rewritten mirror document from the conditions in `add`. Returns the ETag that
/// the registry gave to the document before rewriting.
fn own_validators(req: &OwnedRequest, add: &mut Vec<(&str, &[u8])>) -> Option<Vec<u8>> {
    let document = req.role.mirrored()?.document()?;
    let at = add.iter().position(|(name, _)| *name == "If-None-Match")?;
    let (_, etag) = add.remove(at);
    foxy_mirror::of_origin(etag, &document.mark)
}

/// Returns the text of an interim response in the form that the client gets.
pub(crate) fn interim_text(head: &ResponseHead<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    write::status_line(&mut text, head.status());
    write::fields(&mut text, head.forward_fields());
    write::end(&mut text);
    text
}

async fn stream(
    local: &Local,
    job: &Job,
    writer: &FillWriter<FillHead>,
    mut leased: Leased,
    parts: ResponseParts,
    opened: Opened,
) -> Result<Ended, UpstreamError> {
    leased.up.buf.consume(parts.len());
    let mut head = opened.head;
    let mut edit = match head.status {
        200 => Edit::of(&local.proxy, &job.req, &head.fields, leased.up.is_coded()),
        _ => None,
    };
    // A body that is changed or checked during the transfer gets no length here. Without a length, lookups
    // find the object only when its body is complete. So no request gets a part of a wrong body.
    let length = head.length.filter(|_| edit.is_none());
    if edit.is_some() {
        head.strong_etag = None;
    }
    let part = opened.target.as_ref().and_then(|target| target.sparse);
    let mut keeper = Keeper::new(local, writer.fill(), opened.target, length);
    if head.not_stored.is_empty() && !keeper.is_kept() {
        head.not_stored = "no-room";
    }
    let part = part.and_then(|range| range.span);
    if let Some(body) = keeper.readable_body() {
        head.sparse = part.map(|_| Arc::clone(&body.head));
        let cover = keeper.cover(part.map(|span| span.end));
        writer.begin(part.map_or(0, |span| span.start), cover);
        let _ = head.readable_body.set(body);
    }
    let joinable = head.shared && head.facts.is_some();
    let failing = head.status >= 500;
    let mut source = Source::of(&head, part, &parts);
    writer.head(head, keeper.window());
    if writer.fill().has_rivals() && !failing {
        local.proxy.fills.prefer(writer.fill(), joinable);
    } else if job.offers && joinable {
        local.proxy.fills.offer(writer.fill());
    }
    if let (Some(Edit::Artefact(artefact)), Some(bytes)) = (&mut edit, &opened.before) {
        artefact.begins_with(bytes);
    }
    if let Some(bytes) = opened.before {
        keeper.push(local, writer.fill(), &bytes);
        writer.push(bytes);
    }
    let mut reader = BodyReader::new(parts.framing(Method::Get), &local.limits);
    let mut incoming = Incoming {
        leased: &mut leased,
        reader: &mut reader,
        keeper: &mut keeper,
        edit: edit.as_mut(),
        most: part.map_or(u64::MAX, Span::len),
    };
    let ended = match incoming.bring(local, job, writer, &mut source).await {
        Ok(ended) => ended,
        Err(error) => {
            keeper.truncated(local, writer.fill());
            return Err(error);
        }
    };
    if matches!(ended, Ended::Whole(_)) {
        if keeper.is_kept() && local.proxy.engine.is_congested() {
            // This future is boxed, because it is rarely needed. Without the box it would enlarge the future
            // of every miss.
            Box::pin(Pace::new().before_put(local)).await;
        }
        if keeper.finish(local, writer.fill()) {
            local.count(Event::FillsStored);
        }
    }
    if source.persistent() && reader.is_done() {
        leased.give_back(local, &job.req.to);
    } else {
        leased.count(local);
    }
    Ok(ended)
}

/// A body that arrives, and its source.
struct Incoming<'a> {
    leased: &'a mut Leased,
    reader: &'a mut BodyReader,
    keeper: &'a mut Keeper,
    /// The changes made to the body, if it is rewritten.
    edit: Option<&'a mut Edit>,
    /// Largest permitted length of the body, in bytes. A longer body is an error.
    most: u64,
}

impl Incoming<'_> {
    /// Reads the body to its end. If a connection breaks or falls silent, continues over another connection.
    async fn bring(
        &mut self,
        local: &Local,
        job: &Job,
        writer: &FillWriter<FillHead>,
        source: &mut Source,
    ) -> Result<Ended, UpstreamError> {
        loop {
            let timeout = source.timeout(&self.leased.up.timeouts);
            let longest = self.leased.up.timeouts.progress;
            let mut body = Body {
                background: job.background,
                most: self.most,
                timeout,
                leased: self.leased,
                reader: self.reader,
                keeper: self.keeper,
                edit: self.edit.as_deref_mut(),
            };
            let mut ended = body.run(local, writer).await;
            let mut next = None;
            let silent = matches!(ended, Err(UpstreamError::Stalled));
            if silent && timeout != longest {
                body.timeout = longest;
                // The future is rarely needed. It is boxed, because it would otherwise enlarge the task.
                match Box::pin(source.beside(local, job, writer, body)).await {
                    Beside::Ended(later) => ended = later,
                    Beside::Elsewhere(leased, framing) => next = Some((*leased, framing)),
                }
            }
            self.leased.count(local);
            let (leased, framing) = match (next, ended) {
                (Some(next), _) => next,
                (None, Ok(Ended::Whole(_))) if source.lacks(writer.pushed()) => {
                    let error = UpstreamError::Truncated;
                    Box::pin(source.rest(local, job, writer, error)).await?
                }
                (None, Ok(ended)) => return Ok(ended),
                (None, Err(error)) => Box::pin(source.rest(local, job, writer, error)).await?,
            };
            *self.leased = leased;
            *self.reader = BodyReader::new(framing, &local.limits);
        }
    }
}
