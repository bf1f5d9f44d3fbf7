//! The answers to clients when the origin fails: a stale answer if the caching rules allow it, otherwise an
//! error page of Foxy.

use foxy_base::{first, rule};
use foxy_http_rules::Failure;

use super::join::Want;
use super::{Exchange, Finish};
use crate::Outcome;
use crate::access::refusal::Refusal;
use crate::cache::gate::{Grant, Shown};
use crate::cache::serve::find::Tier;
use crate::cache::stored::stored_facts;
use crate::fill::fetch::FillHead;
use crate::http::connection::{Ends, MEMORY, SliceLost};
use crate::http::net::Transport;
use crate::http::reply::{Extra, send_page_with};
use crate::http::rewriting::ResponseContext;
use crate::origin::UpstreamError;

impl<T: Transport> Exchange<'_, T> {
    /// Answers with a stale object or an error page, because the origin gave no usable answer.
    pub(super) async fn failed(&mut self, want: &Want, error: UpstreamError) -> Finish {
        if !matches!(error, UpstreamError::Forbidden(_))
            && let Some(finish) = self.stale(want, Failure::Unreachable).await
        {
            return finish;
        }
        let error = error.validating(want.stored.as_deref());
        self.error_page(error).await
    }

    /// Answers a request that waited for another request's fetch, if that fetch got an error from the origin.
    /// The origin's error page may be meant only for the request that started the fetch. So only
    /// `Retry-After` and a status 503 are passed on; any other status becomes 502.
    pub(super) async fn failing(&mut self, want: &Want, head: &FillHead) -> Finish {
        if let Some(finish) = self.stale_instead(want, head).await {
            return finish;
        }
        let refusal = Refusal {
            status: if head.status == 503 { 503 } else { 502 },
            reason: "origin-failing",
        };
        let mut fields = Vec::new();
        if let Some(after) = first(&head.fields, "Retry-After") {
            foxy_http1::write::field(&mut fields, b"Retry-After", after);
        }
        let extra = Extra {
            fields: &fields,
            ..Extra::default()
        };
        Finish {
            origin_status: head.status,
            origin: Some(head.origin),
            ..self.page(refusal, &extra, Outcome::OriginError).await
        }
    }

    /// Answers with the error page for an upstream error.
    pub(super) async fn error_page(&mut self, error: UpstreamError) -> Finish {
        let refusal = Refusal {
            status: error.status(),
            reason: error.reason(),
        };
        self.refused(refusal, error.outcome()).await
    }

    /// Answers with an error page of Foxy.
    pub(crate) async fn refused(&mut self, refusal: Refusal, outcome: Outcome) -> Finish {
        self.page(refusal, &Extra::default(), outcome).await
    }

    /// Answers with an error page of Foxy and the additional content of `extra`.
    pub(super) async fn page(
        &mut self,
        refusal: Refusal,
        extra: &Extra<'_>,
        outcome: Outcome,
    ) -> Finish {
        let Ends { io, scratch, .. } = self.link.ends();
        let page = (
            refusal,
            ResponseContext::new(&self.req.role, &self.req.client),
        );
        let (head, keep) = (self.req.head(), self.keep);
        let sent = send_page_with(&self.local, io, scratch, page, extra, Some(&head), keep);
        Finish::refused(refusal, outcome, keep, sent.await)
    }

    /// Ends a request because there is no memory for its answer. If the client has left, nothing is sent.
    /// Otherwise the request is refused and the connection ends. The end of the connection frees its memory.
    /// It also ensures that the unread body of the request is not parsed as the next request.
    pub(crate) async fn without_room(&mut self, lost: SliceLost) -> Finish {
        if lost == SliceLost::Client {
            return Finish::gone(0);
        }
        self.keep = rule!(
            "smuggling: a connection ends with a body for which there is no memory",
            false,
            self.keep
        );
        self.refused(MEMORY, Outcome::Local).await
    }

    /// Answers with a stale object in place of an error of the origin, if the caching rules allow it.
    pub(super) async fn stale_instead(&mut self, want: &Want, head: &FillHead) -> Option<Finish> {
        if head.status < 500 {
            return None;
        }
        let mut finish = self.stale(want, Failure::Status(head.status)).await?;
        finish.origin_status = head.status;
        finish.origin = Some(head.origin);
        Some(finish)
    }

    pub(super) async fn stale(&mut self, want: &Want, failure: Failure) -> Option<Finish> {
        let object = want.stored.as_ref()?;
        let stored = stored_facts(object)?;
        let config = self.local.proxy.rules(self.req.rule);
        let now = self.local.wall();
        let grant = Grant::on_failure(&self.req.facts, &stored, now, failure, config)?;
        let shown = Shown::hit_in(grant, Tier::Memory, self.req.rule);
        self.object(object, shown).await
    }
}
