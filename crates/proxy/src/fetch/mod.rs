//! The task behind a fill: asks the origin, judges the answer at header time, streams it to the
//! followers and into the store.

pub(crate) mod judge;
mod keep;
mod refresh;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use foxy_base::{FieldBlock, KeyHash};
use foxy_http_rules::{Digest, conditional};
use foxy_http1::{BodyFraming, BodyReader, Method, ResponseHead, ResponseParts, write};
use foxy_store::Object;

use crate::Event;
use crate::ask::Ask;
use crate::fill::FillWriter;
use crate::local::Local;
use crate::serve::find::Primary;
use crate::upstream::UpstreamError;
use crate::upstream::exchange::Leased;
use crate::via::Changes;
pub(crate) use judge::strong_etag;
use keep::Keeper;

/// What followers learn at header time.
#[derive(Debug)]
pub(crate) struct FillHead {
    /// The origin's status.
    pub(crate) status: u16,
    pub(crate) origin: SocketAddr,
    /// Fields for the clients, without framing and Age.
    pub(crate) fields: FieldBlock,
    /// Length of the body, if known.
    pub(crate) length: Option<u64>,
    /// What decisions need, if the answer may be stored.
    pub(crate) digest: Option<Digest>,
    /// The origin's Age, for an answer that is not stored.
    pub(crate) age: Option<Bytes>,
    /// Vary list and selecting values.
    pub(crate) vary: Option<(Bytes, Bytes)>,
    /// The stored object that the origin said is still right; there is no body then.
    pub(crate) object: Option<Arc<Object>>,
    /// Others than the request that started the fill may have it.
    pub(crate) shared: bool,
    /// Why it is not stored; empty if it is.
    pub(crate) not_stored: &'static str,
    /// The strong ETag by which a rest can be asked for.
    pub(crate) strong_etag: Option<Bytes>,
}

/// What a fill is to do.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) ask: Rc<Ask>,
    /// What is stored and may be revalidated.
    pub(crate) stale: Option<Arc<Object>>,
    /// The primary entry, if it has a Vary list.
    pub(crate) primary: Option<Primary>,
    /// Send the client's own conditions (there is nothing stored to use instead).
    pub(crate) own_conditions: bool,
    /// Nobody waits for the answer: go on without followers.
    pub(crate) background: bool,
}

/// Starts the task.
pub(crate) fn spawn(local: &Rc<Local>, job: Job, writer: FillWriter<FillHead>) {
    let busy = local.busy();
    let local = Rc::clone(local);
    local.count(Event::FillsStarted);
    tokio::task::spawn_local(async move {
        let fill = Arc::clone(writer.fill());
        match fetch(&local, &job, &writer).await {
            Ok(trailers) => writer.finish(trailers),
            Err(error) => {
                local.count(Event::FillsFailed);
                writer.fail(error);
            }
        }
        local.proxy.fills.leave(&fill);
        drop(busy);
    });
}

async fn fetch(
    local: &Local,
    job: &Job,
    writer: &FillWriter<FillHead>,
) -> Result<Bytes, UpstreamError> {
    let mut stale = job.stale.as_ref();
    loop {
        let request_time = local.wall();
        let (mut leased, parts) = ask(local, job, stale, writer).await?;
        let times = judge::Times {
            request: request_time,
            response: local.wall(),
        };
        let Some(old) = stale.filter(|_| parts.status() == 304) else {
            return stream(local, job, writer, leased, parts, times).await;
        };
        let refreshed = refresh::apply(local, job, writer, &leased, parts, old, times);
        leased.up.buf.consume(parts.len());
        let origin = leased.up.peer;
        if parts.persistent(Method::Get) {
            leased.give_back(local, &job.ask.to);
        }
        match refreshed {
            Some(object) => {
                writer.head(refresh::head(object, origin), usize::MAX);
                return Ok(Bytes::new());
            }
            // The 304 does not speak of what is stored: ask again, without conditions.
            None => stale = None,
        }
    }
}

/// Sends the request and reads up to the final head.
async fn ask(
    local: &Local,
    job: &Job,
    stale: Option<&Arc<Object>>,
    writer: &FillWriter<FillHead>,
) -> Result<(Leased, ResponseParts), UpstreamError> {
    let mut add: Vec<(&str, &[u8])> = Vec::new();
    if let Some(object) = stale
        && let Some(digest) = Digest::decode(&object.meta().rules)
    {
        let validators = conditional::validators(object.fields(), &digest);
        add.extend(validators.if_none_match.map(|v| ("If-None-Match", v)));
        add.extend(
            validators
                .if_modified_since
                .map(|v| ("If-Modified-Since", v)),
        );
    }
    let changes = Changes {
        drop_conditions: !job.own_conditions,
        drop_range: true,
        as_get: true,
        add: &add,
    };
    let request = job.ask.upstream_head(local, &changes);
    let (mut leased, mut parts) = Leased::ask(local, &job.ask.to, &request, true).await?;
    while parts.is_interim() {
        let text = interim_text(&parts.head(leased.up.buf.filled(), &leased.up.slots));
        leased.up.buf.consume(parts.len());
        if parts.status() != 100 {
            writer.interim(text.into());
        }
        parts = leased.up.next_head(local).await?;
    }
    Ok((leased, parts))
}

/// An interim response as it is passed on.
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
    times: judge::Times,
) -> Result<Bytes, UpstreamError> {
    let framing = parts.framing(Method::Get);
    if framing == BodyFraming::Tunnel {
        return Err(UpstreamError::BadResponse("unexpected-upgrade"));
    }
    let (head, plan) = judge::judge(local, job, writer.fill(), &leased, parts, times)
        .map_err(|_| UpstreamError::BadResponse("field-too-large"))?;
    leased.up.buf.consume(parts.len());
    local.proxy.fills.overtake(writer.fill());
    let superseded = judge::superseded(&job.ask, parts.status());
    if superseded {
        supersede(
            local,
            writer,
            plan.as_ref().map(|plan| (plan.hash, &plan.key)),
        );
    }
    let length = head.length;
    let mut keeper = Keeper::new(local, plan, length);
    writer.head(head, keeper.window());
    let mut reader = BodyReader::new(framing, &local.limits);
    let trailers = loop {
        let piece = leased
            .up
            .next_piece(&mut reader, local.patience.upstream)
            .await?;
        let bytes = Bytes::copy_from_slice(&leased.up.buf.filled()[piece.range]);
        leased.up.buf.consume(piece.consumed);
        if piece.end {
            break bytes;
        }
        if keeper.push(local, &bytes) {
            writer.keep(keeper.window());
        }
        writer.push(bytes);
        if writer.followers() == 0 && !job.background {
            keeper.worth_finishing(local, writer.pushed(), length)?;
        }
        writer.room(local.proxy.config.fill.lag).await;
    };
    if keeper.finish(local, writer.fill()) {
        local.count(Event::FillsStored);
    }
    if parts.persistent(Method::Get) && reader.is_done() {
        leased.give_back(local, &job.ask.to);
    } else {
        leased.count(local);
    }
    Ok(trailers)
}

/// Ends the life of what the answer replaces, before and regardless of storing it.
fn supersede(local: &Local, writer: &FillWriter<FillHead>, store: Option<(KeyHash, &Bytes)>) {
    let fill = writer.fill();
    let _ = fill.if_storable(|| {
        let engine = &local.proxy.engine;
        engine.supersede(fill.hash(), fill.key());
        if let Some((hash, key)) = store
            && hash != fill.hash()
        {
            engine.supersede(hash, key);
        }
    });
}
