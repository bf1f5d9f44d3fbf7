//! Answers when the origin fails: a stale answer if that is allowed, or an error page of Foxy.

use std::rc::Rc;

use foxy_base::{first, rule};
use foxy_http_rules::Failure;

use super::join::Want;
use super::{Conn, Finish, MEMORY};
use crate::Outcome;
use crate::ask::Ask;
use crate::fetch::FillHead;
use crate::gate::{Grant, Shown};
use crate::net::Transport;
use crate::purge::stored_digest;
use crate::reply::{Extra, send_page, send_page_with};
use crate::rewriting::Recipient;
use crate::route::Refusal;
use crate::serve::find::Tier;
use crate::upstream::UpstreamError;

impl<T: Transport> Conn<T> {
    /// The origin could not be asked: a stale answer or an error page.
    pub(super) async fn failed(
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
        let error = error.validating(want.stored.as_deref());
        self.error_page(ask, error, keep).await
    }

    /// The fetch that this request waited for got an error from the origin. The error page may be
    /// meant for the leader alone, so only the status and `Retry-After` are passed on.
    pub(super) async fn failing(
        &mut self,
        ask: &Rc<Ask>,
        want: &Want,
        head: &FillHead,
        keep: bool,
    ) -> Finish {
        if let Some(finish) = self.stale_instead(ask, want, head, keep).await {
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
        let request = ask.head();
        let (local, io, scratch) = (&self.local, &self.io, &mut self.scratch);
        let sent = send_page_with(
            local,
            io,
            scratch,
            (refusal, Recipient::new(&self.role, &self.client)),
            &Extra {
                fields: &fields,
                ..Extra::default()
            },
            Some(&request),
            keep,
        )
        .await;
        Finish {
            origin_status: head.status,
            origin: Some(head.origin),
            ..Finish::refused(refusal, Outcome::OriginError, keep, sent)
        }
    }

    /// Answers with the error page for an upstream error.
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

    /// Answers with an error page of Foxy.
    pub(super) async fn refused(
        &mut self,
        ask: &Ask,
        refusal: Refusal,
        outcome: Outcome,
        keep: bool,
    ) -> Finish {
        let head = ask.head();
        let (local, io, scratch) = (&self.local, &self.io, &mut self.scratch);
        let sent = send_page(
            local,
            io,
            scratch,
            (refusal, Recipient::new(&self.role, &self.client)),
            Some(&head),
            keep,
        )
        .await;
        Finish::refused(refusal, outcome, keep, sent)
    }

    /// Refuses a request because memory is spent. Nothing of its body was read: if it has one, the
    /// connection ends, so that the body is not taken for the next request.
    pub(crate) async fn without_memory(&mut self, ask: &Ask, keep: bool) -> Finish {
        let keep = rule!(
            "smuggling: a connection ends with a body for which there is no memory",
            keep && ask.head().parts().framing().is_empty(),
            keep
        );
        self.refused(ask, MEMORY, Outcome::Local, keep).await
    }

    /// A stale answer in place of an error of the origin, if allowed.
    pub(super) async fn stale_instead(
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

    pub(super) async fn stale(
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
        let grant = Grant::on_failure(&ask.digest, &stored, now, failure, config)?;
        let shown = Shown::hit_in(grant, Tier::Memory, ask.rule);
        self.object(ask, object, shown, keep).await
    }
}
