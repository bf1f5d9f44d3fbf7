//! The mirror of a request, on the listeners of the forward proxy.

use std::rc::Rc;

use foxy_base::first;
use foxy_http1::{RequestParts, Scheme, TargetForm};

use super::Conn;
use crate::Role;
use crate::mirrors::{NoMirror, Wants, own_name};
use crate::net::Transport;
use crate::route::Refusal;

impl<T: Transport> Conn<T> {
    /// Sets the role to that of the mirror for this request, if it is for one. Returns why it is
    /// refused.
    #[inline]
    pub(super) fn mirrored(&mut self, parts: &RequestParts) -> Option<Refusal> {
        self.local.proxy.config.mirrors.as_ref()?;
        let role = match self.mirror(parts) {
            Ok(role) => role,
            Err(NoMirror::Path) => Rc::clone(&self.door_role),
            Err(NoMirror::Refused(refusal)) => return Some(refusal),
        };
        if !Rc::ptr_eq(&role, &self.role) {
            let access = &self.local.proxy.config.access;
            self.client = self.client.clone().at(access, &role);
            self.role = role;
        }
        None
    }

    fn mirror(&self, parts: &RequestParts) -> Result<Rc<Role>, NoMirror> {
        let config = &self.local.proxy.config;
        let mirrors = config.mirrors.as_ref().ok_or(NoMirror::Path)?;
        if !matches!(&*self.door_role, Role::Forward) {
            return Err(NoMirror::Path);
        }
        let head = parts.head(self.buf.filled(), &self.slots);
        let target = head.target();
        let spoken = match T::SECURE {
            true => Scheme::Https,
            false => Scheme::Http,
        };
        let base = || {
            let url = head.url(spoken)?;
            let here = self.io.transport().local_addr();
            own_name(&mirrors.public, &url, spoken, here)
        };
        match target.form {
            TargetForm::Origin => {}
            // A client that sends everything through Foxy, what is for Foxy itself included.
            TargetForm::Absolute if mirrors.sites.iter().any(|s| s.mirror.has(target.path)) => {
                base().ok_or(NoMirror::Path)?;
            }
            _ => return Err(NoMirror::Path),
        }
        // Where Foxy itself wants logins, `Authorization` may be for Foxy.
        let login = first(&head, "Authorization").filter(|_| config.gatekeeper.is_none());
        let wants = Wants {
            method: head.method(),
            method_text: head.method_text(),
            path: target.path,
            accept: first(&head, "Accept").unwrap_or_default(),
            login: login.map(|login| (login, config.seed)),
        };
        let clients = &config.access.allow_clients;
        self.local.roles.find(mirrors, &wants, base, clients)
    }
}
