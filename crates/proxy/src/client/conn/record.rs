//! The end of a request: log record and counters.

use foxy_base::{MonoTime, first};
use foxy_http_rules::freshness;
use foxy_http1::{RequestHead, Version};

use super::{Conn, Finish};
use crate::cache::stored::stored_facts;
use crate::http::net::Transport;
use crate::{Details, LogRecord, Role};

impl<T: Transport> Conn<T> {
    /// Logs and counts a finished request. Allocates nothing.
    pub(super) fn finished(
        &self,
        head: Option<&RequestHead<'_>>,
        started: MonoTime,
        finish: &Finish,
    ) {
        let (local, client, role) = (&self.local, self.context.client(), self.context.role());
        let duration = local.mono().since(started);
        let counters = local.counters();
        counters.finished(finish.outcome, finish.status, finish.body, duration);
        if let Some(origins) = role.origins() {
            origins.finished(local, finish.outcome, finish.status);
        } else if matches!(&**role, Role::Site(_)) {
            // A site without `origins` is a mirror.
            let result = (finish.outcome, finish.status);
            let proxy = &local.proxy;
            proxy.mirror_finished(role.name(), local.index, result);
        }
        if !local.logs {
            return;
        }
        let said = head.map(Said::of).unwrap_or_default();
        let stored = finish.object.as_ref().map(|object| object.fields());
        let fields = stored.or(finish.fields.as_ref());
        let pass = client.pass.as_deref();
        let (bytes_in, bytes_out) = self.link.moved();
        let record = LogRecord {
            at: local.wall(),
            duration,
            client: client.shown(),
            partition: role.partition(),
            method: head.map_or(b"", |head| head.method_text()),
            target: head.map_or(b"", |head| head.target_text()),
            host: said.host,
            secure: client.arrival.secure,
            minor: u8::from(head.is_none_or(|head| head.version() == Version::Http11)),
            status: finish.status,
            outcome: finish.outcome,
            reason: finish.reason,
            bytes_in,
            bytes_out,
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
            .and_then(|object| stored_facts(object));
        let ttl = stored.map(|stored| freshness::ttl_ms(&stored, local.wall()).div_euclid(1000));
        Details {
            id: self.context.client().request_id(head, seed, local.index),
            first_byte: self
                .link
                .take_first_byte()
                .map(|first| first.since(started)),
            ttl: ttl.or(finish.ttl),
            rule: local.proxy.rule_name(self.rule).unwrap_or_default(),
            traceparent,
        }
    }
}

/// The request's fields that a log record can contain, as received. A field is empty if the request does not
/// have it.
#[derive(Clone, Copy, Debug, Default)]
struct Said<'b> {
    host: &'b [u8],
    referer: &'b [u8],
    user_agent: &'b [u8],
    traceparent: &'b [u8],
}

impl<'b> Said<'b> {
    /// Reads the fields in one pass. If several fields have the same name, the first field is used.
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
