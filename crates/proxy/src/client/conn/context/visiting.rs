//! The visitor of a connection, and the rules that apply while the visitor stays the same.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use foxy_access::{Principal, User, Visit, Visitor};
use foxy_base::rule;

use crate::Role;
use crate::access::gatekeeper::{Gatekeeper, Pass};
use crate::access::parents::Parents;

/// The rules that apply to the visitor of a connection while the visitor stays the same.
#[derive(Debug)]
pub(in crate::client::conn) struct Visiting {
    client: Option<IpAddr>,
    user: Who,
    role: Rc<Role>,
    minute: u16,
    pub(super) visit: Visit,
    /// The judgement about the last request. The next request uses it too if the rules decide in the same
    /// way.
    pub(super) last: Option<Arc<Pass>>,
}

/// The user of a request.
#[derive(Clone, Debug)]
pub(super) enum Who {
    Nobody,
    Unknown,
    Known(Arc<Principal>),
}

impl Who {
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

impl Visiting {
    /// Returns the visit in `slot`. If client, user, role or minute differ from those of the visit, a new
    /// visit replaces it.
    pub(super) fn of<'s>(
        slot: &'s mut Option<Box<Self>>,
        gate: &Gatekeeper,
        (client, user): (Option<IpAddr>, &Who),
        role: &Rc<Role>,
        minute: u16,
    ) -> &'s mut Self {
        let same = slot.as_ref().is_some_and(|seen| {
            (seen.client, seen.minute) == (client, minute)
                && Rc::ptr_eq(&seen.role, role)
                && seen.user.is(user)
        });
        if rule!(
            "access: rules for one visitor are not used for the next",
            !same,
            false
        ) {
            *slot = None;
        }
        slot.get_or_insert_with(|| {
            let visitor = Visitor {
                client,
                user: user.user(),
                site: role.name(),
                minute,
            };
            Box::new(Self {
                visit: gate.rules().visit(&visitor),
                user: user.clone(),
                role: Rc::clone(role),
                client,
                minute,
                last: None,
            })
        })
    }

    /// Returns the judgement about the last request, if this judgement is also right for the present request.
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
