//! The answer to a request that the gatekeeper (access rules, logins, limits) does not admit.

use std::rc::Rc;

use foxy_access::{Action, Rule};
use foxy_base::{MonoTime, rule};
use foxy_http1::{RequestParts, write};

use super::Conn;
use super::context::Admission;
use crate::access::gatekeeper::Gatekeeper;
use crate::access::logins::challenge;
use crate::access::refusal::Refusal;
use crate::http::net::Transport;
use crate::http::reply::Extra;
use crate::state::finish::Finish;
use crate::{Outcome, Role};

impl<T: Transport> Conn<T> {
    /// Answers a request that the gatekeeper does not admit. Returns true if the connection can carry another
    /// request.
    pub(super) async fn turn_away(
        &mut self,
        admission: &Admission,
        parts: &RequestParts,
        started: MonoTime,
        keep: bool,
    ) -> bool {
        let local = Rc::clone(&self.local);
        let gate = local.proxy.config.gatekeeper.as_deref();
        let rule = match admission {
            Admission::Refused(rule) => gate.and_then(|gate| gate.rules().all().get(*rule)),
            _ => None,
        };
        let site = matches!(&**self.context.role(), Role::Site(_));
        let (status, reason, outcome) = said(admission, rule, site);
        let refusal = Refusal { status, reason };
        let fields = fields(admission, gate, site);
        // If the request has a body, the connection ends. Otherwise the unread body would be parsed as the
        // next request.
        let keep = rule!(
            "smuggling: a connection ends with a body that is turned away",
            keep && parts.framing().is_empty(),
            keep
        );
        let name = rule.map(|rule| &rule.name[..]);
        let extra = Extra {
            fields: &fields,
            text: rule.map_or("", |rule| &rule.text),
            rule: name.or_else(|| limit(gate?, admission)),
        };
        let sent = self.page(refusal, &extra, parts, keep).await;
        let finish = Finish::refused(refusal, outcome, keep, sent);
        self.done(parts, started, &finish)
    }
}

/// Returns the status of the answer, the reason word and the outcome.
fn said(admission: &Admission, rule: Option<&Rule>, site: bool) -> (u16, &'static str, Outcome) {
    let tunnel = rule.is_some_and(|rule| rule.action == Action::Tunnel);
    let (status, reason) = match admission {
        Admission::LogIn(wrong) => (
            if site { 401 } else { 407 },
            if *wrong {
                "login-wrong"
            } else {
                "login-needed"
            },
        ),
        Admission::Busy => (503, "login-busy"),
        Admission::Limited(_) => (429, "rate-exceeded"),
        Admission::NoAddress(error) => return (error.status(), error.reason(), error.outcome()),
        _ if tunnel => (403, "tunnel-only"),
        _ => (403, "rule-denies"),
    };
    (status, reason, Outcome::Denied)
}

/// Additional field lines of the answer.
fn fields(admission: &Admission, gate: Option<&Gatekeeper>, site: bool) -> Vec<u8> {
    let mut fields = Vec::new();
    if let (Admission::LogIn(_), Some(logins)) = (admission, gate.and_then(Gatekeeper::logins)) {
        fields = challenge(logins, site);
    }
    let wait = match admission {
        Admission::Busy => Some(1),
        Admission::Limited(exceeded) => Some(exceeded.wait.as_secs() + 1),
        _ => None,
    };
    if let Some(wait) = wait {
        write::number_field(&mut fields, b"Retry-After", wait);
    }
    fields
}

/// The name of the limit that is exceeded.
fn limit<'g>(gate: &'g Gatekeeper, admission: &Admission) -> Option<&'g str> {
    let Admission::Limited(exceeded) = admission else {
        return None;
    };
    let limit = gate.limits()?.all().get(exceeded.limit)?;
    Some(&limit.name)
}
