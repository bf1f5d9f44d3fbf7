//! Finds the mirror that a request on a listener of the forward proxy is for.

use std::borrow::Cow;
use std::rc::Rc;

use foxy_base::{first, values};
use foxy_http1::{RequestHead, RequestParts, Scheme, TargetForm};

use super::ConnectionContext;
use crate::Role;
use crate::access::refusal::Refusal;
use crate::http::connection::Link;
use crate::http::net::Transport;
use crate::mirrors::{NoMirror, Wants, own_name};
use crate::state::local::Local;

impl ConnectionContext {
    /// If the request is for a mirror, sets the role of the mirror for this request. Otherwise sets the role
    /// of the listener. Returns a refusal if the mirror refuses the request.
    #[inline]
    pub(super) fn mirrored<T: Transport>(
        &mut self,
        local: &Local,
        link: &Link<T>,
        parts: &RequestParts,
    ) -> Option<Refusal> {
        local.proxy.config.mirrors.as_ref()?;
        let role = match self.mirror(local, link, parts) {
            Ok(role) => role,
            Err(NoMirror::Path) => Rc::clone(&self.door_role),
            Err(NoMirror::Refused(refusal)) => return Some(refusal),
        };
        if !Rc::ptr_eq(&role, &self.role) {
            self.set_role(local, &role);
        }
        None
    }

    fn mirror<T: Transport>(
        &self,
        local: &Local,
        link: &Link<T>,
        parts: &RequestParts,
    ) -> Result<Rc<Role>, NoMirror> {
        let config = &local.proxy.config;
        let mirrors = config.mirrors.as_ref().ok_or(NoMirror::Path)?;
        if !matches!(&*self.door_role, Role::Forward) {
            return Err(NoMirror::Path);
        }
        let head = link.head(parts);
        let target = head.target();
        let spoken = match T::SECURE {
            true => Scheme::Https,
            false => Scheme::Http,
        };
        let base = || {
            let url = head.url(spoken)?;
            let here = link.io().transport().local_addr();
            own_name(&mirrors.public, &url, spoken, here)
        };
        match target.form {
            TargetForm::Origin => {}
            // A client that uses Foxy as its proxy sends the absolute form, even in requests to Foxy itself.
            TargetForm::Absolute if mirrors.sites.iter().any(|s| s.mirror.has(target.path)) => {
                base().ok_or(NoMirror::Path)?;
            }
            _ => return Err(NoMirror::Path),
        }
        // If users log in to Foxy for mirrors, the field `Authorization` may contain a login for Foxy. So it
        // is not used as a credential for the registry.
        let gate = config.gatekeeper.as_ref();
        let is_for_registry = gate.is_none_or(|gate| !gate.has_logins_at(mirrors));
        let login = is_for_registry.then(|| all_of(&head)).flatten();
        let wants = Wants {
            method: head.method(),
            method_text: head.method_text(),
            path: target.path,
            accept: first(&head, "Accept").unwrap_or_default(),
            login: login.as_deref().map(|login| (login, config.seed)),
        };
        let clients = &config.access.allow_clients;
        local.roles.find(mirrors, &wants, base, clients)
    }
}

/// Returns the credential of a request. Several `Authorization` fields are joined into one credential,
/// because Foxy does not know which of these fields a registry uses.
fn all_of<'a>(head: &'a RequestHead<'_>) -> Option<Cow<'a, [u8]>> {
    let mut all = values(head, "Authorization");
    let one = all.next()?;
    Some(all.fold(one.into(), |all, next| [&*all, next].join(&b'\n').into()))
}
