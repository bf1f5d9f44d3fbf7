//! Hits on large objects, from the place in the send queues to the end of the body.

use std::rc::Rc;
use std::sync::Arc;

use foxy_base::MonoTime;
use foxy_http_rules::range::Span;
use foxy_http_rules::{Miss, decide_miss};
use foxy_http1::RequestParts;
use foxy_store::Object;

use super::answer::{Instead, Known, Long, missed};
use super::objects::lost;
use super::{Conn, Finish};
use crate::Outcome;
use crate::ask::Ask;
use crate::gate::Shown;
use crate::ledger::Entry;
use crate::net::Transport;
use crate::objects::NO_OBJECT;
use crate::serve::find::Primary;
use crate::serve::memory::Shape;

/// A large object that may answer the request.
pub(super) struct LargeHit {
    pub(super) object: Arc<Object>,
    pub(super) shape: Shape,
    pub(super) spans: Vec<Span>,
    pub(super) shown: Shown,
    pub(super) primary: Option<Primary>,
}

impl<T: Transport> Conn<T> {
    /// Answers with a large object. Many clients may wait for places in the send queues: until it
    /// has one, the answer needs neither read buffer nor future on the heap.
    pub(super) async fn large_answer(
        &mut self,
        parts: &RequestParts,
        hit: Box<LargeHit>,
        keep: bool,
        started: MonoTime,
    ) -> bool {
        let Some(ask) = self.take_request(*parts) else {
            return false;
        };
        self.buf.release();
        let place = self.queue_for(&hit.spans).await;
        let finish = match place {
            Some(place) => Box::pin(self.large_hit(&ask, *hit, place, keep)).await,
            None => Box::pin(self.without_memory(&ask, keep)).await,
        };
        self.note_finish(&ask, started, &finish);
        finish.keep
    }

    /// Sends a large object; one that lacks fragments is a miss.
    async fn large_hit(
        &mut self,
        ask: &Rc<Ask>,
        hit: LargeHit,
        place: Entry,
        keep: bool,
    ) -> Finish {
        let stored = (&hit.object, &hit.shape, &hit.shown);
        let sent = self.large_in(ask, stored, (hit.spans, place), None, keep);
        if let Some(finish) = sent.await {
            return finish;
        }
        if self.role.objects().is_some() {
            lost(&self.local, &hit.object);
            return self.refused(ask, NO_OBJECT, Outcome::Miss, keep).await;
        }
        let decision = decide_miss(&ask.digest, Miss::Uri);
        let parts = ask.head().parts();
        // The head stays until an answer replaces it: its variants hang on it.
        let known = Known::whole(hit.object, hit.primary);
        match missed(&parts, (&ask.digest, self.local.wall()), decision, known) {
            Instead::Long(Long::Fill(want)) => self.through_fill(ask, want, keep).await,
            Instead::Long(Long::Pass(reason)) => self.pass(ask, reason, keep).await,
            Instead::Refuse(refusal, outcome) => self.refused(ask, refusal, outcome, keep).await,
            Instead::Large(_) | Instead::Long(_) => Finish::default(),
        }
    }
}
