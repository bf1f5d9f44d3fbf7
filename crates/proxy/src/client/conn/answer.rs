//! Answers parsed requests. [`Conn::short`] looks a request up and sends hits. `Conn::long` carries out all
//! other requests.

use std::rc::Rc;
use std::sync::Arc;

use foxy_base::{MonoTime, WallTime, rule};
use foxy_http_rules::{Decision, Flags, Fwd, Miss, RequestFacts, RuleId, decide_miss};
use foxy_http1::{Method, RequestHead, RequestParts, Url};
use foxy_mirror::Digest;
use foxy_store::Object;

use super::hot::Hot;
use super::large_hit::LargeHit;
use super::local_answers::{options, pac_file, registry, trace};
use super::moved::{elsewhere, to_https};
use super::{Conn, Finish};
use crate::access::refusal::Refusal;
use crate::cache::gate::{Grant, Shown};
use crate::cache::key;
use crate::cache::owned_request::{RequestContext, bypass_reason};
use crate::cache::serve::find::{Found, Primary, find};
use crate::cache::serve::{memory, part};
use crate::cache::stored::request_facts;
use crate::client::conn::{admit, pac};
use crate::exchange::{Want, revalidate};
use crate::http::client_identity::ClientIdentity;
use crate::http::connection::SliceLost;
use crate::http::net::Transport;
use crate::http::reply::Extra;
use crate::http::rewriting::{ResponseContext, Turned, turned};
use crate::http::route::{Route, route};
use crate::http::sent::Sent;
use crate::mirrors::DigestCheck;
use crate::sites::local_responses::{Aside, MAINTENANCE, ToHttps};
use crate::sites::objects::{NO_OBJECT, ObjectWish, wish};
use crate::state::ledger::Pressure;
use crate::state::local::Local;
use crate::{Outcome, Role};

/// The next step for a request that [`Conn::short`] did not answer.
pub(super) enum Instead {
    /// The request is refused.
    Refuse(Refusal, Outcome),
    /// The answer comes from the cache, in fragments.
    Large(Box<LargeHit>),
    /// `Conn::long` answers the request.
    Long(Long),
}

/// The task of `Conn::long` for a request.
pub(super) enum Long {
    Tunnel,
    /// Redirect the client to the same URL with https.
    Moved(ToHttps),
    /// Redirect the client to this URL, with this status.
    Redirected(u16, Vec<u8>),
    Purge,
    Options,
    Trace,
    /// Send the PAC file, by which browsers find the proxy.
    Pac,
    /// Store or remove an object of a build cache.
    Object(ObjectWish),
    /// Send the answer by which a registry of container images identifies itself.
    Registry,
    /// Find out whether the client may have a layer of a container image.
    Prove,
    /// Find out whether a stored artefact of a mirror has this digest.
    Compare(Arc<Object>, Digest),
    /// Note the digests that a stored document of a mirror contains.
    Learn(Arc<Object>),
    /// Pass the request to the origin without the cache.
    Pass(Fwd),
    /// Answer a HEAD request: fetch a head from the origin, or send a stored answer if the origin fails.
    Head(Want),
    /// Answer through a fill: a fetch that other requests may share.
    Fill(Want),
}

/// Estimated size in bytes of the future in which `Conn::long` makes an answer. The memory of fetches and
/// send queues is counted separately.
const LONG_BYTES: usize = 4 << 10;

/// Largest number of comparisons of stored artefacts with their digests for one request. A further comparison
/// is needed only if the object or its expected digest changed during the previous comparison.
const COMPARISONS_MAX: usize = 4;
const UNSETTLED: Refusal = Refusal {
    status: 503,
    reason: "artefact-changes",
};

impl<T: Transport> Conn<T> {
    /// Answers one request. Returns true if the connection can carry another request.
    pub(super) async fn answer(&mut self, parts: &RequestParts) -> bool {
        let started = self.local.mono();
        let keep = self.may_keep(parts);
        let (local, link) = (&self.local, &self.link);
        let misplaced = self.context.misplaced(local, link, parts);
        self.context.note_client(local, || link.head(parts));
        if misplaced.is_none()
            && self.local.proxy.config.gatekeeper.is_some()
            && let Some(kept) = self.turned_away(parts, started, keep).await
        {
            return kept;
        }
        let short = match misplaced {
            None => self.short(parts, keep).await,
            Some(refusal) => Err(Instead::Refuse(refusal, Outcome::BadRequest)),
        };
        match short {
            Ok(finish) => self.done(parts, started, &finish),
            Err(Instead::Refuse(refusal, outcome)) => {
                let finish = self.refuse_read(refusal, outcome, parts, keep).await;
                self.done(parts, started, &finish)
            }
            Err(Instead::Large(hit)) => self.large_answer(parts, hit, keep, started).await,
            Err(Instead::Long(long)) => Box::pin(self.long(parts, long, keep, started)).await,
        }
    }

    /// Routes the request, looks it up in the cache, and decides. If a stored answer can be sent at once,
    /// sends it. Otherwise returns the next step.
    pub(super) async fn short(
        &mut self,
        parts: &RequestParts,
        keep: bool,
    ) -> Result<Finish, Instead> {
        let (local, to) = (&self.local, self.context.response_context());
        let (role, client) = (self.context.role(), self.context.client());
        let ends = self.link.ends();
        let (received, io, scratch) = (ends.received, ends.io, ends.scratch);
        let head = received.head(parts);
        let url = to_fetch(&head, to, local, T::SECURE)?;
        let own = role.objects().is_some();
        let user_rules = &local.proxy.config.user_rules;
        let rule = key::primary(user_rules, role.partition(), &url, &mut scratch.key);
        self.rule = rule;
        if !own && is_bypass(local, client, rule, &head) {
            return Err(Instead::Long(Long::Pass(Fwd::Bypass)));
        }
        let rules = local.proxy.rules(rule);
        let sent = Sent::of(&head, local, role, client);
        let Found { object, primary } =
            find(local, &mut scratch.key, &sent, &rules.key_parts).await;
        let (request, now) = (request_facts(&to, &head, rules), local.wall());
        let miss = |decision, known| absent(own, parts, (&request, now), decision, known);
        let Some((object, tier)) = object else {
            let other = primary.as_ref().map_or(Miss::Uri, |_| Miss::Vary);
            return Err(miss(decide_miss(&request, other), Known::nothing(primary)));
        };
        let unusable = || miss(decide_miss(&request, Miss::Uri), Known::nothing(None));
        let stored = local.proxy.admitted(&object, rule).ok_or_else(unusable)?;
        let digest_check = local.usable(role, &head, (&object, &stored), unusable)?;
        if stored.flags.has(Flags::PARTIAL) {
            let Some((slice, grant)) = part::slice(rules, &head, &request, &object, &stored, now)
            else {
                let decision = decide_miss(&request, Miss::Partial);
                return Err(miss(decision, Known::part(object, primary)));
            };
            let shown = Shown::hit_in(grant, tier, rule);
            let hit = shown.hit(&local.proxy, to, keep);
            let finish = part::send(local, io, scratch, &head, &object, &slice, &hit).await;
            return Ok(finish.if_sent(shown.outcome));
        }
        let shown = match Grant::shared(&request, &stored, now, rules) {
            Ok(_) if let DigestCheck::Unknown(digest) = digest_check => {
                return Err(Instead::Long(Long::Compare(object, digest)));
            }
            Ok(grant) => Shown::hit_in(grant, tier, rule),
            Err(decision) => return Err(miss(decision, Known::whole(object, primary))),
        };
        if shown.asks_in_background() {
            let context = RequestContext::new(role, client, local);
            let req = Rc::new(received.ask(*parts, &url, &context));
            revalidate(local, req, &object, primary.clone(), &scratch.key);
        }
        let hot = Hot {
            head: &head,
            request: &request,
            object: &object,
            stored: &stored,
            shown: &shown,
            primary: &primary,
            to,
        };
        if let Some(coding) = hot.coding()
            && let Some(finish) = Box::pin(hot.send_coded(local, io, scratch, coding, keep)).await
        {
            return Ok(finish);
        }
        let shape = hot.shape(local)?;
        let hit = shown.hit(&local.proxy, to, keep);
        let sent = memory::send(local, io, scratch, &head, &object, &shape, &hit).await;
        Ok(hot.done(&sent, keep))
    }

    async fn long(
        &mut self,
        parts: &RequestParts,
        mut long: Long,
        keep: bool,
        started: MonoTime,
    ) -> bool {
        let mut comparisons = 0..COMPARISONS_MAX;
        loop {
            let short = match long {
                Long::Prove => Box::pin(self.proven(parts, keep)).await,
                Long::Learn(object) => Box::pin(self.learnt(parts, &object, keep)).await,
                Long::Compare(..) if comparisons.next().is_none() => {
                    Err(Instead::Refuse(UNSETTLED, Outcome::Local))
                }
                Long::Compare(object, digest) => {
                    Box::pin(self.compared(parts, &object, digest, keep)).await
                }
                _ => break,
            };
            long = match Box::pin(self.resumed(short, parts, keep, started)).await {
                Ok(long) => long,
                Err(kept) => return kept,
            };
        }
        let head = self.link.head(parts);
        let pac = self.local.proxy.config.pac.as_deref().unwrap_or_default();
        let here = match long {
            Long::Tunnel => return Box::pin(self.connect(parts, started)).await,
            Long::Moved(to) => self.sent_away(parts, to_https(&head, to), keep).await,
            Long::Redirected(status, url) => {
                self.sent_away(parts, elsewhere(status, &url), keep).await
            }
            Long::Options => self.plain(parts, options(), keep).await,
            Long::Trace => self.plain(parts, trace(&head), keep).await,
            Long::Pac => {
                self.plain(parts, pac_file(&head, T::SECURE, pac), keep)
                    .await
            }
            Long::Registry => self.plain(parts, registry(), keep).await,
            long => return self.longer(parts, long, keep, started).await,
        };
        self.done(parts, started, &here)
    }

    /// Makes a copy of the request and answers it. So the read buffer of the connection is no longer needed.
    async fn longer(
        &mut self,
        parts: &RequestParts,
        long: Long,
        keep: bool,
        started: MonoTime,
    ) -> bool {
        let Some(req) = self.take_request(parts) else {
            return false;
        };
        if self.link.io().ledger().pressure() > Pressure::Low {
            self.link.release();
        }
        let _memory = self.link.take(LONG_BYTES);
        let works = !matches!(long, Long::Purge);
        let lacks_room = works && self.link.lacks_room(&self.local).await;
        let mut exchange = self.exchange(Rc::clone(&req), keep);
        let finish = match long {
            _ if lacks_room => exchange.without_room(SliceLost::Memory).await,
            // Of the following futures, only the future of a fill is not boxed. If the others were not boxed,
            // every miss would need as much memory as the largest of these futures.
            Long::Purge => Box::pin(exchange.purge()).await,
            Long::Fill(want) => exchange.through_fill(want).await,
            Long::Pass(reason) => Box::pin(exchange.pass(reason)).await,
            Long::Object(wish) => Box::pin(exchange.write_object(wish)).await,
            Long::Head(want) => Box::pin(exchange.head(&want)).await,
            Long::Tunnel | Long::Moved(_) | Long::Redirected(..) => Finish::default(),
            Long::Options | Long::Trace | Long::Pac => Finish::default(),
            Long::Registry | Long::Prove | Long::Compare(..) | Long::Learn(_) => Finish::default(),
        };
        self.end(&req, started, &finish)
    }

    /// Redirects the client to another URL.
    async fn sent_away(
        &mut self,
        parts: &RequestParts,
        (refusal, fields): (Refusal, Vec<u8>),
        keep: bool,
    ) -> Finish {
        let extra = Extra {
            fields: &fields,
            ..Extra::default()
        };
        // If the request has a body, the connection ends. Otherwise the unread body would be parsed as the
        // next request.
        let keep = keep && parts.framing().is_empty();
        let sent = self.page(refusal, &extra, parts, keep).await;
        Finish::refused(refusal, Outcome::Local, keep, sent)
    }
}

/// True if a rule of the operator makes the request bypass the cache.
#[inline]
fn is_bypass(local: &Local, client: &ClientIdentity, by: RuleId, head: &RequestHead<'_>) -> bool {
    let rules = &local.proxy.config.user_rules;
    rule!(
        "access: a request that bypasses the cache gets nothing stored",
        rules.bypasses(by, head) || client.bypasses_cache(),
        false
    )
}

/// Returns the next step if the site of the request demands a step before the cache is used. Such a step is
/// a redirect, a refusal (for example during maintenance), the answer by which a registry identifies itself,
/// or the check that the client may have a layer of a container image. Returns `None` if the site demands no
/// such step.
#[inline]
fn aside(
    head: &RequestHead<'_>,
    to: ResponseContext<'_>,
    local: &Local,
    secure: bool,
) -> Option<Instead> {
    match to.role.local_responses()?.aside(secure) {
        Aside::No if to.role.rewriting().is_none() => None,
        Aside::No => match turned(local, to, head) {
            Turned::No => None,
            Turned::Away(status, url) => Some(Instead::Long(Long::Redirected(status, url))),
            Turned::Refused(refusal) => Some(Instead::Refuse(refusal, Outcome::BadRequest)),
            Turned::Registry => Some(Instead::Long(Long::Registry)),
            Turned::Prove => Some(Instead::Long(Long::Prove)),
            Turned::Blocked(refusal) => Some(Instead::Refuse(refusal, Outcome::Denied)),
        },
        Aside::Moved(to) => Some(Instead::Long(Long::Moved(to))),
        Aside::Closed => Some(Instead::Refuse(MAINTENANCE, Outcome::Local)),
    }
}

/// Returns the next step for a request that no stored object answers. A build cache (`own` is true) has no
/// origin, so it refuses the request. In all other cases, [`missed`] decides.
fn absent(
    own: bool,
    parts: &RequestParts,
    asked: (&RequestFacts, WallTime),
    decision: Decision,
    known: Known,
) -> Instead {
    match own {
        true => Instead::Refuse(NO_OBJECT, Outcome::Miss),
        false => missed(parts, asked, decision, known),
    }
}

/// Returns the step that passes a request to the origin, if the cache cannot answer requests of this kind.
/// Returns `None` for all other requests. Also returns `None` if the site is a build cache, because it has no
/// origin.
#[inline]
fn bypass(head: &RequestHead<'_>, role: &Role) -> Option<Instead> {
    let reason = bypass_reason(&head.parts())?;
    role.objects()
        .is_none()
        .then_some(Instead::Long(Long::Pass(reason)))
}

/// If the site is a build cache, returns the next step for a request that stores or removes an object, or
/// that must be refused. Returns `None` for all other requests.
fn written(head: &RequestHead<'_>, role: &Role) -> Option<Instead> {
    role.objects()?;
    match wish(head) {
        ObjectWish::Read => None,
        ObjectWish::Refused(refusal) => Some(Instead::Refuse(
            refusal,
            match refusal == NO_OBJECT {
                true => Outcome::Miss,
                false => Outcome::BadRequest,
            },
        )),
        wish => Some(Instead::Long(Long::Object(wish))),
    }
}

/// Returns the URL of the request if this client may fetch it, and if the cache can answer the request.
/// Otherwise returns the next step.
fn to_fetch<'b>(
    head: &RequestHead<'b>,
    to: ResponseContext<'b>,
    local: &Local,
    secure: bool,
) -> Result<Url<'b>, Instead> {
    let (role, proxy) = (to.role, &local.proxy);
    if rule!(
        "client: one that is not allowed gets nothing",
        !to.client.allowed,
        false
    ) {
        return Err(Instead::Refuse(admit::CLIENT, Outcome::Denied));
    }
    Err(Instead::Long(match route(head, role, &proxy.instance) {
        Route::Fetch(url) if admit::port(&proxy.config.access, role, &url) => {
            let other = aside(head, to, local, secure);
            let other = other.or_else(|| written(head, role));
            let other = other.or_else(|| bypass(head, role));
            return other.map_or(Ok(url), Err);
        }
        Route::Fetch(_) => return Err(Instead::Refuse(admit::PORT, Outcome::Denied)),
        Route::Refuse(_)
            if matches!(role, Role::Forward)
                && proxy.config.pac.is_some()
                && pac::is_wanted(head) =>
        {
            Long::Pac
        }
        Route::Refuse(refusal) => return Err(Instead::Refuse(refusal, Outcome::BadRequest)),
        Route::Connect => Long::Tunnel,
        Route::Purge(_) => Long::Purge,
        Route::Options => Long::Options,
        Route::Trace => Long::Trace,
    }))
}

/// The objects that a lookup has found, but that cannot be sent at once.
pub(super) struct Known {
    stored: Option<Arc<Object>>,
    part: Option<Arc<Object>>,
    primary: Option<Primary>,
}

impl Known {
    fn nothing(primary: Option<Primary>) -> Self {
        Self {
            stored: None,
            part: None,
            primary,
        }
    }

    pub(super) fn whole(object: Arc<Object>, primary: Option<Primary>) -> Self {
        Self {
            stored: Some(object),
            ..Self::nothing(primary)
        }
    }

    fn part(object: Arc<Object>, primary: Option<Primary>) -> Self {
        Self {
            part: Some(object),
            ..Self::nothing(primary)
        }
    }
}

/// Returns the next step for a request that no stored object answers. Usually the origin is asked.
pub(super) fn missed(
    parts: &RequestParts,
    (request, arrived): (&RequestFacts, WallTime),
    decision: Decision,
    known: Known,
) -> Instead {
    let (reason, validate) = match decision {
        Decision::Forward { reason } => (reason, false),
        Decision::Revalidate { reason, .. } => (reason, true),
        Decision::OnlyIfCached504 => {
            let refusal = Refusal {
                status: 504,
                reason: "only-if-cached",
            };
            return Instead::Refuse(refusal, Outcome::Local);
        }
        Decision::Fresh { .. } | Decision::Stale { .. } => (Fwd::Miss, false),
    };
    // If no stored object answers the request, only the origin can judge If-Match and If-Unmodified-Since.
    if request.precondition {
        return Instead::Long(Long::Pass(reason));
    }
    let want = Want {
        reason,
        validate,
        // Without a stored object to validate, only the requested range is fetched.
        range: request.range && !validate,
        exact: false,
        stored: known.stored,
        part: known.part,
        primary: known.primary,
        arrived,
    };
    // The answer to HEAD has no body to store.
    Instead::Long(match parts.method() {
        Method::Head => Long::Head(want),
        _ => Long::Fill(want),
    })
}
