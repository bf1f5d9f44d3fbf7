//! The pass of a request: the gatekeeper's decision that permits the request. The type `ClientIdentity`
//! contains it.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use foxy_access::{
    Action, ApplicableRules, Judgement, Principal, Request, Requester, Rule, Scheme, User,
};

use super::Gatekeeper;
use crate::access::parents::Parents;

/// The gatekeeper's decision that permits a request.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) gate: Arc<Gatekeeper>,
    pub(crate) user: Option<Arc<Principal>>,
    /// Index of the access rule that decided, in the list of rules.
    pub(crate) rule: Option<usize>,
    pub(crate) reach: Option<Arc<Reach>>,
    /// True if the request's field `Authorization` was a login at Foxy itself. Such a field is not meant for
    /// the origin.
    pub(crate) spent: bool,
    /// The group of parents (other proxies) through which the request is sent.
    pub(crate) parents: Option<Arc<Parents>>,
}

impl PartialEq for Pass {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.gate, &other.gate) && (&self.user, self.rule) == (&other.user, other.rule)
    }
}

impl Eq for Pass {}

impl Pass {
    /// Makes a pass without a user and without a rule.
    pub(crate) fn new(gate: &Arc<Gatekeeper>) -> Self {
        Self {
            gate: Arc::clone(gate),
            user: None,
            rule: None,
            reach: None,
            spent: false,
            parents: None,
        }
    }

    /// Adds the facts by which each address of the destination is judged before Foxy connects to the address.
    pub(crate) fn reaching(self, reach: Reach) -> Self {
        Self {
            reach: Some(Arc::new(reach)),
            ..self
        }
    }

    fn rule(&self) -> Option<&Rule> {
        self.gate.rules().all().get(self.rule?)
    }

    /// Returns the name of the rule that decided.
    pub(crate) fn rule_name(&self) -> &str {
        self.rule().map_or("", |rule| &rule.name)
    }

    /// Returns the name of the user.
    pub(crate) fn user_name(&self) -> &str {
        self.user.as_ref().map_or("", |user| user.name())
    }

    /// Returns the number of the token with which the user logged in. 0 means no token.
    pub(crate) fn token(&self) -> u64 {
        self.user.as_ref().map_or(0, |user| user.token())
    }

    /// Returns true if the request bypasses the cache.
    pub(crate) fn bypasses_cache(&self) -> bool {
        self.rule()
            .is_some_and(|rule| rule.action == Action::Bypass)
    }

    pub(crate) fn reach(&self) -> Reachable {
        Reachable(self.reach.clone())
    }

    pub(crate) fn keeps_apart(&self, address: IpAddr) -> bool {
        self.gate.rules().keeps_apart(address)
    }
}

/// The facts about a request. They are kept if the decision of the access rules depends on the address of the
/// destination.
#[derive(Debug)]
pub(crate) struct Reach {
    pub(crate) gate: Arc<Gatekeeper>,
    pub(crate) applicable: ApplicableRules,
    pub(crate) user: Option<Arc<Principal>>,
    pub(crate) host: Vec<u8>,
    pub(crate) port: u16,
    pub(crate) scheme: Scheme,
    pub(crate) method: Vec<u8>,
    pub(crate) path: Option<Vec<u8>>,
}

impl Reach {
    /// Returns the decision about the request, if its destination has this address.
    pub(crate) fn judge(&self, address: IpAddr) -> Judgement {
        let user = self.user.as_ref();
        let request = Request {
            // `self.applicable` was made for the client, site and time of the request. So the values of
            // `client`, `site` and `minute` have no effect here.
            who: Requester {
                client: None,
                user: user.map_or(User::Unknown, |user| User::Known(user)),
                site: "",
                minute: 0,
            },
            host: &self.host,
            address: Some(address.to_canonical()),
            port: self.port,
            scheme: self.scheme,
            method: &self.method,
            path: self.path.as_deref(),
        };
        self.gate
            .rules()
            .judge(&mut self.applicable.clone(), &request)
    }

    /// Returns true if this rule refuses the request.
    pub(crate) fn refuses(&self, rule: Option<usize>) -> bool {
        let rule = rule.and_then(|rule| self.gate.rules().all().get(rule));
        rule.is_some_and(|rule| rule.action.refuses(self.scheme))
    }

    fn has(&self, address: IpAddr) -> bool {
        match self.judge(address) {
            Judgement::None => true,
            Judgement::Rule(rule) => !self.refuses(Some(rule)),
            Judgement::NeedsUser(_) | Judgement::NeedsAddress(_) => false,
        }
    }
}

/// The addresses that a request may reach. All values of this type compare equal. So requests to the same
/// destination share connections, even if the permitted addresses of these requests differ. Before a request
/// uses a connection that another request opened, [`has`](Self::has) checks the address of the connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reachable(Option<Arc<Reach>>);

impl Reachable {
    /// Returns true if the request may reach this address.
    #[inline]
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.0.as_ref().is_none_or(|reach| reach.has(address))
    }
}

impl PartialEq for Reachable {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Reachable {}

impl Hash for Reachable {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
