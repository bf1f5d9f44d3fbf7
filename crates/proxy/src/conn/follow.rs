//! Serving a request by a fill: joining or starting it, judging its head, streaming its body.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use foxy_base::key_hash;
use foxy_http_rules::{Decision, Digest, Failure, Fwd, decide, freshness, stale_on_failure, vary};
use foxy_http1::Version;
use foxy_store::Object;

use super::answer::Shown;
use super::{Conn, Finish};
use crate::ask::Ask;
use crate::fetch::{self, FillHead, Job};
use crate::fill::{Follower, HeadEvent, Joined, Released};
use crate::local::Local;
use crate::net::Transport;
use crate::reply::send_page;
use crate::route::Refusal;
use crate::serve::find::Primary;
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
    /// Only the request's own range is fetched.
    pub(crate) range: bool,
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
            range: false,
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
        let key = self.fill_key(ask, &want);
        let hash = key_hash(&key);
        let fills = &self.local.proxy.fills;
        let digest = &ask.digest;
        // These must not be given an answer that was asked for by somebody else, or before.
        let alone = digest.authorization
            || digest.no_store
            || want.range
            || want.reason == Fwd::Request
            || digest.conditional && want.stored.is_none();
        let joined = if alone {
            let (writer, follower) = fills.alone(hash, &key, ask.base_hash);
            Joined::Starts(writer, follower)
        } else {
            fills.join(hash, &key, ask.base_hash)
        };
        let (mut follower, mut collapsed) = match joined {
            Joined::Follows(follower) => {
                self.local.count(Event::Followers);
                (follower, true)
            }
            Joined::Starts(writer, follower) => {
                fetch::spawn(&self.local, job(ask, &want), writer);
                (follower, false)
            }
        };
        loop {
            let verdict = self.await_head(ask, &mut follower, collapsed).await;
            match verdict {
                Verdict::Alone => {
                    self.local.count(Event::FollowersReleased);
                    let fills = &self.local.proxy.fills;
                    let (writer, own) = fills.alone(hash, &key, ask.base_hash);
                    fetch::spawn(&self.local, job(ask, &want), writer);
                    (follower, collapsed) = (own, false);
                }
                Verdict::Gone => return Finish::gone(0),
                Verdict::Failed(error) => return self.failed(ask, &want, error, keep).await,
                Verdict::Object(head, object) => {
                    if let Some(finish) = self.validated(ask, &head, &object, keep).await {
                        return finish;
                    }
                    // It is right, but not all of it is there.
                    want.validate = false;
                    let fills = &self.local.proxy.fills;
                    let (writer, own) = fills.alone(hash, &key, ask.base_hash);
                    fetch::spawn(&self.local, job(ask, &want), writer);
                    (follower, collapsed) = (own, false);
                }
                Verdict::Stream(head) => {
                    if let Some(finish) = self.stale_instead(ask, &want, &head, keep).await {
                        return finish;
                    }
                    return self
                        .stream(ask, &want, follower, &head, collapsed, keep)
                        .await;
                }
            }
        }
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
            match poll_fn(|cx| follower.poll_head(cx)).await {
                Ok(HeadEvent::Interim(text)) => {
                    let wanted = ask.head().version() == Version::Http11;
                    let patience = self.local.patience.progress;
                    if wanted && self.io.write(&text, patience).await.is_err() {
                        return Verdict::Gone;
                    }
                }
                Ok(HeadEvent::Head(head)) => {
                    let selects = head
                        .vary
                        .as_ref()
                        .is_none_or(|(list, values)| vary::matches(list, values, &ask.head()));
                    let mine =
                        !collapsed || head.shared && selects && fits(&self.local, ask, &head);
                    return match head.object.clone() {
                        _ if !mine => Verdict::Alone,
                        Some(object) => Verdict::Object(head, object),
                        None => Verdict::Stream(head),
                    };
                }
                // A leader's bad luck is not the follower's: it tries once for itself.
                Err(Released::Failed(UpstreamError::GivenUp)) if collapsed => {
                    return Verdict::Alone;
                }
                Err(Released::Failed(error)) => return Verdict::Failed(error),
                Err(Released::Lagged) => return Verdict::Alone,
            }
        }
    }

    /// The origin could not be asked: something stale, or an error page.
    async fn failed(&mut self, ask: &Ask, want: &Want, error: UpstreamError, keep: bool) -> Finish {
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
        ask: &Ask,
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
        ask: &Ask,
        want: &Want,
        failure: Failure,
        keep: bool,
    ) -> Option<Finish> {
        let object = want.stored.as_ref()?;
        let stored = Digest::decode(&object.meta().rules)?;
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
        ask: &Ask,
        head: &FillHead,
        object: &Arc<Object>,
        keep: bool,
    ) -> Option<Finish> {
        let stored = Digest::decode(&object.meta().rules)?;
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
        ask: &Ask,
        object: &Arc<Object>,
        stored: &Digest,
        shown: Shown,
        keep: bool,
    ) -> Option<Finish> {
        let head = ask.head();
        let now = self.local.wall();
        let mut shape = memory::shape(&self.local, &head, &ask.digest, object, stored, now);
        if shape == Shape::AskOrigin {
            shape = Shape::Whole;
        }
        self.large(ask, object, &shape, &shown, keep).await
    }
}

fn job(ask: &Rc<Ask>, want: &Want) -> Job {
    Job {
        ask: Rc::clone(ask),
        stored: want.stored.clone(),
        validate: want.validate,
        part: want.part.clone(),
        range: want.range,
        primary: want.primary.clone(),
        // With a range the client's If-Range goes along.
        own_conditions: want.range || ask.digest.conditional && want.stored.is_none(),
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
