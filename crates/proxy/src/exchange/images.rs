//! Requests for container images: HEAD requests, and the registry's proof that a client may have a layer.

use std::rc::Rc;
use std::sync::Arc;

use foxy_base::rule;
use foxy_http_rules::{Failure, Fwd, stale_on_failure};
use foxy_store::Object;

use super::join::{Verdict, Want, fetch_behind};
use super::{Exchange, Finish};
use crate::Event;
use crate::access::refusal::Refusal;
use crate::cache::gate::Grant;
use crate::cache::owned_request::OwnedRequest;
use crate::cache::serve::find::find;
use crate::fill::fetch::{self, FillHead, Job};
use crate::fill::{Follower, Joined};
use crate::http::net::Transport;
use crate::state::local::Local;

/// Largest number of attempts of one request to get a proof, one attempt after the other.
const ATTEMPTS: usize = 4;

impl<T: Transport> Exchange<'_, T> {
    /// Answers a HEAD request. Also starts a background fetch of the manifest under three conditions: the
    /// request was for a tag of an image, the answer has the status 200, and the manifest of this tag is not
    /// stored. Some clients request tags only by HEAD. With the stored manifest, these clients get an answer
    /// even when the registry fails.
    pub(crate) async fn head(&mut self, want: &Want) -> Finish {
        let finish = self.pass_head(want).await;
        let image = self.req.registry().and_then(|part| part.image());
        let unknown = want.stored.is_none() && finish.status == 200;
        if unknown && image.is_some_and(|image| image.is_tag()) {
            fetch_behind(&self.local, &self.req);
        }
        finish
    }

    /// Searches the store for a proof that the client may have the layer of an image. If there is no valid
    /// proof, asks the registry. Returns the refusal if the client may not have the layer.
    pub(crate) async fn may_have(&mut self) -> Option<Refusal> {
        let (local, req) = (Rc::clone(&self.local), Rc::clone(&self.req));
        let mut stored = None;
        let mut follower = None;
        for _ in 0..ATTEMPTS {
            let (object, fresh) = proof(&local, &req).await;
            if fresh {
                return None;
            }
            stored = object;
            let want = Want {
                reason: Fwd::Miss,
                validate: false,
                stored: stored.clone(),
                part: None,
                range: false,
                exact: false,
                primary: None,
                arrived: local.wall(),
            };
            let mut own = follower
                .take()
                .unwrap_or_else(|| ask_for_proof(&local, &req, &want));
            let failure = match self.await_head(&want, &mut own).await {
                Verdict::Send(_, head, _) | Verdict::Failing(head) => match head.status {
                    200 => return None,
                    status @ 500.. => (Failure::Status(status), refused(502, "origin-failing")),
                    status => {
                        rule!(
                            "mirror: the proof of a layer ends when its registry denies it",
                            local.proxy.forget(req.base_hash, &req.base),
                            ()
                        );
                        return Some(refused(status, "layer-not-of-repository"));
                    }
                },
                Verdict::Failed(error) | Verdict::LeaderFailed(error) => (
                    Failure::Unreachable,
                    refused(error.status(), error.reason()),
                ),
                Verdict::Gone => return Some(refused(499, "client-gone")),
                // An answer that was fetched for other requests proves nothing for this request.
                _ => {
                    follower = Some(self.uncollapsed(&want));
                    continue;
                }
            };
            let (failure, refusal) = failure;
            return (!still_holds(&local, &req, stored.as_ref(), failure)).then_some(refusal);
        }
        let lasting = still_holds(&local, &req, stored.as_ref(), Failure::Unreachable);
        (!lasting).then_some(refused(503, "busy"))
    }
}

/// Joins the running fetch of the proof, or starts a fetch. The fetch runs in the background, so the proof is
/// stored even if the client leaves before the end. Such a fetch is cheap, because its answer has no body.
fn ask_for_proof(local: &Rc<Local>, req: &Rc<OwnedRequest>, want: &Want) -> Follower<FillHead> {
    let fills = &local.proxy.fills;
    match fills.join(req.base_hash, &req.base, req.base_hash) {
        Joined::Follows(follower) => {
            local.count(Event::Followers);
            follower
        }
        Joined::Starts(writer, follower) => {
            let job = Job {
                stored: want.stored.clone(),
                background: true,
                ..Job::plain(Rc::clone(req))
            };
            fetch::spawn(local, job, writer);
            follower
        }
    }
}

/// Returns the stored proof, and true if the proof is valid now.
async fn proof(local: &Local, req: &OwnedRequest) -> (Option<Arc<Object>>, bool) {
    let rules = local.proxy.rules(req.rule);
    let mut key = req.base.to_vec();
    let found = find(local, &mut key, &req.sent(local), &rules.key_parts).await;
    let Some((object, _)) = found.object else {
        return (None, false);
    };
    let facts = local.proxy.admitted(&object, req.rule);
    let fresh = facts.is_some_and(|facts| {
        let proves = rule!(
            "mirror: only a registry's consent proves a right to a layer",
            facts.status == 200,
            true
        );
        proves && Grant::shared(&req.facts, &facts, local.wall(), rules).is_ok()
    });
    (Some(object), fresh)
}

/// True if an expired proof is still valid because the registry fails.
fn still_holds(
    local: &Local,
    req: &OwnedRequest,
    stored: Option<&Arc<Object>>,
    failure: Failure,
) -> bool {
    let facts = stored.and_then(|object| local.proxy.admitted(object, req.rule));
    facts.is_some_and(|facts| {
        let rules = local.proxy.rules(req.rule);
        let old = stale_on_failure(&req.facts, &facts, local.wall(), failure, rules);
        facts.status == 200 && old.is_some()
    })
}

const fn refused(status: u16, reason: &'static str) -> Refusal {
    Refusal { status, reason }
}
