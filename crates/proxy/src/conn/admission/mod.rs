//! The gatekeeper at the door of a request: who asks, whether rules let it go on, and what is said if
//! not. Without a gatekeeper none of this runs.

mod resolved;
mod turn_away;
mod visiting;
mod wanted;

use std::rc::Rc;
use std::sync::Arc;

use foxy_access::{Judgement, Request, Standing, Visitor};
use foxy_base::{MonoTime, first, rule};
use foxy_http1::{RequestHead, RequestParts};

use super::Conn;
use super::caller::Caller;
use crate::Role;
use crate::gatekeeper::{Counted, Exceeded, Gatekeeper, Pass, Reach, Subject};
use crate::local::Local;
use crate::logins::{Checked, Login};
use crate::net::Transport;
use crate::upstream::UpstreamError;
pub(super) use visiting::Visiting;
use visiting::Who;
use wanted::Wanted;

/// The fate of a request at the door.
enum Door {
    /// It goes on.
    Open,
    /// A rule refuses it.
    Refused(usize),
    /// The user has to log in; true: what was sent is wrong.
    LogIn(bool),
    /// Too many logins are being checked.
    Busy,
    /// A limit is exceeded.
    Limited(Exceeded),
    /// The name of the destination has no address.
    NoAddress(UpstreamError),
    /// A login is to be checked.
    Check(Box<Login>),
    /// The judgement depends on the address of this host.
    Resolve(Box<Reach>),
}

impl<T: Transport> Conn<T> {
    /// Lets the gatekeeper judge a request. If it does not go on, it is answered; returns whether the
    /// connection can carry another then.
    pub(super) async fn turned_away(
        &mut self,
        parts: &RequestParts,
        started: MonoTime,
        keep: bool,
    ) -> Option<bool> {
        let head = self.link.head(parts);
        match self.caller.judged(&self.local, &head, T::SECURE) {
            Door::Open => {
                self.slow();
                None
            }
            // Boxed: it would enlarge every request.
            door => Box::pin(self.slowly(door, parts, started, keep)).await,
        }
    }

    async fn slowly(
        &mut self,
        mut door: Door,
        parts: &RequestParts,
        started: MonoTime,
        keep: bool,
    ) -> Option<bool> {
        loop {
            let (local, caller, head) = (&self.local, &mut self.caller, self.link.head(parts));
            door = match door {
                Door::Open => {
                    self.slow();
                    return None;
                }
                Door::Check(login) => caller.checked(local, &head, T::SECURE, *login).await,
                Door::Resolve(reach) => caller.resolved(local, *reach).await,
                _ => break,
            };
            door = self.caller.within_limits(&self.local, door);
        }
        Some(self.turn_away(&door, parts, started, keep).await)
    }

    /// Slows the answer, if a limit says so.
    fn slow(&self) {
        if let Some(counted) = self.caller.slowed_by() {
            self.link.slow(Some(counted));
        }
    }
}

impl Caller {
    /// The fate of a request, as far as nobody has to be waited for.
    fn judged(&mut self, local: &Local, head: &RequestHead<'_>, secure: bool) -> Door {
        self.client.pass = None;
        // Others are refused without a question.
        if !self.client.allowed {
            return Door::Open;
        }
        let door = self.door(local, head, secure, None);
        self.within_limits(local, door)
    }

    /// Counts a request that the rules let go on.
    fn within_limits(&mut self, local: &Local, door: Door) -> Door {
        let gate = local.proxy.config.gatekeeper.as_ref();
        let Some(gate) = gate.filter(|gate| gate.limits().is_some() && matches!(door, Door::Open))
        else {
            return door;
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
                Door::Open
            }
            Err(exceeded) => rule!(
                "access: a request beyond a limit is refused",
                Door::Limited(exceeded),
                Door::Open
            ),
        }
    }

    /// Judges a request, as far as nobody has to be waited for. `found`: the user, if a login was
    /// checked for this request.
    fn door(
        &mut self,
        local: &Local,
        head: &RequestHead<'_>,
        secure: bool,
        found: Option<Arc<Standing>>,
    ) -> Door {
        let Some(gate) = &local.proxy.config.gatekeeper else {
            return Door::Open;
        };
        let Some(wanted) = Wanted::of(gate, head, &self.role, secure) else {
            return Door::Open;
        };
        let (who, sent) = match found {
            Some(user) => (Who::Known(user), true),
            None => match self.who(local, gate, head) {
                Ok(who) => who,
                Err(door) => return door,
            },
        };
        let needed = gate.logins().is_some_and(|logins| logins.are_required());
        if rule!(
            "access: where logins are required nobody goes on without",
            needed && matches!(who, Who::Unknown),
            false
        ) {
            return Door::LogIn(false);
        }
        let spent = sent && matches!(&*self.role, Role::Site(_));
        let (minute, client) = (gate.minute(local.wall()), self.client.client);
        let slot = &mut self.visit;
        let visiting = Visiting::of(slot, gate, (client, &who), &self.role, minute);
        let request = Request {
            who: Visitor {
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
        let judgement = gate.rules().judge(&mut visiting.visit, &request);
        let reach = || Reach {
            gate: Arc::clone(gate),
            visit: visiting.visit.clone(),
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
        // Rules about addresses that come before the one that decides concern what is connected to.
        let depends = gate.names_addresses() && wanted.address.is_none();
        let reach = depends.then(reach);
        let asked = (&wanted, rule, spent);
        let door = enter(gate, visiting, &who, asked, reach, &self.role);
        self.client.pass.clone_from(&visiting.last);
        door
    }

    /// The user, and true if the request has sent a login for Foxy.
    fn who(
        &self,
        local: &Local,
        gate: &Gatekeeper,
        head: &RequestHead<'_>,
    ) -> Result<(Who, bool), Door> {
        let Some(logins) = gate.logins() else {
            return Ok((Who::Nobody, false));
        };
        let certificate = self.client.arrival.certificate.as_deref();
        if let Some(certificate) = certificate {
            let name = certificate.names.first().unwrap_or(&certificate.subject);
            let user = logins.standing(gate.rules(), name);
            return Ok((Who::Known(user), false));
        }
        if !logins.are_at(&self.role) {
            return Ok((Who::Nobody, false));
        }
        let name = match &*self.role {
            Role::Site(_) => "Authorization",
            _ => "Proxy-Authorization",
        };
        let Some(value) = first(head, name) else {
            return Ok((Who::Unknown, false));
        };
        let now = (local.mono(), local.wall());
        match logins.check(gate.rules(), value, now) {
            Checked::Known(user) => Ok((Who::Known(user), true)),
            Checked::Wrong => rule!(
                "access: a wrong login is refused",
                Err(Door::LogIn(true)),
                Ok((Who::Nobody, true))
            ),
            Checked::Unchecked(login) => Err(Door::Check(login)),
        }
    }

    async fn checked(
        &mut self,
        local: &Local,
        head: &RequestHead<'_>,
        secure: bool,
        login: Login,
    ) -> Door {
        let gate = local.proxy.config.gatekeeper.as_ref();
        let Some((gate, logins)) = gate.and_then(|gate| Some((gate, gate.logins()?))) else {
            return Door::LogIn(true);
        };
        let clock = &*local.proxy.clock;
        let client = Some(self.client.ip());
        let verified = logins.verify(gate.rules(), login, client, clock).await;
        match verified {
            Ok(Some(user)) => self.door(local, head, secure, Some(user)),
            Ok(None) => rule!(
                "access: a login that was checked and is wrong is refused",
                Door::LogIn(true),
                Door::Open
            ),
            Err(_) => Door::Busy,
        }
    }
}

/// The user has to log in before a rule can be judged.
fn for_login() -> Door {
    rule!(
        "access: a rule about users waits for the login",
        Door::LogIn(false),
        Door::Open
    )
}

/// The address has to be known before a rule can be judged.
fn for_address(reach: Reach) -> Door {
    rule!(
        "access: a rule about addresses waits for the address",
        Door::Resolve(Box::new(reach)),
        Door::Open
    )
}

/// Opens or shuts the door by the rule that decides, and notes the judgement in the visit.
fn enter(
    gate: &Arc<Gatekeeper>,
    visiting: &mut Visiting,
    who: &Who,
    (wanted, rule, spent): (&Wanted, Option<usize>, bool),
    reach: Option<Reach>,
    role: &Role,
) -> Door {
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
    let again = visiting.again(rule, spent, parents.as_ref());
    if reach.is_some() || again.is_none() {
        let pass = Pass {
            rule,
            user: who.known(),
            spent,
            parents,
            ..Pass::new(gate)
        };
        visiting.last = Some(Arc::new(match reach {
            Some(reach) => pass.reaching(reach),
            None => pass,
        }));
    }
    refused.map_or(Door::Open, Door::Refused)
}
