//! The decision of the gatekeeper about a request. This module finds out which user sends the request, and
//! whether access rules and limits admit the request. Without a gatekeeper in the settings, this code does
//! not run.

use std::rc::Rc;
use std::sync::Arc;

use foxy_access::{Judgement, Principal, Request, Requester};
use foxy_base::{first, rule};
use foxy_http1::RequestHead;

use super::ConnectionContext;
use super::requester_rules::{RequestUser, RequesterRules};
use super::wanted::Wanted;
use crate::Role;
use crate::access::gatekeeper::{Counted, Exceeded, Gatekeeper, Pass, Reach, Subject};
use crate::access::logins::{Checked, Login};
use crate::origin::UpstreamError;
use crate::state::local::Local;

/// The decision about a request.
pub(in crate::client::conn) enum Admission {
    /// The request is admitted.
    Open,
    /// The access rule with this number refuses the request.
    Refused(usize),
    /// The user has to log in. The value is true if the login that was sent is wrong.
    LogIn(bool),
    /// Too many logins are being checked.
    Busy,
    /// A limit is exceeded.
    Limited(Exceeded),
    /// The name of the destination has no address.
    NoAddress(UpstreamError),
    /// A login has to be checked.
    Check(Box<Login>),
    /// The decision depends on the address of the destination. So the destination must be resolved first.
    Resolve(Box<Reach>),
}

impl ConnectionContext {
    /// Decides about a request, and counts it if it is admitted. Does not wait. If a login must be checked or
    /// a name must be resolved first, the result states this.
    pub(in crate::client::conn) fn judged(
        &mut self,
        local: &Local,
        head: &RequestHead<'_>,
        secure: bool,
    ) -> Admission {
        self.client.pass = None;
        // A client that is not allowed is refused later, and is not asked for a login.
        if !self.client.allowed {
            return Admission::Open;
        }
        let admission = self.admission(local, head, secure, None);
        self.within_limits(local, admission)
    }

    /// Counts the request under its limits, if `admission` admits it. Returns `Limited` if a limit is
    /// exceeded. Otherwise returns `admission`.
    pub(in crate::client::conn) fn within_limits(
        &mut self,
        local: &Local,
        admission: Admission,
    ) -> Admission {
        let gate = local.proxy.config.gatekeeper.as_ref();
        let Some(gate) =
            gate.filter(|gate| gate.limits().is_some() && matches!(admission, Admission::Open))
        else {
            return admission;
        };
        let pass = self.client.pass.as_deref();
        let subject = Subject {
            client: self.client.ip(),
            user: pass.map_or("", |pass| pass.user_name()),
            token: pass.map_or(0, |pass| pass.token()),
            site: self.role.name(),
        };
        match Counted::new(gate, &subject, &local.proxy.clock) {
            Ok(counted) => {
                self.counted_by = counted.map(Rc::new);
                Admission::Open
            }
            Err(exceeded) => rule!(
                "access: a request beyond a limit is refused",
                Admission::Limited(exceeded),
                Admission::Open
            ),
        }
    }

    /// Decides about a request by the access rules. Does not wait. `found` is the user, if a login was
    /// checked for this request.
    fn admission(
        &mut self,
        local: &Local,
        head: &RequestHead<'_>,
        secure: bool,
        found: Option<Arc<Principal>>,
    ) -> Admission {
        let Some(gate) = &local.proxy.config.gatekeeper else {
            return Admission::Open;
        };
        let Some(wanted) = Wanted::of(gate, head, &self.role, secure) else {
            return Admission::Open;
        };
        let (who, sent) = match found {
            Some(user) => (RequestUser::Known(user), true),
            None => match self.who(local, gate, head) {
                Ok(who) => who,
                Err(admission) => return admission,
            },
        };
        let needed = gate.logins().is_some_and(|logins| logins.are_required());
        if rule!(
            "access: where logins are required nobody goes on without",
            needed && matches!(who, RequestUser::Unknown),
            false
        ) {
            return Admission::LogIn(false);
        }
        let spent = sent && matches!(&*self.role, Role::Site(_));
        let (minute, client) = (gate.minute(local.wall()), self.client.client);
        let slot = &mut self.applicable;
        let requester_rules = RequesterRules::of(slot, gate, (client, &who), &self.role, minute);
        let request = Request {
            who: Requester {
                client,
                user: who.user(),
                site: self.role.name(),
                minute,
            },
            host: &wanted.host,
            address: wanted.address,
            port: wanted.port,
            scheme: wanted.scheme,
            method: head.method_text(),
            path: wanted.path.as_deref(),
        };
        let judgement = gate
            .rules()
            .judge(&mut requester_rules.applicable, &request);
        let reach = || Reach {
            gate: Arc::clone(gate),
            applicable: requester_rules.applicable.clone(),
            user: who.known(),
            host: wanted.host.clone(),
            port: wanted.port,
            scheme: wanted.scheme,
            method: head.method_text().to_vec(),
            path: wanted.path.clone(),
        };
        let rule = match judgement {
            Judgement::NeedsUser(_) => return for_login(),
            Judgement::NeedsAddress(_) => return for_address(reach()),
            Judgement::None => None,
            Judgement::Rule(rule) => Some(rule),
        };
        // Rules about addresses may precede the rule that decides, and the address is not known yet. So Foxy
        // applies the rules again to each address of the destination before it connects to that address.
        let depends = gate.names_addresses() && wanted.address.is_none();
        let reach = depends.then(reach);
        let asked = (&wanted, rule, spent);
        let admission = enter(gate, requester_rules, &who, asked, reach, &self.role);
        self.client.pass.clone_from(&requester_rules.last);
        admission
    }

    /// Returns the user of the request. The flag is true if the request contains a login for Foxy.
    fn who(
        &self,
        local: &Local,
        gate: &Gatekeeper,
        head: &RequestHead<'_>,
    ) -> Result<(RequestUser, bool), Admission> {
        let Some(logins) = gate.logins() else {
            return Ok((RequestUser::Nobody, false));
        };
        let certificate = self.client.arrival.certificate.as_deref();
        if let Some(certificate) = certificate {
            let name = certificate.names.first().unwrap_or(&certificate.subject);
            let user = logins.principal(gate.rules(), name);
            return Ok((RequestUser::Known(user), false));
        }
        if !logins.are_at(self.role.name(), self.role.mirrored().is_some()) {
            return Ok((RequestUser::Nobody, false));
        }
        let name = match &*self.role {
            Role::Site(_) => "Authorization",
            _ => "Proxy-Authorization",
        };
        let Some(value) = first(head, name) else {
            return Ok((RequestUser::Unknown, false));
        };
        let now = (local.mono(), local.wall());
        match logins.check(gate.rules(), value, now) {
            Checked::Known(user) => Ok((RequestUser::Known(user), true)),
            Checked::Wrong => rule!(
                "access: a wrong login is refused",
                Err(Admission::LogIn(true)),
                Ok((RequestUser::Nobody, true))
            ),
            Checked::Unchecked(login) => Err(Admission::Check(login)),
        }
    }

    pub(in crate::client::conn) async fn checked(
        &mut self,
        local: &Local,
        head: &RequestHead<'_>,
        secure: bool,
        login: Login,
    ) -> Admission {
        let gate = local.proxy.config.gatekeeper.as_ref();
        let Some((gate, logins)) = gate.and_then(|gate| Some((gate, gate.logins()?))) else {
            return Admission::LogIn(true);
        };
        let clock = &*local.proxy.clock;
        let client = Some(self.client.ip());
        let verified = logins.verify(gate.rules(), login, client, clock).await;
        match verified {
            Ok(Some(user)) => self.admission(local, head, secure, Some(user)),
            Ok(None) => rule!(
                "access: a login that was checked and is wrong is refused",
                Admission::LogIn(true),
                Admission::Open
            ),
            Err(_) => Admission::Busy,
        }
    }
}

/// Returns the decision for a request whose user has to log in, because a rule about users must be applied.
fn for_login() -> Admission {
    rule!(
        "access: a rule about users waits for the login",
        Admission::LogIn(false),
        Admission::Open
    )
}

/// Returns the decision for a request whose destination's address must be known, because a rule about
/// addresses must be applied.
fn for_address(reach: Reach) -> Admission {
    rule!(
        "access: a rule about addresses waits for the address",
        Admission::Resolve(Box::new(reach)),
        Admission::Open
    )
}

/// Admits or refuses the request by the rule that decides. Keeps the pass (the decision) in
/// `requester_rules`, so that the next request can use it too.
fn enter(
    gate: &Arc<Gatekeeper>,
    requester_rules: &mut RequesterRules,
    who: &RequestUser,
    (wanted, rule, spent): (&Wanted, Option<usize>, bool),
    reach: Option<Reach>,
    role: &Role,
) -> Admission {
    let action = rule.and_then(|rule| gate.rules().all().get(rule));
    let refused = rule.filter(|_| {
        rule!(
            "access: a rule that denies refuses the request",
            action.is_some_and(|r| r.action.refuses(wanted.scheme)),
            false
        )
    });
    let parents = match role {
        Role::Forward if refused.is_none() => gate.parents(rule, &wanted.host, wanted.scheme),
        _ => None,
    };
    let again = requester_rules.again(rule, spent, parents.as_ref());
    if reach.is_some() || again.is_none() {
        let pass = Pass {
            rule,
            user: who.known(),
            spent,
            parents,
            ..Pass::new(gate)
        };
        requester_rules.last = Some(Arc::new(match reach {
            Some(reach) => pass.reaching(reach),
            None => pass,
        }));
    }
    refused.map_or(Admission::Open, Admission::Refused)
}
