//! The access rules that apply to the requester: to the client, user, role and time of a request. They are
//! kept for the next request on the connection, because the requester usually stays the same.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use foxy_access::{ApplicableRules, Principal, Requester, User};
use foxy_base::rule;

use crate::Role;
use crate::access::gatekeeper::{Gatekeeper, Pass};
use crate::access::parents::Parents;

/// The access rules that apply to a requester: to a client, user, role and minute of the week. They are used
/// as long as these values stay the same.
#[derive(Debug)]
pub(in crate::client::conn) struct RequesterRules {
    client: Option<IpAddr>,
    user: RequestUser,
    role: Rc<Role>,
    minute: u16,
    pub(super) applicable: ApplicableRules,
    /// The pass (the decision) of the last request. The next request uses the same pass if the rules decide
    /// in the same way.
    pub(super) last: Option<Arc<Pass>>,
}

/// The user of a request.
#[derive(Clone, Debug)]
pub(super) enum RequestUser {
    Nobody,
    Unknown,
    Known(Arc<Principal>),
}

impl RequestUser {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Known(a), Self::Known(b)) => Arc::ptr_eq(a, b),
            (Self::Nobody, Self::Nobody) | (Self::Unknown, Self::Unknown) => true,
            _ => false,
        }
    }

    pub(super) fn user(&self) -> User<'_> {
        match self {
            Self::Nobody => User::Nobody,
            Self::Unknown => User::Unknown,
            Self::Known(principal) => User::Known(principal),
        }
    }

    pub(super) fn known(&self) -> Option<Arc<Principal>> {
        match self {
            Self::Known(principal) => Some(Arc::clone(principal)),
            _ => None,
        }
    }
}

impl RequesterRules {
    /// Returns the rules in `slot`. If the rules were found for another client, user, role or minute, new
    /// rules replace them.
    pub(super) fn of<'s>(
        slot: &'s mut Option<Box<Self>>,
        gate: &Gatekeeper,
        (client, user): (Option<IpAddr>, &RequestUser),
        role: &Rc<Role>,
        minute: u16,
    ) -> &'s mut Self {
        let same = slot.as_ref().is_some_and(|seen| {
            (seen.client, seen.minute) == (client, minute)
                && Rc::ptr_eq(&seen.role, role)
                && seen.user.is(user)
        });
        if rule!(
            "access: rules for one requester are not used for the next",
            !same,
            false
        ) {
            *slot = None;
        }
        slot.get_or_insert_with(|| {
            let requester = Requester {
                client,
                user: user.user(),
                site: role.name(),
                minute,
            };
            Box::new(Self {
                applicable: gate.rules().applicable(&requester),
                user: user.clone(),
                role: Rc::clone(role),
                client,
                minute,
                last: None,
            })
        })
    }

    /// Returns the pass of the last request, if it is also right for the present request.
    pub(super) fn again(
        &self,
        rule: Option<usize>,
        spent: bool,
        parents: Option<&Arc<Parents>>,
    ) -> Option<&Arc<Pass>> {
        self.last.as_ref().filter(|last| {
            let alike = last.rule == rule && last.spent == spent && last.reach.is_none();
            alike && same(last.parents.as_ref(), parents)
        })
    }
}

fn same(a: Option<&Arc<Parents>>, b: Option<&Arc<Parents>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}
