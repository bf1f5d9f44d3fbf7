//! The end of a request: log record and counters.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use foxy_base::{FieldBlock, MonoTime, WallTime, first};
use foxy_http_rules::{RuleId, freshness};
use foxy_http1::{RequestHead, Version};
use foxy_store::Object;

use super::Conn;
use crate::net::Transport;
use crate::purge::stored_digest;
use crate::route::Refusal;
use crate::{Details, LogRecord, Outcome, Recent, RequestId, Role};

/// Notes about the current request for the log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noted {
    /// Seconds that were left of the lifetime of an answer that was fetched.
    pub(crate) ttl: Option<i64>,
    /// The operator's rule that decided.
    pub(crate) rule: RuleId,
}

/// The result of a request.
#[derive(Clone, Debug)]
pub(crate) struct Finish {
    pub(crate) outcome: Outcome,
    pub(crate) reason: &'static str,
    /// Sent to the client; 0 if nothing was.
    pub(crate) status: u16,
    /// Body bytes sent.
    pub(crate) body: u64,
    pub(crate) origin_status: u16,
    pub(crate) origin: Option<SocketAddr>,
    /// Fields of the answer, if it was no stored object.
    pub(crate) fields: Option<FieldBlock>,
    /// The stored object that was sent.
    pub(crate) object: Option<Arc<Object>>,
    /// The connection can carry another request.
    pub(crate) keep: bool,
}

impl Default for Finish {
    fn default() -> Self {
        Self {
            outcome: Outcome::Local,
            reason: "",
            status: 0,
            body: 0,
            origin_status: 0,
            origin: None,
            fields: None,
            object: None,
            keep: false,
        }
    }
}

impl Finish {
    /// The end of a request that was answered with a page of Foxy; `sent` is the result of sending it.
    pub(crate) fn refused(
        refusal: Refusal,
        outcome: Outcome,
        keep: bool,
        sent: io::Result<u64>,
    ) -> Self {
        Self {
            outcome,
            reason: refusal.reason,
            status: refusal.status,
            keep: keep && sent.is_ok(),
            body: sent.unwrap_or(0),
            ..Self::default()
        }
    }
}

impl Finish {
    /// Returns the part of it that is remembered.
    pub(crate) const fn recent(&self, at: WallTime) -> Recent {
        Recent {
            at,
            outcome: self.outcome,
            reason: self.reason,
            status: self.status,
            origin_status: self.origin_status,
        }
    }

    /// The same with another outcome, unless the client is gone.
    pub(crate) fn if_sent(self, outcome: Outcome) -> Self {
        match self.outcome {
            Outcome::ClientGone => self,
            _ => Self { outcome, ..self },
        }
    }

    /// The client left or stalled.
    pub(crate) fn gone(status: u16) -> Self {
        Self {
            outcome: Outcome::ClientGone,
            status,
            ..Self::default()
        }
    }
}

impl<T: Transport> Conn<T> {
    /// Logs and counts a finished request. Allocates nothing.
    pub(crate) fn finished(
        &self,
        head: Option<&RequestHead<'_>>,
        started: MonoTime,
        finish: &Finish,
    ) {
        let local = &self.local;
        let duration = local.mono().since(started);
        let counters = local.counters();
        counters.finished(finish.outcome, finish.status, finish.body, duration);
        if let Some(origins) = self.role.origins() {
            origins.finished(local, finish.outcome, finish.status);
        } else if matches!(&*self.role, Role::Site(_)) {
            // Of a mirror.
            let result = (finish.outcome, finish.status);
            let proxy = &local.proxy;
            proxy.mirror_finished(self.role.name(), local.index, result);
        }
        if !local.logs {
            return;
        }
        let said = head.map(Said::of).unwrap_or_default();
        let stored = finish.object.as_ref().map(|object| object.fields());
        let fields = stored.or(finish.fields.as_ref());
        let pass = self.client.pass.as_deref();
        let record = LogRecord {
            at: local.wall(),
            duration,
            client: self.client.shown(),
            partition: self.role.partition(),
            method: head.map_or(b"", |head| head.method_text()),
            target: head.map_or(b"", |head| head.target_text()),
            host: said.host,
            minor: u8::from(head.is_none_or(|head| head.version() == Version::Http11)),
            status: finish.status,
            outcome: finish.outcome,
            reason: finish.reason,
            bytes_in: self.io.received() - self.counted.0,
            bytes_out: self.io.sent() - self.counted.1,
            body_out: finish.body,
            origin_status: finish.origin_status,
            origin: finish.origin,
            content_type: fields
                .and_then(|fields| first(fields, "Content-Type"))
                .unwrap_or_default(),
            referer: said.referer,
            user_agent: said.user_agent,
            user: pass.map_or("", |pass| pass.user_name()),
            access_rule: pass.map_or("", |pass| pass.rule_name()),
            details: local
                .details
                .then(|| self.details((head, said.traceparent), started, finish)),
        };
        local.log.borrow_mut().record(&record);
    }

    /// Returns the details of a request, which only some logs need.
    fn details<'a>(
        &'a self,
        (head, traceparent): (Option<&'a RequestHead<'_>>, &'a [u8]),
        started: MonoTime,
        finish: &Finish,
    ) -> Details<'a> {
        let local = &self.local;
        let seed = local.proxy.config.seed;
        let stored = finish
            .object
            .as_ref()
            .and_then(|object| stored_digest(object));
        let ttl = stored.map(|stored| freshness::ttl_ms(&stored, local.wall()).div_euclid(1000));
        Details {
            id: RequestId::of(head, &self.client, seed, local.index),
            first_byte: self.io.take_first_byte().map(|first| first.since(started)),
            ttl: ttl.or(self.noted.ttl),
            rule: local.proxy.rule_name(self.noted.rule).unwrap_or_default(),
            traceparent,
        }
    }
}

/// The request's fields that a line can show, as received; empty if they are not there.
#[derive(Clone, Copy, Debug, Default)]
struct Said<'b> {
    host: &'b [u8],
    referer: &'b [u8],
    user_agent: &'b [u8],
    traceparent: &'b [u8],
}

impl<'b> Said<'b> {
    /// Reads the fields once. The first of several with one name counts.
    fn of(head: &RequestHead<'b>) -> Self {
        let mut said = Self::default();
        for (name, value) in head.fields().iter() {
            let (to, wanted) = match name.len() {
                4 => (&mut said.host, "Host"),
                7 => (&mut said.referer, "Referer"),
                10 => (&mut said.user_agent, "User-Agent"),
                11 => (&mut said.traceparent, "traceparent"),
                _ => continue,
            };
            if to.is_empty() && foxy_base::eq_name(name, wanted.as_bytes()) {
                *to = value;
            }
        }
        said
    }
}
