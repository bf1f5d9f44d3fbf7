//! The client of a connection, and the role of its present request.

mod admission;
mod mirror;
mod misdirected;
mod requester_rules;
mod resolved;
mod site;
mod wanted;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use foxy_http1::RequestHead;
use foxy_tls::Served;

use super::{Door, Sites};
use crate::Role;
use crate::access::gatekeeper::Counted;
use crate::http::client_identity::{Arrival, ClientIdentity};
use crate::http::net::TlsStream;
use crate::http::rewriting::ResponseContext;
use crate::state::local::Local;

pub(super) use admission::Admission;
use requester_rules::RequesterRules;

/// The context of a connection: its client, and the roles that its requests may have. A role determines how
/// Foxy handles a request, for example as a forward proxy or for a site.
#[derive(Debug)]
pub(super) struct ConnectionContext {
    client: ClientIdentity,
    /// The role of the present request.
    role: Rc<Role>,
    /// The role of the listener: the role of all requests that are not for a mirror. On a listener of several
    /// sites, it is the role of requests for none of these sites.
    door_role: Rc<Role>,
    /// The sites of the listener, if there are several.
    sites: Option<Rc<Sites>>,
    /// The certificate that Foxy has sent to the client.
    given: Option<Arc<Served>>,
    /// The certificate that restricts the client. If it is set, requests may be only for the hosts on this
    /// certificate.
    served: Option<Arc<Served>>,
    /// The rules for the requester of the present request.
    applicable: Option<Box<RequesterRules>>,
    /// Entry of the present request in the counts of the limits that apply to it (such as requests per
    /// second).
    counted_by: Option<Rc<Counted>>,
}

impl ConnectionContext {
    pub(super) fn new(local: &Local, door: Door, peer: SocketAddr, secure: bool) -> Self {
        let Door { role, sites } = door;
        let arrival = Arrival {
            secure,
            connection: local.next_connection(),
            request: 0,
            certificate: None,
        };
        let access = &local.proxy.config.access;
        Self {
            client: ClientIdentity {
                arrival,
                ..ClientIdentity::new(access, &role, peer)
            },
            door_role: Rc::clone(&role),
            role,
            sites,
            given: None,
            served: None,
            applicable: None,
            counted_by: None,
        }
    }

    /// The client.
    pub(super) const fn client(&self) -> &ClientIdentity {
        &self.client
    }

    /// The role of the present request.
    pub(super) const fn role(&self) -> &Rc<Role> {
        &self.role
    }

    /// Sets the role of the present request, after the caller has checked that the client may have this role.
    pub(super) fn prove(&mut self, role: Role) {
        self.role = Rc::new(role);
    }

    /// Applies new settings to the client of this connection.
    pub(super) fn renew(&mut self, local: &Local, door: Door) {
        let access = &local.proxy.config.access;
        let client = ClientIdentity {
            arrival: self.client.arrival.clone(),
            ..ClientIdentity::new(access, &door.role, self.client.peer)
        };
        self.client = client.at(access, &door.role);
        self.applicable = None;
        (self.role, self.sites) = (Rc::clone(&door.role), door.sites);
        self.door_role = door.role;
    }

    /// Notes the certificate that the client has shown in the handshake, and the certificate that Foxy has
    /// sent.
    pub(super) fn shook_hands(&mut self, local: &Local, stream: &TlsStream) {
        if !matches!(*self.role, Role::Forward) {
            self.served = stream.served();
        }
        self.given = stream.given();
        if let Some(certificate) = stream.client() {
            self.client.arrival.certificate = Some(Arc::new(certificate));
        }
        let access = &local.proxy.config.access;
        self.client = self.client.clone().at(access, &self.role);
    }

    /// Sets the client of this request to the client that the peer names, if the peer is a trusted proxy.
    pub(super) fn note_client<'h>(
        &mut self,
        local: &Local,
        head: impl FnOnce() -> RequestHead<'h>,
    ) {
        if self.client.trusted {
            let access = &local.proxy.config.access;
            self.client = self.client.clone().of(access, &self.role, &head());
        }
    }

    /// Sets the role of the present request.
    pub(super) fn set_role(&mut self, local: &Local, role: &Rc<Role>) {
        self.role = Rc::clone(role);
        let access = &local.proxy.config.access;
        self.client = self.client.clone().at(access, &self.role);
    }

    /// Ends the present request. Returns true if limits counted it.
    pub(super) fn end_request(&mut self) -> bool {
        self.client.arrival.request += 1;
        self.counted_by.take().is_some()
    }

    /// The limits of bytes per second for the answer to the present request, if there are any.
    pub(super) fn slowed_by(&self) -> Option<Rc<Counted>> {
        let counted = self.counted_by.as_ref();
        counted.filter(|counted| counted.is_slowed()).cloned()
    }

    /// The client and the role of the request, for answers that Foxy makes itself.
    pub(super) fn response_context(&self) -> ResponseContext<'_> {
        ResponseContext::new(&self.role, &self.client)
    }
}
