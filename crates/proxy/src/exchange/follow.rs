//! Answers a request by a fetch: by its own fetch, or by a fetch that is already running.

use std::sync::Arc;

use foxy_base::rule;
use foxy_http_rules::{CachingFacts, Flags};
use foxy_store::Object;

use super::join::{Source, Verdict, Want, ask_too, ask_whether, enter_unless_stored};
use super::ranged::{ClientSlice, client_slice};
use super::stream::{How, streamed_outcome};
use super::{Exchange, Finish};
use crate::cache::gate::{Fetched, Grant, Shown};
use crate::cache::owned_request::OwnedRequest;
use crate::cache::serve::find::find;
use crate::cache::serve::memory::{self, Shape};
use crate::cache::stored::stored_facts;
use crate::fill::Follower;
use crate::fill::fetch::FillHead;
use crate::http::net::Transport;
use crate::mirrors::DigestCheck;
use crate::origin::UpstreamError;
use crate::origin::limit::Permit;
use crate::state::local::Local;
use crate::{Event, Outcome};

/// A response in progress that the origin validates for a request. `follower` follows the fill that receives
/// the response.
struct InProgress {
    follower: Follower<FillHead>,
    head: Arc<FillHead>,
}

/// Reason why no byte of an answer was sent.
enum Unsent {
    /// The bytes are missing, or the answer lacks the requested range. The request then starts a fetch of its
    /// own.
    Missing,
    /// The first bytes of the answer left the memory of the fill while the request waited. The request then
    /// repeats its lookup.
    Late,
}

/// Largest number of times that a request repeats its lookup because of [`Unsent::Late`]. After that, it
/// starts a fetch of its own.
const LATE_MAX: u32 = 100;

/// Result of handling an answer that needs validation.
enum Validating {
    /// The request starts a fetch of its own, which asks the origin to validate this response in progress.
    Asks(InProgress),
    /// No validation was started. The request continues to wait for the same fill or for another fill.
    Goes,
    Done(Finish),
}

/// Result of waiting for the permit to ask the origin to validate an answer.
enum ValidationPermit {
    /// The request has the permit and may ask the origin now.
    Ask(Permit),
    /// The answer was updated while the request waited.
    News,
    /// Another response in progress may be shared now.
    Elsewhere,
    /// A stored object answers the request now.
    Stored(Grant, Arc<Object>),
    Failed(UpstreamError),
    Gone,
}

impl<T: Transport> Exchange<'_, T> {
    /// Answers a request through a fill (a fetch that several requests can share).
    pub(crate) async fn through_fill(&mut self, mut want: Want) -> Finish {
        // Another fetch for the same key may have ended since this request's lookup. Then the object that it
        // stored or validated may answer this request too.
        let mut follower = match enter_unless_stored(&self.local, &self.req, &want) {
            Some(follower) => follower,
            None => match self.again(&want).await {
                Ok(finish) => return finish,
                Err(follower) => follower,
            },
        };
        let mut in_progress: Option<InProgress> = None;
        // If the fetch of another request fails because of its connection to the origin, this request may
        // join or start a fill once more.
        let (mut failed, mut late) = (false, 0);
        loop {
            match self.await_head(&want, &mut follower).await {
                Verdict::LeaderFailed(_) if !failed => {
                    failed = true;
                    follower = self.enter(&want);
                }
                Verdict::Elsewhere => match self.again(&want).await {
                    Ok(finish) => return finish,
                    Err(entered) => follower = entered,
                },
                Verdict::AskToo => follower = ask_too(&self.local, &self.req, &want, &follower),
                Verdict::OwnFetch => {
                    self.local.count(Event::FollowersReleased);
                    want.exact = true;
                    follower = self.uncollapsed(&want);
                }
                Verdict::Variant(primary) => {
                    self.local.count(Event::FollowersReleased);
                    want.primary = Some(primary);
                    (want.stored, want.part, want.validate) = (None, None, false);
                    follower = self.enter(&want);
                }
                Verdict::Validate(head) => {
                    let validating = self.validate(&want, &mut follower, head);
                    match Box::pin(validating).await {
                        Validating::Asks(checked) => in_progress = Some(checked),
                        Validating::Goes => {}
                        Validating::Done(finish) => return finish,
                    }
                }
                Verdict::Failing(head) => return Box::pin(self.failing(&want, &head)).await,
                Verdict::LeaderFailed(error) | Verdict::Failed(error) => {
                    return Box::pin(self.failed(&want, error)).await;
                }
                Verdict::Gone => return Finish::gone(0),
                Verdict::Send(grant, head, source) => {
                    let (local, req) = (&self.local, &self.req);
                    let from = sender(local, req, in_progress.take(), (&head, &source), follower);
                    let stored = matches!(source, Source::Object(_));
                    let sent = self.send(&want, (grant, &head, source), from);
                    match sent.await {
                        Ok(finish) => return finish,
                        Err(Unsent::Late) if late < LATE_MAX => {
                            late += 1;
                            match self.again(&want).await {
                                Ok(finish) => return finish,
                                Err(entered) => follower = entered,
                            }
                        }
                        Err(_) => {
                            (want.validate, want.exact) = (false, want.exact || !stored);
                            follower = self.uncollapsed(&want);
                        }
                    }
                }
            }
        }
    }

    /// Repeats the lookup. Answers with an object that another fetch has stored meanwhile. If there is no
    /// such object, enters a fill and returns its follower.
    async fn again(&mut self, want: &Want) -> Result<Finish, Follower<FillHead>> {
        let finish = Box::pin(self.answer_of_others(want)).await;
        finish.ok_or_else(|| self.enter(want))
    }

    /// Answers with an object that another fetch for the same key has stored meanwhile, if this request may
    /// have that object.
    async fn answer_of_others(&mut self, want: &Want) -> Option<Finish> {
        let (grant, object) = stored_by_now(&self.local, &self.req).await?;
        let fetched = Fetched {
            reason: want.reason,
            status: None,
            collapsed: true,
        };
        let shown = Shown::fetched(grant, Outcome::Collapsed, self.req.rule, fetched);
        self.object(&object, shown).await
    }

    /// Waits for a permit, and then asks the origin to validate `head` for this request. Asks nothing if the
    /// validation has become unnecessary during the wait. Afterwards, `follower` follows the fill for which
    /// the request waits.
    async fn validate(
        &mut self,
        want: &Want,
        follower: &mut Follower<FillHead>,
        head: Arc<FillHead>,
    ) -> Validating {
        match self.validation_permit(follower, &head).await {
            ValidationPermit::Ask(permit) => {
                let own = ask_whether(&self.local, &self.req, want, &head, permit);
                let follower = std::mem::replace(follower, own);
                return Validating::Asks(InProgress { follower, head });
            }
            ValidationPermit::News => {}
            ValidationPermit::Elsewhere => *follower = self.enter(want),
            ValidationPermit::Stored(grant, object) => {
                let shown = validated(&self.req, want, follower, grant);
                if let Some(finish) = self.object(&object, shown).await {
                    return Validating::Done(finish);
                }
                *follower = self.uncollapsed(want);
            }
            ValidationPermit::Failed(error) => {
                return Validating::Done(self.failed(want, error).await);
            }
            ValidationPermit::Gone => return Validating::Done(Finish::gone(0)),
        }
        Validating::Goes
    }

    /// Waits for the permit to ask the origin about `head`. During the wait, results of other fetches can
    /// make the validation unnecessary.
    async fn validation_permit(
        &mut self,
        follower: &Follower<FillHead>,
        head: &Arc<FillHead>,
    ) -> ValidationPermit {
        let req = &self.req;
        let client = req.client.client;
        let permit = tokio::select! {
            biased;
            permit = self.local.proxy.origins.permit(&req.to, client) => permit,
            () = self.link.gone() => return ValidationPermit::Gone,
        };
        let permit = match permit {
            Ok(permit) => permit,
            Err(error) => return ValidationPermit::Failed(error),
        };
        let newer = follower.head().is_some_and(|now| !Arc::ptr_eq(&now, head));
        if newer {
            return ValidationPermit::News;
        }
        let (now, rules) = (self.local.wall(), self.local.proxy.rules(req.rule));
        let shareable = |other: &FillHead| {
            let selected = other
                .vary
                .as_ref()
                .is_none_or(|(l, v)| req.selected_by(&self.local, l, v));
            let facts = other.facts.filter(|_| other.shared && selected);
            facts.is_some_and(|stored| Grant::shared(&req.facts, &stored, now, rules).is_ok())
        };
        if follower.is_outdone(&self.local.proxy.fills, shareable) {
            return ValidationPermit::Elsewhere;
        }
        match stored_by_now(&self.local, &self.req).await {
            Some((grant, object)) => ValidationPermit::Stored(grant, object),
            None => ValidationPermit::Ask(permit),
        }
    }

    /// Sends an answer. On an error, nothing was sent.
    async fn send(
        &mut self,
        want: &Want,
        (grant, head, source): (Grant, &Arc<FillHead>, Source),
        follower: Follower<FillHead>,
    ) -> Result<Finish, Unsent> {
        match source {
            Source::Object(object) => {
                let shown = validated(&self.req, want, &follower, grant);
                let finish = Box::pin(self.object(&object, shown)).await;
                Ok(Finish {
                    origin_status: 304,
                    origin: Some(head.origin),
                    ..finish.ok_or(Unsent::Missing)?
                })
            }
            Source::Sparse(object) => {
                let sent = self.sparse(want, (grant, head), &object, follower);
                Box::pin(sent).await
            }
            Source::InProgress(in_progress) => {
                let sparse = in_progress.sparse.clone();
                match sparse {
                    Some(object) => {
                        let given = (grant, &*in_progress);
                        Box::pin(self.sparse(want, given, &object, follower)).await
                    }
                    None => self.streamed(want, (grant, &in_progress), follower).await,
                }
            }
            Source::Stream => self.streamed(want, (grant, head), follower).await,
        }
    }

    /// Sends an answer while it arrives. On an error, nothing was sent.
    async fn streamed(
        &mut self,
        want: &Want,
        (grant, head): (Grant, &Arc<FillHead>),
        follower: Follower<FillHead>,
    ) -> Result<Finish, Unsent> {
        // This future is boxed, because it is rarely needed. Without the box it would enlarge the future of
        // every miss.
        if head.status >= 500
            && let Some(finish) = Box::pin(self.stale_instead(want, head)).await
        {
            return Ok(finish);
        }
        let slice = client_slice(&self.req, head);
        if slice == ClientSlice::Elsewhere && !want.exact {
            return Err(Unsent::Missing);
        }
        let how = How {
            slice,
            collapsed: follower.collapsed(),
        };
        let sent = self.stream(want, (grant, head), follower, how).await;
        sent.ok_or(Unsent::Late)
    }

    /// Sends an answer from an object whose bytes still arrive. On an error, nothing was sent.
    async fn sparse(
        &mut self,
        want: &Want,
        (grant, head): (Grant, &FillHead),
        object: &Arc<Object>,
        follower: Follower<FillHead>,
    ) -> Result<Finish, Unsent> {
        let stored = CachingFacts::decode(&object.meta().rules).ok_or(Unsent::Missing)?;
        // Nothing is sent if a wanted byte is missing. If another request started the fill, the byte may have
        // left the memory of the fill by now. Then a repeated lookup may find the byte in the store. If the
        // request's own fill does not fetch the byte, a repeated lookup does not help.
        let unsent = match follower.collapsed() {
            true => Unsent::Late,
            false => Unsent::Missing,
        };
        let fetched = Fetched {
            reason: want.reason,
            status: Some(head.status),
            collapsed: follower.collapsed(),
        };
        let outcome = streamed_outcome(want, follower.collapsed());
        let shown = Shown::fetched(grant, outcome, self.req.rule, fetched);
        let shape = shape_of(&self.local, &self.req, object, &stored);
        let sent = self.large(object, &shape, &shown, Some(follower));
        let finish = sent.await.ok_or(unsent)?;
        Ok(Finish {
            origin_status: head.status,
            origin: Some(head.origin),
            ..finish
        })
    }

    /// Sends an object of any size. Returns `None` if a part of the object is missing.
    pub(super) async fn object(&mut self, object: &Arc<Object>, shown: Shown) -> Option<Finish> {
        let stored = stored_facts(object)?;
        let shape = shape_of(&self.local, &self.req, object, &stored);
        self.large(object, &shape, &shown, None).await
    }
}

/// Looks the request up again, and returns a stored object that answers it. Another fetch may have stored
/// this object while the request waited.
async fn stored_by_now(local: &Local, req: &OwnedRequest) -> Option<(Grant, Arc<Object>)> {
    let rules = local.proxy.rules(req.rule);
    let mut key = req.base.to_vec();
    let found = find(local, &mut key, &req.sent(local), &rules.key_parts).await;
    let (object, _) = found.object?;
    let stored = local.proxy.admitted(&object, req.rule)?;
    let right = rule!(
        "share: a stored artefact needs the digest that documents name",
        req.digest_check(local, &object) == DigestCheck::Right,
        true
    );
    if stored.flags.has(Flags::PARTIAL) || !right {
        return None;
    }
    let grant = Grant::shared(&req.facts, &stored, local.wall(), rules).ok()?;
    Some((grant, object))
}

/// If `head` is the result of the validation of `in_progress`, applies this result (see [`learn`]). Returns a
/// follower of the fill from which the answer is sent.
fn sender(
    local: &Local,
    req: &OwnedRequest,
    in_progress: Option<InProgress>,
    (head, source): (&FillHead, &Source),
    follower: Follower<FillHead>,
) -> Follower<FillHead> {
    learn(local, req, in_progress.as_ref(), head);
    match (source, in_progress) {
        (Source::InProgress(_), Some(in_progress)) => in_progress.follower,
        _ => follower,
    }
}

/// Applies the result of this request's own validation to the response in progress. A 304 updates the head of
/// this response for all waiting requests. If the origin sends a new successful answer instead of a 304, it
/// probably sends different answers to different users. So later requests with this key do not wait for each
/// other.
fn learn(local: &Local, req: &OwnedRequest, in_progress: Option<&InProgress>, head: &FillHead) {
    let Some(in_progress) = in_progress else {
        return;
    };
    let (unshared, now) = (&local.proxy.unshared, local.wall());
    let number = req.crowd(in_progress.follower.hash());
    if let Some(updated) = &head.validated {
        unshared.note(number, false, now);
        let shorter = shortens(in_progress.head.facts.as_ref(), updated.facts.as_ref());
        if rule!(
            "share: a validation that shortens the lifetime ends the storing",
            shorter,
            false
        ) {
            // The copy that is being stored would stay fresh for longer than the origin permits now.
            in_progress.follower.forbid_storing();
        }
        in_progress.follower.update_head(Arc::clone(updated));
    } else if head.object.is_none() && head.status < 400 {
        unshared.note(number, true, now);
    }
}

/// Returns the [`Shown`] of a validated answer: the grant, and the data that describe the answer.
fn validated(
    req: &OwnedRequest,
    want: &Want,
    follower: &Follower<FillHead>,
    grant: Grant,
) -> Shown {
    let fetched = Fetched {
        reason: want.reason,
        status: Some(304),
        collapsed: follower.collapsed(),
    };
    Shown::fetched(grant, Outcome::Revalidated, req.rule, fetched)
}

fn shape_of(local: &Local, req: &OwnedRequest, object: &Object, stored: &CachingFacts) -> Shape {
    let (head, now) = (req.head(), local.wall());
    match memory::shape(local, &head, &req.facts, object, stored, now) {
        Shape::AskOrigin => Shape::Whole,
        shape => shape,
    }
}

/// True if a 304 makes the rules for an answer stricter: the answer expires earlier, or it may no longer be
/// sent when it is stale. `old` describes the answer before the 304. `new` describes the answer with the
/// fields of the 304.
fn shortens(old: Option<&CachingFacts>, new: Option<&CachingFacts>) -> bool {
    use foxy_http_rules::{Flags, freshness::expires_at};
    let (Some(old), Some(new)) = (old, new) else {
        return true;
    };
    let stricter = new.flags.any(Flags::FORBID_STALE) && !old.flags.any(Flags::FORBID_STALE);
    stricter || expires_at(new) < expires_at(old)
}
