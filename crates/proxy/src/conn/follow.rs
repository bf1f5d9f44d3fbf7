//! Serving a request by a fill: joining or starting it, judging its head, streaming its body.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use foxy_base::key_hash;
use foxy_http_rules::{Decision, Digest, Failure, Fwd, decide, freshness, stale_on_failure, vary};
use foxy_http1::Version;
use foxy_store::Object;

use super::answer::Shown;
use super::ranged::{Cut, cut, ranged};
use super::stream::{How, streamed_outcome};
use super::{CLOSED, Conn, Finish};
use crate::ask::Ask;
use crate::fetch::{self, FillHead, Job, Ranged};
use crate::fill::{Follower, HeadEvent, Joined, Released};
use crate::local::Local;
use crate::net::Transport;
use crate::purge::stored_digest;
use crate::reply::send_page;
use crate::route::Refusal;
use crate::serve::find::Primary;
use crate::serve::large::Arriving;
use crate::serve::memory::{self, Shape};
use crate::upstream::UpstreamError;
use crate::{Event, Outcome, key};

/// What a request wants of a fill.
#[derive(Debug)]
pub(crate) struct Want {
    /// Why it goes to the origin.
    pub(crate) reason: Fwd,
    /// Ask with the stored object's validators.
    pub(crate) validate: bool,
    /// What is stored whole and cannot be used as it is.
    pub(crate) stored: Option<Arc<Object>>,
    /// A part that is stored instead and does not answer the request.
    pub(crate) part: Option<Arc<Object>>,
    /// Only a range is fetched.
    pub(crate) range: bool,
    /// Exactly the request's own.
    pub(crate) exact: bool,
    pub(crate) primary: Option<Primary>,
}

/// Starts a revalidation that nobody waits for, unless one is running.
pub(crate) fn revalidate(
    local: &Rc<Local>,
    ask: Rc<Ask>,
    object: &Arc<Object>,
    primary: Option<Primary>,
    key: &[u8],
) {
    let hash = key_hash(key);
    if local.proxy.fills.contains(hash) {
        return;
    }
    if let Joined::Starts(writer, _) = local.proxy.fills.join(hash, key, ask.base_hash) {
        let job = Job {
            ask,
            stored: Some(Arc::clone(object)),
            validate: true,
            part: None,
            range: Ranged::No,
            primary,
            own_conditions: false,
            background: true,
        };
        fetch::spawn(local, job, writer);
    }
}

/// What a follower does about the head it was given.
enum Verdict {
    /// Stream the body.
    Stream(Arc<FillHead>),
    /// The stored object was validated.
    Object(Arc<FillHead>, Arc<Object>),
    /// What arrives is stored, and answers the request whatever part of it that wants.
    Sparse(Arc<FillHead>, Arc<Object>),
    /// It has other variants than were known: look for the right one.
    Variant(Primary),
    /// Not for this request: fetch alone.
    Alone,
    /// The fetch failed.
    Failed(UpstreamError),
    /// The client is gone.
    Gone,
}

impl<T: Transport> Conn<T> {
    /// Answers by a fill.
    pub(super) async fn through_fill(
        &mut self,
        ask: &Rc<Ask>,
        mut want: Want,
        keep: bool,
    ) -> Finish {
        let (mut follower, mut collapsed) = self.enter(ask, &want);
        loop {
            let verdict = self.await_head(ask, &mut follower, collapsed).await;
            match verdict {
                Verdict::Alone => {
                    self.local.count(Event::FollowersReleased);
                    want.exact = true;
                    (follower, collapsed) = (self.alone(ask, &want), false);
                }
                Verdict::Variant(primary) => {
                    self.local.count(Event::FollowersReleased);
                    want.primary = Some(primary);
                    (want.stored, want.part, want.validate) = (None, None, false);
                    (follower, collapsed) = self.enter(ask, &want);
                }
                Verdict::Gone => return Finish::gone(0),
                Verdict::Failed(error) => return self.failed(ask, &want, error, keep).await,
                Verdict::Object(head, object) => {
                    if let Some(finish) = self.validated(ask, &head, &object, keep).await {
                        return finish;
                    }
                    // It is right, but not all of it is there.
                    want.validate = false;
                    (follower, collapsed) = (self.alone(ask, &want), false);
                }
                Verdict::Sparse(head, object) => {
                    let sent = self.sparse(ask, &want, &head, &object, follower, collapsed, keep);
                    if let Some(finish) = sent.await {
                        return finish;
                    }
                    want.exact = true;
                    (follower, collapsed) = (self.alone(ask, &want), false);
                }
                Verdict::Stream(head) => {
                    if let Some(finish) = self.stale_instead(ask, &want, &head, keep).await {
                        return finish;
                    }
                    let cut = cut(ask, &head, collapsed);
                    if cut == Cut::Elsewhere && !want.exact {
                        drop(head);
                        want.exact = true;
                        (follower, collapsed) = (self.alone(ask, &want), false);
                        continue;
                    }
                    let how = How {
                        cut,
                        collapsed,
                        keep,
                    };
                    return self.stream(ask, &want, follower, &head, how).await;
                }
            }
        }
    }

    /// Joins a fill, or starts one; whether it is another request's.
    fn enter(&self, ask: &Rc<Ask>, want: &Want) -> (Follower<FillHead>, bool) {
        let local = &self.local;
        let key = self.fill_key(ask, want);
        let hash = key_hash(&key);
        let range = ranged(local, ask, want, hash);
        let digest = &ask.digest;
        let if_range = || foxy_base::first(&ask.head(), "If-Range").is_some();
        // These must not be given an answer that was asked for by somebody else, or before.
        let alone = digest.authorization
            || digest.no_store
            || range == Ranged::Own
            || range != Ranged::No && if_range()
            || want.reason == Fwd::Request
            || digest.conditional && want.stored.is_none()
            || local.proxy.unshared.has(hash, local.wall());
        if alone {
            return (self.alone(ask, want), false);
        }
        let slot = match &range {
            Ranged::Aligned(_) if !want.validate => key_hash(&[&key, &b" ranges"[..]].concat()),
            _ => hash,
        };
        match local.proxy.fills.join_at(slot, hash, &key, ask.base_hash) {
            Joined::Follows(follower) => {
                local.count(Event::Followers);
                (follower, true)
            }
            Joined::Starts(writer, follower) => {
                fetch::spawn(local, job(ask, want, range), writer);
                (follower, false)
            }
        }
    }

    /// Starts a fill that nobody else joins.
    fn alone(&self, ask: &Rc<Ask>, want: &Want) -> Follower<FillHead> {
        let key = self.fill_key(ask, want);
        let hash = key_hash(&key);
        let range = ranged(&self.local, ask, want, hash);
        let (writer, follower) = self.local.proxy.fills.alone(hash, &key, ask.base_hash);
        fetch::spawn(&self.local, job(ask, want, range), writer);
        follower
    }

    /// The key that the answer will have if its Vary list is the known one.
    fn fill_key(&self, ask: &Ask, want: &Want) -> Vec<u8> {
        let mut key = ask.base.to_vec();
        let known = want.stored.as_ref().or(want.part.as_ref());
        match (known, &want.primary) {
            (Some(object), _) => key = object.key().to_vec(),
            (None, Some(primary)) => {
                let mut values = Vec::new();
                vary::selecting_values(&primary.list, &ask.head(), &mut values);
                key::push_variant(primary.nonce, &values, &mut key);
            }
            (None, None) => {}
        }
        key
    }

    async fn await_head(
        &mut self,
        ask: &Ask,
        follower: &mut Follower<FillHead>,
        collapsed: bool,
    ) -> Verdict {
        loop {
            let event = tokio::select! {
                biased;
                event = poll_fn(|cx| follower.poll_head(cx)) => event,
                () = self.io.gone(CLOSED) => return Verdict::Gone,
            };
            match event {
                Ok(HeadEvent::Interim(text)) => {
                    let wanted = ask.head().version() == Version::Http11;
                    let patience = self.local.patience.progress;
                    if wanted && self.io.write(&text, patience).await.is_err() {
                        return Verdict::Gone;
                    }
                }
                Ok(HeadEvent::Head(head)) => return self.judge(ask, head, collapsed),
                // A leader's bad luck is not the follower's: it tries once for itself.
                Err(Released::Failed(UpstreamError::GivenUp)) if collapsed => {
                    return Verdict::Alone;
                }
                Err(Released::Failed(error)) => return Verdict::Failed(error),
                Err(Released::Lagged) => return Verdict::Alone,
            }
        }
    }

    fn judge(&self, ask: &Ask, head: Arc<FillHead>, collapsed: bool) -> Verdict {
        if collapsed {
            let selects = |(list, values): &(bytes::Bytes, bytes::Bytes)| {
                vary::matches(list, values, &ask.head())
            };
            let other = !head.vary.as_ref().is_none_or(selects);
            if let Some(primary) = head.primary.clone().filter(|_| other && head.shared) {
                return Verdict::Variant(primary);
            }
            let usable = head.part.is_none() || head.sparse.is_some();
            let usable = usable || matches!(cut(ask, &head, true), Cut::Slice { .. });
            if other || !head.shared || !usable || !fits(&self.local, ask, &head) {
                return Verdict::Alone;
            }
        }
        let sparse = head.sparse.clone().or_else(|| {
            // A range of something that arrives whole.
            let running = head.running.get().filter(|_| head.length.is_some());
            let range = ask.digest.range && head.status == 200 && !head.ranged;
            running.filter(|_| range).map(|r| Arc::clone(&r.head))
        });
        match (head.object.clone(), sparse) {
            (Some(object), _) => Verdict::Object(head, object),
            (None, Some(object)) => Verdict::Sparse(head, object),
            (None, None) => Verdict::Stream(head),
        }
    }

    /// Answers from an object that is arriving. `None`, and nothing sent, if that cannot be done.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a fill and a request come to"
    )]
    async fn sparse(
        &mut self,
        ask: &Rc<Ask>,
        want: &Want,
        head: &FillHead,
        object: &Arc<Object>,
        follower: Follower<FillHead>,
        collapsed: bool,
        keep: bool,
    ) -> Option<Finish> {
        let stored = Digest::decode(&object.meta().rules)?;
        let now = self.local.wall();
        let shown = Shown {
            age: freshness::age(&stored, now),
            ttl: freshness::ttl_ms(&stored, now).div_euclid(1000),
            outcome: streamed_outcome(want, collapsed),
            rule: ask.rule,
        };
        let arriving = Arriving {
            follower,
            reason: want.reason,
            status: head.status,
            collapsed,
        };
        let shape = self.shape_of(ask, object, &stored);
        let sent = self.large(ask, object, &shape, &shown, Some(arriving), keep);
        let finish = sent.await?;
        Some(Finish {
            origin_status: head.status,
            origin: Some(head.origin),
            ..finish
        })
    }

    fn shape_of(&self, ask: &Ask, object: &Object, stored: &Digest) -> Shape {
        let (head, now) = (ask.head(), self.local.wall());
        match memory::shape(&self.local, &head, &ask.digest, object, stored, now) {
            Shape::AskOrigin => Shape::Whole,
            shape => shape,
        }
    }

    /// The origin could not be asked: something stale, or an error page.
    async fn failed(
        &mut self,
        ask: &Rc<Ask>,
        want: &Want,
        error: UpstreamError,
        keep: bool,
    ) -> Finish {
        if !matches!(error, UpstreamError::Forbidden(_))
            && let Some(finish) = self.stale(ask, want, Failure::Unreachable, keep).await
        {
            return finish;
        }
        self.error_page(ask, error, keep).await
    }

    /// Answers with the page for an upstream error.
    pub(super) async fn error_page(
        &mut self,
        ask: &Ask,
        error: UpstreamError,
        keep: bool,
    ) -> Finish {
        let refusal = Refusal {
            status: error.status(),
            reason: error.reason(),
        };
        self.refused(ask, refusal, error.outcome(), keep).await
    }

    /// Answers with a page of Foxy's own.
    pub(super) async fn refused(
        &mut self,
        ask: &Ask,
        refusal: Refusal,
        outcome: Outcome,
        keep: bool,
    ) -> Finish {
        let head = ask.head();
        let (local, io, scratch) = (&self.local, &self.io, &mut self.scratch);
        let sent = send_page(local, io, scratch, refusal, Some(&head), keep).await;
        Finish {
            outcome,
            reason: refusal.reason,
            status: refusal.status,
            keep: keep && sent.is_ok(),
            body: sent.unwrap_or(0),
            ..Finish::default()
        }
    }

    /// Something stale in place of an error of the origin, if allowed.
    async fn stale_instead(
        &mut self,
        ask: &Rc<Ask>,
        want: &Want,
        head: &FillHead,
        keep: bool,
    ) -> Option<Finish> {
        if head.status < 500 {
            return None;
        }
        let mut finish = self
            .stale(ask, want, Failure::Status(head.status), keep)
            .await?;
        finish.origin_status = head.status;
        finish.origin = Some(head.origin);
        Some(finish)
    }

    async fn stale(
        &mut self,
        ask: &Rc<Ask>,
        want: &Want,
        failure: Failure,
        keep: bool,
    ) -> Option<Finish> {
        let object = want.stored.as_ref()?;
        let stored = stored_digest(object)?;
        let config = self.local.proxy.rules(ask.rule);
        let now = self.local.wall();
        let decision = stale_on_failure(&ask.digest, &stored, now, failure, config)?;
        let (Decision::Stale { age, ttl, .. } | Decision::Fresh { age, ttl }) = decision else {
            return None;
        };
        let shown = Shown {
            age,
            ttl,
            outcome: Outcome::StaleHit,
            rule: ask.rule,
        };
        self.object(ask, object, &stored, shown, keep).await
    }

    /// The origin said that the stored object is still right. `None`: not all of it is there.
    async fn validated(
        &mut self,
        ask: &Rc<Ask>,
        head: &FillHead,
        object: &Arc<Object>,
        keep: bool,
    ) -> Option<Finish> {
        let stored = stored_digest(object)?;
        let now = self.local.wall();
        let shown = Shown {
            age: freshness::age(&stored, now),
            ttl: freshness::ttl_ms(&stored, now).div_euclid(1000),
            outcome: Outcome::Revalidated,
            rule: ask.rule,
        };
        let finish = self.object(ask, object, &stored, shown, keep).await?;
        Some(Finish {
            origin_status: 304,
            origin: Some(head.origin),
            ..finish
        })
    }

    /// Sends an object, whatever its size; `None` if not all of it is there.
    async fn object(
        &mut self,
        ask: &Rc<Ask>,
        object: &Arc<Object>,
        stored: &Digest,
        shown: Shown,
        keep: bool,
    ) -> Option<Finish> {
        let shape = self.shape_of(ask, object, stored);
        self.large(ask, object, &shape, &shown, None, keep).await
    }
}

fn job(ask: &Rc<Ask>, want: &Want, range: Ranged) -> Job {
    let own = range == Ranged::Own;
    Job {
        ask: Rc::clone(ask),
        stored: want.stored.clone(),
        validate: want.validate,
        part: want.part.clone(),
        range,
        primary: want.primary.clone(),
        // With a range the client's If-Range goes along.
        own_conditions: own || ask.digest.conditional && want.stored.is_none(),
        background: false,
    }
}

/// Whether a running fill's answer is one that this request's directives accept.
fn fits(local: &Local, ask: &Ask, head: &FillHead) -> bool {
    let Some(digest) = &head.digest else {
        return false;
    };
    let config = local.proxy.rules(ask.rule);
    let judged = decide(&ask.digest, digest, local.wall(), config);
    // One that must be validated at each use has just come from the origin.
    head.object.is_some() || !matches!(judged, Decision::Forward { .. })
}
