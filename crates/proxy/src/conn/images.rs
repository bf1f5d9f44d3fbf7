//! Requests for container images: the answer that Foxy is a registry, and the proof that a client may
//! have a layer.

use std::rc::Rc;
use std::sync::Arc;

use foxy_base::rule;
use foxy_http_rules::{Failure, Fwd, stale_on_failure};
use foxy_http1::RequestParts;
use foxy_store::Object;

use super::answer::Instead;
use super::join::{Verdict, Want, fetch_behind};
use super::{Conn, Finish};
use crate::ask::{Ask, Who};
use crate::fetch::{self, FillHead, Job};
use crate::fill::{Follower, Joined};
use crate::gate::Grant;
use crate::mirrors;
use crate::net::Transport;
use crate::reply::send_plain;
use crate::route::{Refusal, url_of};
use crate::serve::find::find;
use crate::{Event, Outcome};

/// Fetches of others that a request for a proof waits for, one after the other.
const TURNS: usize = 4;

impl<T: Transport> Conn<T> {
    /// The answer of a registry of images that it is one.
    pub(super) async fn registry(&mut self, parts: RequestParts, keep: bool) -> Finish {
        let keep = keep && parts.framing().is_empty();
        let head = parts.head(self.buf.filled(), &self.slots);
        let fields =
            "Content-Type: application/json\r\nDocker-Distribution-Api-Version: registry/2.0\r\n";
        let own = (keep, &head);
        let (local, io, scratch) = (&self.local, &self.io, &mut self.scratch);
        let sent = send_plain(local, io, scratch, fields, b"{}", own).await;
        Finish {
            status: 200,
            keep: keep && sent.is_ok(),
            body: sent.unwrap_or(0),
            ..Finish::default()
        }
    }

    /// Answers HEAD. If it was for a tag that is not stored, the manifest is then fetched in the
    /// background: some clients ask for tags by HEAD alone, and need an answer when the registry fails.
    pub(super) async fn head(&mut self, ask: &Rc<Ask>, want: &Want, keep: bool) -> Finish {
        let finish = self.pass_head(ask, want, keep).await;
        let image = ask.registry().and_then(|part| part.image());
        let unknown = want.stored.is_none() && finish.status == 200;
        if unknown && image.is_some_and(|image| image.is_tag()) {
            fetch_behind(&self.local, ask);
        }
        finish
    }

    /// Asks the registry whether the client may have the layer, and looks the layer up if it may.
    pub(super) async fn proven(
        &mut self,
        parts: &RequestParts,
        keep: bool,
    ) -> Result<Finish, Instead> {
        match self.may_have(parts).await {
            Some(refusal) => Err(Instead::Refuse(refusal, Outcome::Denied)),
            None => {
                if let Some(role) = mirrors::proven(&self.role) {
                    self.role = Rc::new(role);
                }
                self.short(parts, keep).await
            }
        }
    }

    /// Asks the store for the proof, and else the registry. Returns why the client may not have the
    /// layer.
    async fn may_have(&mut self, parts: &RequestParts) -> Option<Refusal> {
        let head = parts.head(self.buf.filled(), &self.slots);
        let Some(url) = url_of(&head, &self.role) else {
            return Some(refused(400, "missing-host"));
        };
        let who = Who::new(&self.role, &self.client, &self.local);
        let ask = Rc::new(Ask::new(self.buf.filled(), &self.slots, *parts, &url, &who));
        let mut stored = None;
        let mut follower = None;
        for _ in 0..TURNS {
            let (object, fresh) = self.proof(&ask).await;
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
                arrived: self.local.wall(),
            };
            let mut own = follower
                .take()
                .unwrap_or_else(|| self.ask_for_proof(&ask, &want));
            let failure = match self.await_head(&ask, &want, &mut own).await {
                Verdict::Send(_, head, _) | Verdict::Failing(head) => match head.status {
                    200 => return None,
                    status @ 500.. => (Failure::Status(status), refused(502, "origin-failing")),
                    status => {
                        rule!(
                            "mirror: the proof of a layer ends when its registry denies it",
                            self.forget_proof(&ask),
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
                // An answer to others proves nothing for this request.
                _ => {
                    follower = Some(self.alone(&ask, &want));
                    continue;
                }
            };
            let (failure, refusal) = failure;
            return (!self.still_holds(&ask, stored.as_ref(), failure)).then_some(refusal);
        }
        let lasting = self.still_holds(&ask, stored.as_ref(), Failure::Unreachable);
        (!lasting).then_some(refused(503, "busy"))
    }

    /// Joins the request for the proof, or starts it. Its answer has no body: it is stored even if
    /// nobody waits for its end.
    fn ask_for_proof(&self, ask: &Rc<Ask>, want: &Want) -> Follower<FillHead> {
        let fills = &self.local.proxy.fills;
        match fills.join(ask.base_hash, &ask.base, ask.base_hash) {
            Joined::Follows(follower) => {
                self.local.count(Event::Followers);
                follower
            }
            Joined::Starts(writer, follower) => {
                let job = Job {
                    stored: want.stored.clone(),
                    background: true,
                    ..Job::plain(Rc::clone(ask))
                };
                fetch::spawn(&self.local, job, writer);
                follower
            }
        }
    }

    /// The stored proof, and whether it holds now.
    async fn proof(&self, ask: &Ask) -> (Option<Arc<Object>>, bool) {
        let local = &self.local;
        let rules = local.proxy.rules(ask.rule);
        let mut key = ask.base.to_vec();
        let found = find(local, &mut key, &ask.sent(local), &rules.key_parts).await;
        let Some((object, _)) = found.object else {
            return (None, false);
        };
        let digest = local.proxy.admitted(&object, ask.rule);
        let fresh = digest.is_some_and(|digest| {
            let proves = rule!(
                "mirror: only a registry's consent proves a right to a layer",
                digest.status == 200,
                true
            );
            proves && Grant::shared(&ask.digest, &digest, local.wall(), rules).is_ok()
        });
        (Some(object), fresh)
    }

    /// True if an old proof counts while the registry fails.
    fn still_holds(&self, ask: &Ask, stored: Option<&Arc<Object>>, failure: Failure) -> bool {
        let local = &self.local;
        let digest = stored.and_then(|object| local.proxy.admitted(object, ask.rule));
        digest.is_some_and(|digest| {
            let rules = local.proxy.rules(ask.rule);
            let old = stale_on_failure(&ask.digest, &digest, local.wall(), failure, rules);
            digest.status == 200 && old.is_some()
        })
    }

    fn forget_proof(&self, ask: &Ask) {
        let proxy = &self.local.proxy;
        proxy.forget(ask.base_hash, &ask.base);
    }
}

const fn refused(status: u16, reason: &'static str) -> Refusal {
    Refusal { status, reason }
}
