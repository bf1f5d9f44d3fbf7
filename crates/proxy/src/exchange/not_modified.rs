//! Handling of client conditions that were not sent to the origin, because a revalidation sends the stored
//! validators instead. If the origin answers with a new version that the client already has, the client gets
//! a 304.

use foxy_base::Fields;
use foxy_http_rules::CacheStatus;
use foxy_http_rules::conditional::{self, Condition};
use foxy_http1::write;

use super::join::Want;
use super::stream::{How, streamed_outcome};
use super::{Exchange, Finish};
use crate::cache::owned_request::OwnedRequest;
use crate::fill::fetch::FillHead;
use crate::http::connection::Ends;
use crate::http::net::Transport;
use crate::http::reply::{Mode, OwnFields, own_fields};
use crate::http::rewriting::ResponseContext;
use crate::state::local::Local;

/// True if the client already has the new version, which replaces the stored version: the client's condition
/// names the new version.
pub(super) fn has_it(local: &Local, req: &OwnedRequest, want: &Want, head: &FillHead) -> bool {
    let asked = req.facts.conditional && want.stored.is_some() && head.status == 200;
    let Some(facts) = head.facts.as_ref().filter(|_| asked) else {
        return false;
    };
    let condition = conditional::evaluate(&req.head(), &head.fields, facts, local.wall());
    condition == Condition::NotModified
}

impl<T: Transport> Exchange<'_, T> {
    /// Answers with a 304 in place of the 200 that the fill received.
    pub(super) async fn not_modified(&mut self, want: &Want, head: &FillHead, how: How) -> Finish {
        let (local, req) = (&self.local, &self.req);
        let Ends { io, scratch, .. } = self.link.ends();
        let out = &mut scratch.head;
        out.clear();
        write::status_line(out, 304);
        for i in 0..head.fields.count() {
            let (name, value) = head.fields.field(i);
            if conditional::is_sent_with_304(name) {
                write::field(out, name, value);
            }
        }
        let cache = CacheStatus {
            cache: &local.proxy.config.headers.name,
            fwd: Some(want.reason),
            fwd_status: Some(head.status),
            collapsed: how.collapsed,
            rule: local.proxy.rule_name(req.rule),
            ..CacheStatus::default()
        };
        let to = ResponseContext::new(&req.role, &req.client);
        let own = OwnFields {
            mode: Mode::Bare,
            age: None,
            cache: Some(&cache),
            keep: self.keep,
            head: Some(&req.head()),
            to: Some(to),
            varies: to.varies(&head.fields),
        };
        own_fields(out, local, &own);
        let sent = io.write(out, local.timeouts.progress).await;
        Finish {
            outcome: streamed_outcome(want, how.collapsed),
            status: 304,
            origin_status: head.status,
            origin: Some(head.origin),
            keep: self.keep && sent.is_ok(),
            ..Finish::default()
        }
    }
}
