//! The answer to a request that does not go on.

use std::rc::Rc;

use foxy_access::{Action, Rule};
use foxy_base::{MonoTime, rule};
use foxy_http1::{RequestParts, write};

use super::{Conn, Door};
use crate::conn::Finish;
use crate::gatekeeper::Gatekeeper;
use crate::net::Transport;
use crate::reply::{Extra, send_page_with};
use crate::rewriting::Recipient;
use crate::route::Refusal;
use crate::{Logins, Outcome, Role};

impl<T: Transport> Conn<T> {
    /// Answers a request that does not go on; returns whether the connection can carry another.
    pub(super) async fn turn_away(
        &mut self,
        door: &Door,
        parts: &RequestParts,
        started: MonoTime,
        keep: bool,
    ) -> bool {
        let local = Rc::clone(&self.local);
        let gate = local.proxy.config.gatekeeper.as_deref();
        let rule = match door {
            Door::Refused(rule) => gate.and_then(|gate| gate.rules().all().get(*rule)),
            _ => None,
        };
        let site = matches!(&*self.role, Role::Site(_));
        let (status, reason, outcome) = said(door, rule, site);
        let refusal = Refusal { status, reason };
        let fields = fields(door, gate, site);
        // A body that nobody reads would be taken for the next request.
        let keep = rule!(
            "smuggling: a connection ends with a body that is turned away",
            keep && parts.framing().is_empty(),
            keep
        );
        let head = parts.head(self.buf.filled(), &self.slots);
        let name = rule.map(|rule| &rule.name[..]);
        let extra = Extra {
            fields: &fields,
            text: rule.map_or("", |rule| &rule.text),
            rule: name.or_else(|| limit(gate?, door)),
        };
        let page = (refusal, Recipient::new(&self.role, &self.client));
        let scratch = &mut self.scratch;
        let sent = send_page_with(&local, &self.io, scratch, page, &extra, Some(&head), keep);
        let finish = Finish::refused(refusal, outcome, keep, sent.await);
        self.finished(Some(&head), started, &finish);
        self.buf.consume(parts.len());
        finish.keep
    }
}

/// Status, reason and outcome.
fn said(door: &Door, rule: Option<&Rule>, site: bool) -> (u16, &'static str, Outcome) {
    let tunnel = rule.is_some_and(|rule| rule.action == Action::Tunnel);
    let (status, reason) = match door {
        Door::LogIn(wrong) => (
            if site { 401 } else { 407 },
            if *wrong {
                "login-wrong"
            } else {
                "login-needed"
            },
        ),
        Door::Busy => (503, "login-busy"),
        Door::Limited(_) => (429, "rate-exceeded"),
        Door::NoAddress(error) => return (error.status(), error.reason(), error.outcome()),
        _ if tunnel => (403, "tunnel-only"),
        _ => (403, "rule-denies"),
    };
    (status, reason, Outcome::Denied)
}

/// Further field lines of the answer.
fn fields(door: &Door, gate: Option<&Gatekeeper>, site: bool) -> Vec<u8> {
    let mut fields = Vec::new();
    if let (Door::LogIn(_), Some(logins)) = (door, gate.and_then(Gatekeeper::logins)) {
        fields = challenge(logins, site);
    }
    let wait = match door {
        Door::Busy => Some(1),
        Door::Limited(exceeded) => Some(exceeded.wait.as_secs() + 1),
        _ => None,
    };
    if let Some(wait) = wait {
        write::number_field(&mut fields, b"Retry-After", wait);
    }
    fields
}

/// Field lines that ask a client to log in.
pub(in crate::conn) fn challenge(logins: &Logins, site: bool) -> Vec<u8> {
    let mut fields = Vec::new();
    let name: &[u8] = match site {
        true => b"WWW-Authenticate",
        false => b"Proxy-Authenticate",
    };
    let realm = logins.realm();
    let basic = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
    write::field(&mut fields, name, basic.as_bytes());
    if logins.have_tokens() {
        let bearer = format!("Bearer realm=\"{realm}\"");
        write::field(&mut fields, name, bearer.as_bytes());
    }
    fields
}

/// The name of the limit that is exceeded.
fn limit<'g>(gate: &'g Gatekeeper, door: &Door) -> Option<&'g str> {
    let Door::Limited(exceeded) = door else {
        return None;
    };
    let limit = gate.limits()?.all().get(exceeded.limit)?;
    Some(&limit.name)
}
