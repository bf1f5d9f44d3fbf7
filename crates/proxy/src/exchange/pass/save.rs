//! Answers that are passed on without the cache can affect stored objects. The answer to a POST may be stored
//! as an answer to GET (RFC 9110 section 9.3.3). The answer to a HEAD may update the object that a GET stored
//! (RFC 9111 section 4.3.5).

use bytes::Bytes;
use foxy_base::WallTime;
use foxy_http_rules::Method;
use foxy_http_rules::update::{self, HeadUpdate};
use foxy_http1::ResponseHead;

use crate::Event;
use crate::cache::owned_request::OwnedRequest;
use crate::cache::serve::find::{Found, find};
use crate::cache::stored::held;
use crate::fill::FillWriter;
use crate::fill::fetch::judge::{OriginRequest, Times, judge, rules_response};
use crate::fill::fetch::keep::Keeper;
use crate::fill::fetch::{FillHead, refresh};
use crate::origin::exchange::Upstream;
use crate::state::local::Local;

/// The time at which a request was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: WallTime,
    /// The number of the newest purge that began before the time `at`.
    pub(super) purge: u64,
}

impl Sent {
    pub(super) fn now(local: &Local) -> Self {
        Self {
            at: local.wall(),
            purge: local.proxy.engine.purges().purge_sequence(),
        }
    }
}

/// The answer to a POST while it is being stored. It is stored like the answer of a fill (shared fetch), but
/// no request can join it. Purges and later answers have the same effect on it as on any other fill.
pub(super) struct Saving<'a> {
    local: &'a Local,
    writer: FillWriter<FillHead>,
    keeper: Option<Keeper>,
}

fn asked(req: &OwnedRequest, sent: Sent, now: WallTime) -> OriginRequest<'_> {
    OriginRequest {
        req,
        facts: req.facts,
        stored: None,
        primary: None,
        part: None,
        aligned: false,
        widened: false,
        times: Times {
            request: sent.at,
            response: now,
            purge: sent.purge,
        },
    }
}

impl<'a> Saving<'a> {
    /// Begins to store the answer, if the caching rules allow it. Called after the answer has invalidated
    /// stored objects.
    pub(super) fn start(
        local: &'a Local,
        req: &OwnedRequest,
        up: &Upstream,
        head: &ResponseHead<'_>,
        length: Option<u64>,
        sent: Sent,
    ) -> Option<Self> {
        // A rule may change the query in the key. Then the key belongs to a URL that differs from the
        // requested URL, and the answer is not stored.
        if req.facts.method != Method::Post || !req.by_key {
            return None;
        }
        let fills = &local.proxy.fills;
        let (writer, _) = fills.uncollapsed(req.base_hash, &req.base, req.base_hash);
        let mut saving = Self {
            local,
            writer,
            keeper: None,
        };
        let asked = asked(req, sent, local.wall());
        let fill = saving.writer.fill();
        let (fill_head, target) = judge(local, &asked, fill, head, length, up.peer);
        saving.keeper = Some(Keeper::new(local, fill, Some(target?), length));
        saving.writer.head(fill_head, 0);
        Some(saving)
    }

    /// Takes a piece of the body.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if let Some(keeper) = &mut self.keeper {
            let bytes = Bytes::copy_from_slice(bytes);
            keeper.push(self.local, self.writer.fill(), &bytes);
        }
    }

    /// Stores the body after its last piece was pushed.
    pub(super) fn finish(mut self) {
        let stored = self
            .keeper
            .take()
            .is_some_and(|keeper| keeper.finish(self.local, self.writer.fill()));
        if stored {
            self.local.count(Event::FillsStored);
        }
    }
}

impl Drop for Saving<'_> {
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            keeper.truncated(self.local, self.writer.fill());
        }
        self.local.proxy.fills.leave(self.writer.fill());
    }
}

/// Uses the answer to a HEAD request to update the object that a GET stored. The HEAD request was sent at
/// `sent`.
pub(super) async fn freshen(
    local: &Local,
    req: &OwnedRequest,
    head: &ResponseHead<'_>,
    sent: Sent,
) {
    if req.facts.method != Method::Head {
        return;
    }
    let mut key = req.base.to_vec();
    let parts = &local.proxy.rules(req.rule).key_parts;
    let Found { object, .. } = find(local, &mut key, &req.sent(local), parts).await;
    // An object that was stored after the HEAD was sent may be newer than the answer to the HEAD.
    let Some((object, _)) = object.filter(|(object, _)| object.meta().response_time <= sent.at)
    else {
        return;
    };
    let Some(stored) = local.proxy.admitted(&object, req.rule) else {
        return;
    };
    let asked = asked(req, sent, local.wall());
    let response = rules_response(&asked, head.status(), head);
    let part = held(&object);
    let length = part.map_or(Some(object.total_length()), |part| part.complete);
    let engine = &local.proxy.engine;
    match update::head_update(object.fields(), &stored, length, &response) {
        HeadUpdate::Nothing => {}
        HeadUpdate::Invalidate => {
            engine.supersede(object.hash(), object.key());
        }
        HeadUpdate::Freshen => {
            if let Some((meta, fields)) =
                refresh::updated(local, &asked, head.status(), head, &object)
            {
                let (vary, tags) = (object.vary().clone(), object.tags().clone());
                engine.refresh(&object, meta, vary, tags, fields);
            }
        }
    }
}
