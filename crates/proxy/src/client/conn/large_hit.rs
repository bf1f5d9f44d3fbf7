//! Hits on large objects, whose bodies are stored in fragments: the wait for memory in the kernel's send
//! queues, and the sending of the body.

use std::rc::Rc;
use std::sync::Arc;

use foxy_base::MonoTime;
use foxy_http_rules::range::Span;
use foxy_http_rules::{Miss, decide_miss};
use foxy_http1::RequestParts;
use foxy_store::Object;

use super::answer::{Instead, Known, Long, missed};
use super::{Conn, Finish};
use crate::Outcome;
use crate::cache::gate::Shown;
use crate::cache::owned_request::OwnedRequest;
use crate::cache::serve::find::Primary;
use crate::cache::serve::memory::Shape;
use crate::exchange::{Exchange, lost};
use crate::http::connection::Queued;
use crate::http::net::Transport;
use crate::sites::objects::NO_OBJECT;

/// A large object that may answer the request.
pub(super) struct LargeHit {
    pub(super) object: Arc<Object>,
    pub(super) shape: Shape,
    pub(super) spans: Vec<Span>,
    pub(super) shown: Shown,
    pub(super) primary: Option<Primary>,
}

impl<T: Transport> Conn<T> {
    /// Answers with a large object. Many answers may wait for memory in the kernel's send queues. So an
    /// answer that waits uses neither a read buffer nor a future on the heap.
    pub(super) async fn large_answer(
        &mut self,
        parts: &RequestParts,
        hit: Box<LargeHit>,
        keep: bool,
        started: MonoTime,
    ) -> bool {
        let Some(req) = self.take_request(parts) else {
            return false;
        };
        self.link.release();
        let queued = self.link.queue_for(&self.local, &hit.spans).await;
        let finish = match queued {
            Ok(queued) => Box::pin(self.large_hit(&req, *hit, queued, keep)).await,
            Err(lost) => Box::pin(self.exchange(Rc::clone(&req), keep).without_room(lost)).await,
        };
        self.end(&req, started, &finish)
    }

    /// Sends a large object. If fragments of the object are missing, the request is a miss.
    async fn large_hit(
        &mut self,
        req: &Rc<OwnedRequest>,
        hit: LargeHit,
        queued: Queued,
        keep: bool,
    ) -> Finish {
        let stored = (&hit.object, &hit.shape, &hit.shown);
        let mut exchange = Exchange::new(&mut self.link, &self.local, Rc::clone(req), keep);
        let sent = exchange.large_in(stored, (hit.spans, queued), None);
        if let Some(finish) = sent.await {
            return finish;
        }
        if req.role.objects().is_some() {
            lost(&self.local, &hit.object);
            return exchange.refused(NO_OBJECT, Outcome::Miss).await;
        }
        let decision = decide_miss(&req.facts, Miss::Uri);
        let parts = req.head().parts();
        // The head of the object is not removed. It remains stored until a new answer replaces it, because
        // requests find the variants through it.
        let known = Known::whole(hit.object, hit.primary);
        match missed(&parts, (&req.facts, self.local.wall()), decision, known) {
            Instead::Long(Long::Fill(want)) => exchange.through_fill(want).await,
            Instead::Long(Long::Pass(reason)) => exchange.pass(reason).await,
            Instead::Refuse(refusal, outcome) => exchange.refused(refusal, outcome).await,
            Instead::Large(_) | Instead::Long(_) => Finish::default(),
        }
    }
}
