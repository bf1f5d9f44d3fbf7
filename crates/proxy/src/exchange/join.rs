//! Joining of running fetches. This module decides which requests may join, how they wait, and how each
//! request may use the head that arrives. The head is judged separately for every waiting request.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use foxy_base::{WallTime, rule};
use foxy_http_rules::{CachingFacts, Decision, Fwd};
use foxy_http1::Version;
use foxy_store::Object;
use tokio::time::Instant;

use super::Exchange;
use super::ranged::{has_all, ranged};
use crate::cache::gate::Grant;
use crate::cache::key;
use crate::cache::owned_request::OwnedRequest;
use crate::cache::serve::find::Primary;
use crate::fill::fetch::{self, FillHead, Job, Ranged};
use crate::fill::{Follower, HeadEvent, Joined, Released};
use crate::http::net::Transport;
use crate::origin::UpstreamError;
use crate::origin::limit::Permit;
use crate::state::local::Local;
use crate::{Collapse, Event, Role};

/// The requirements of a request that needs a fetch.
#[derive(Debug)]
pub(crate) struct Want {
    /// Reason for asking the origin.
    pub(crate) reason: Fwd,
    /// True if the request for the origin contains the validators of the stored object.
    pub(crate) validate: bool,
    /// The complete stored object, which cannot be sent without asking the origin.
    pub(crate) stored: Option<Arc<Object>>,
    /// A stored part of the object, which does not answer the request.
    pub(crate) part: Option<Arc<Object>>,
    /// True if the fetch may request a range instead of the complete object. Not used if the fetch validates
    /// `stored`.
    pub(crate) range: bool,
    /// True if exactly the requested range is fetched, without widening.
    pub(crate) exact: bool,
    pub(crate) primary: Option<Primary>,
    /// Arrival time of the request.
    pub(crate) arrived: WallTime,
}

/// The next step of a request after its wait for a head.
pub(super) enum Verdict {
    /// Send an answer. The grant is the permission to send it.
    Send(Grant, Arc<FillHead>, Source),
    /// The request may share the answer once the origin has validated it for this request.
    Validate(Arc<FillHead>),
    /// The answer is another variant (Vary) than this request needs: join or start a fetch of the variant for
    /// this request.
    Variant(Primary),
    /// The answer is not for this request: start a separate fetch.
    OwnFetch,
    /// Another fetch has received a head: join that fetch.
    Elsewhere,
    /// The fetch that another request started has failed because of its connection to the origin. Another
    /// fetch may still succeed.
    LeaderFailed(UpstreamError),
    /// The head is overdue: start a further fetch.
    AskToo,
    /// The origin answers with an error. Its error page is only for the request that started the fetch.
    Failing(Arc<FillHead>),
    /// The fetch failed.
    Failed(UpstreamError),
    /// The client is gone.
    Gone,
}

/// Source of an answer's bytes.
pub(super) enum Source {
    /// The stream of the fill.
    Stream,
    /// A stored object, which the origin has validated.
    Object(Arc<Object>),
    /// An object that is still being stored. The requested bytes are sent from this object.
    Sparse(Arc<Object>),
    /// The response in progress that the request's own fetch has validated.
    InProgress(Arc<FillHead>),
}

/// Starts a background revalidation of `object`, unless a fetch of the same key is running.
pub(crate) fn revalidate(
    local: &Rc<Local>,
    req: Rc<OwnedRequest>,
    object: &Arc<Object>,
    primary: Option<Primary>,
    key: &[u8],
) {
    let hash = local.proxy.engine.keys().hash(key);
    if local.proxy.fills.contains(hash) {
        return;
    }
    if let Joined::Starts(writer, _) = local.proxy.fills.join(hash, key, req.base_hash) {
        let job = Job {
            stored: Some(Arc::clone(object)),
            validate: true,
            primary,
            background: true,
            ..Job::plain(req)
        };
        fetch::spawn(local, job, writer);
    }
}

/// Starts a background fetch of an object that a HEAD request has shown to exist, unless a fetch of the same
/// key is running.
pub(super) fn fetch_behind(local: &Rc<Local>, req: &Rc<OwnedRequest>) {
    let fills = &local.proxy.fills;
    if let Joined::Starts(writer, _) = fills.join(req.base_hash, &req.base, req.base_hash) {
        let job = Job {
            background: true,
            ..Job::plain(Rc::clone(req))
        };
        fetch::spawn(local, job, writer);
    }
}

impl<T: Transport> Exchange<'_, T> {
    /// Joins a fill (a fetch that several requests can share), or starts one.
    pub(super) fn enter(&self, want: &Want) -> Follower<FillHead> {
        let follower = join_or_start(&self.local, &self.req, want, |_| false);
        follower.unwrap_or_else(|| self.uncollapsed(want))
    }

    /// Starts a fill that no other request joins.
    pub(super) fn uncollapsed(&self, want: &Want) -> Follower<FillHead> {
        start_uncollapsed(&self.local, &self.req, want)
    }

    /// Waits for the head and judges it for this request.
    pub(super) async fn await_head(
        &mut self,
        want: &Want,
        follower: &mut Follower<FillHead>,
    ) -> Verdict {
        loop {
            let round = follower
                .next_round(Instant::now())
                .filter(|_| follower.collapsed());
            let event = tokio::select! {
                biased;
                event = poll_fn(|cx| follower.poll_head(cx)) => event,
                () = self.link.gone() => return Verdict::Gone,
                () = until(round) => {
                    if follower.take_turn(Instant::now()) {
                        return Verdict::AskToo;
                    }
                    continue;
                }
            };
            match event {
                Ok(HeadEvent::Interim(text)) => {
                    let wanted = self.req.head().version() == Version::Http11;
                    if wanted && self.link.send(&self.local, &text).await.is_err() {
                        return Verdict::Gone;
                    }
                }
                Ok(HeadEvent::Head(head)) => {
                    return judge(&self.local, &self.req, want, follower, head);
                }
                Err(Released::Elsewhere) => return Verdict::Elsewhere,
                // If the fetch that another request started fails because of its connection, this request
                // does not fail yet.
                Err(Released::Failed(error)) if follower.collapsed() && error.is_transport() => {
                    return Verdict::LeaderFailed(error);
                }
                Err(Released::Failed(error)) => return Verdict::Failed(error),
                Err(Released::Lagged) => return Verdict::OwnFetch,
            }
        }
    }
}

/// Judges a head. A request takes the answer of its own fetch. It takes the answer of another request's fetch
/// if the caching rules allow it.
fn judge(
    local: &Local,
    req: &OwnedRequest,
    want: &Want,
    follower: &Follower<FillHead>,
    head: Arc<FillHead>,
) -> Verdict {
    let now = local.wall();
    let grant = match follower.own() {
        Some(own) => Grant::own(own, head.facts.as_ref(), now),
        None => match shared(local, req, want, follower, &head) {
            Ok(grant) => grant,
            Err(verdict) => return verdict,
        },
    };
    if let Some(in_progress) = &head.validated {
        return Verdict::Send(
            grant,
            Arc::clone(&head),
            Source::InProgress(Arc::clone(in_progress)),
        );
    }
    let sparse = head.sparse.clone().or_else(|| {
        // The request wants a range, and the fill fetches the complete object.
        let range = req.facts.range && head.status == 200 && !head.ranged;
        let body = head.sized().filter(|_| range);
        body.map(|body| Arc::clone(&body.head))
    });
    let source = match (head.object.clone(), sparse) {
        (Some(object), _) => Source::Object(object),
        (None, Some(object)) => Source::Sparse(object),
        (None, None) => Source::Stream,
    };
    Verdict::Send(grant, head, source)
}

/// Returns the permission to take the answer of another request's fetch.
fn shared(
    local: &Local,
    req: &OwnedRequest,
    want: &Want,
    follower: &Follower<FillHead>,
    head: &Arc<FillHead>,
) -> Result<Grant, Verdict> {
    let failing = head.status >= 500 && head.facts.is_none();
    if failing && follower.waited() {
        return Err(Verdict::Failing(Arc::clone(head)));
    }
    let selects =
        |(list, values): &(bytes::Bytes, bytes::Bytes)| req.selected_by(local, list, values);
    let other = rule!(
        "share: a response in progress is for requests with its selecting values",
        !head.vary.as_ref().is_none_or(selects),
        false
    );
    if let Some(primary) = head.primary.clone().filter(|_| other && head.shared) {
        return Err(Verdict::Variant(primary));
    }
    let usable = head.sparse.is_some() || has_all(req, head);
    let facts = head
        .facts
        .as_ref()
        .filter(|_| head.shared && usable && !other);
    let right = |_: &&CachingFacts| {
        rule!(
            "share: an artefact in progress needs the digest that documents name",
            req.has_digest(local, &head.fields),
            true
        )
    };
    let Some(facts) = facts.filter(right) else {
        return Err(Verdict::OwnFetch);
    };
    let (now, rules) = (local.wall(), local.proxy.rules(req.rule));
    let decision = match Grant::shared(&req.facts, facts, now, rules) {
        Ok(grant) => return Ok(grant),
        Err(decision) => decision,
    };
    if takes_as_arrived(req, follower)
        && let Some(grant) = Grant::arrived(&req.facts, facts, (want.arrived, now), rules)
    {
        return Ok(grant);
    }
    Err(match decision {
        Decision::Revalidate { .. } => Verdict::Validate(Arc::clone(head)),
        _ => Verdict::OwnFetch,
    })
}

/// True if a site's `collapse = "arrived"` applies to this request: the request waited for the head, and has
/// neither credentials nor cache directives.
fn takes_as_arrived(req: &OwnedRequest, follower: &Follower<FillHead>) -> bool {
    let site = matches!(&*req.role, Role::Site(site) if site.collapse == Collapse::Arrived);
    let facts = &req.facts;
    let directives = facts.no_cache
        || facts.max_age.is_some()
        || facts.min_fresh.is_some()
        || facts.only_if_cached;
    site && follower.waited()
        && !directives
        && rule!(
            "collapse: a request with credentials is judged by now",
            !req.has_credentials(),
            true
        )
}

/// Joins a fill, or starts a new fill. Returns `None` if a fill has ended since this request's lookup, and
/// the object that it stored is in memory.
pub(super) fn enter_unless_stored(
    local: &Rc<Local>,
    req: &Rc<OwnedRequest>,
    want: &Want,
) -> Option<Follower<FillHead>> {
    join_or_start(local, req, want, |object| {
        let mut known = want.stored.iter().chain(&want.part);
        !known.any(|known| Arc::ptr_eq(known, object))
    })
}

/// Starts a fetch in which the origin validates an answer for this request. The answer has the head `head`.
pub(super) fn ask_whether(
    local: &Rc<Local>,
    req: &Rc<OwnedRequest>,
    want: &Want,
    head: &Arc<FillHead>,
    permit: Permit,
) -> Follower<FillHead> {
    let key = fill_key(local, req, want);
    let stored = head.object.clone();
    let job = Job {
        validate: stored.is_some(),
        in_progress: stored.is_none().then(|| Arc::clone(head)),
        stored: stored.or_else(|| want.stored.clone()),
        permit: Cell::new(Some(permit)),
        offers: true,
        ..job(req, want, Ranged::No)
    };
    start(local, req, &key, job)
}

/// Starts an additional fetch, because the head of the fetch that `follower` follows is overdue.
pub(super) fn ask_too(
    local: &Rc<Local>,
    req: &Rc<OwnedRequest>,
    want: &Want,
    follower: &Follower<FillHead>,
) -> Follower<FillHead> {
    let key = fill_key(local, req, want);
    let hash = local.proxy.engine.keys().hash(&key);
    let range = ranged(local, req, want, hash);
    let (writer, second) = local.proxy.fills.second(follower);
    fetch::spawn(local, job(req, want, range), writer);
    second
}

/// Returns a follower of a running fill or of a new fill. Returns `None` if a fill has ended since this
/// request's lookup and has left an object that `is_new` accepts.
fn join_or_start(
    local: &Rc<Local>,
    req: &Rc<OwnedRequest>,
    want: &Want,
    is_new: impl FnOnce(&Arc<Object>) -> bool,
) -> Option<Follower<FillHead>> {
    let key = fill_key(local, req, want);
    let hash = local.proxy.engine.keys().hash(&key);
    let range = ranged(local, req, want, hash);
    let facts = &req.facts;
    let if_range = || foxy_base::first(&req.head(), "If-Range").is_some();
    // `uncollapsed` is true for a request that must not get an answer that was fetched for another request,
    // or that was fetched before the request arrived.
    let uncollapsed = rule!(
        "join: a request with credentials is not collapsed",
        facts.authorization,
        false
    ) || facts.no_store
        || rule!(
            "join: a request for a range of its own is not collapsed",
            range == Ranged::Own,
            false
        )
        || rule!(
            "join: a range under a condition is not collapsed",
            range != Ranged::No && if_range(),
            false
        )
        || rule!(
            "join: a request that wants a new answer is not collapsed",
            want.reason == Fwd::Request,
            false
        )
        || sends_own_conditions(req, want)
        || local.proxy.unshared.has(req.crowd(hash), local.wall());
    if uncollapsed {
        return Some(start_uncollapsed(local, req, want));
    }
    let slot = match &range {
        Ranged::Aligned(_) if !want.validate => local
            .proxy
            .engine
            .keys()
            .hash(&[&key, &b" ranges"[..]].concat()),
        _ => hash,
    };
    let (fills, engine) = (&local.proxy.fills, &local.proxy.engine);
    let is_stored = || {
        let found = engine.reads().in_memory(hash, &key);
        found.is_some_and(|(object, _)| is_new(&object))
    };
    match fills.join_unless_stored(slot, (hash, &key), req.base_hash, is_stored)? {
        Joined::Follows(follower) => {
            local.count(Event::Followers);
            Some(follower)
        }
        Joined::Starts(writer, follower) => {
            fetch::spawn(local, job(req, want, range), writer);
            Some(follower)
        }
    }
}

/// Starts a fill that no other request joins.
fn start_uncollapsed(local: &Rc<Local>, req: &Rc<OwnedRequest>, want: &Want) -> Follower<FillHead> {
    let key = fill_key(local, req, want);
    let hash = local.proxy.engine.keys().hash(&key);
    let range = ranged(local, req, want, hash);
    start(local, req, &key, job(req, want, range))
}

fn start(local: &Rc<Local>, req: &Rc<OwnedRequest>, key: &[u8], job: Job) -> Follower<FillHead> {
    let proxy = &local.proxy;
    let hash = proxy.engine.keys().hash(key);
    let (writer, follower) = proxy.fills.uncollapsed(hash, key, req.base_hash);
    fetch::spawn(local, job, writer);
    follower
}

/// Sleeps until `time`; for ever if `time` is `None`.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Returns the key under which the fill runs. The answer is stored under this key if it has the same Vary
/// list as the stored object of the URL.
fn fill_key(local: &Local, req: &OwnedRequest, want: &Want) -> Vec<u8> {
    let mut key = req.base.to_vec();
    let known = want.stored.as_ref().or(want.part.as_ref());
    match (known, &want.primary) {
        (Some(object), _) => key = object.key().to_vec(),
        (None, Some(primary)) => {
            let mut values = Vec::new();
            req.sent(local).selecting_values(&primary.list, &mut values);
            key::push_variant(primary.nonce, &values, &mut key);
        }
        (None, None) => {}
    }
    key
}

fn job(req: &Rc<OwnedRequest>, want: &Want, range: Ranged) -> Job {
    let own = range == Ranged::Own;
    Job {
        stored: want.stored.clone(),
        validate: want.validate,
        part: want.part.clone(),
        range,
        primary: want.primary.clone(),
        // If the client's own range is sent, the client's If-Range is sent too.
        own_conditions: own || sends_own_conditions(req, want),
        ..Job::plain(Rc::clone(req))
    }
}

/// True if the client's conditions are sent to the origin, because there is no stored object with which Foxy
/// could judge them. The conditions for a rewritten document are never sent: they are about the rewritten
/// form, which the origin does not know.
fn sends_own_conditions(req: &OwnedRequest, want: &Want) -> bool {
    req.facts.conditional && want.stored.is_none() && !req.is_document()
}
