//! The site of a request, on a listener of several sites.

use std::rc::Rc;

use foxy_base::rule;
use foxy_http1::{RequestParts, Scheme, TargetForm};

use super::{Conn, Sites};
use crate::net::Transport;
use crate::route::Refusal;
use crate::{NoSite, Role, admit};

/// The certificate of the connection belongs to other sites.
const OTHER_CERTIFICATE: Refusal = Refusal {
    status: 421,
    reason: "site-has-other-certificate",
};

const DOTS: Refusal = Refusal {
    status: 400,
    reason: "dots-in-path",
};

impl<T: Transport> Conn<T> {
    /// Why this request is not answered here. On a listener of several sites, sets the role.
    #[inline]
    pub(super) fn misplaced(&mut self, parts: &RequestParts) -> Option<Refusal> {
        let misplaced = match self.sites.clone() {
            None => self.misdirected(parts).or_else(|| self.mirrored(parts)),
            Some(sites) => self.site(&sites, parts).err(),
        };
        misplaced.or_else(|| self.unverified())
    }

    /// Clients of some sites show a certificate, and this connection was not made for such a site.
    #[inline]
    fn unverified(&self) -> Option<Refusal> {
        let Role::Site(site) = &*self.role else {
            return None;
        };
        let set = site.verified_by.as_ref()?;
        match &self.given {
            Some(given) if set.has(given) => None,
            Some(_) => rule!(
                "site: one with client certificates is not reached over a connection of another",
                Some(OTHER_CERTIFICATE),
                None
            ),
            None => rule!(
                "site: one with client certificates is not reached without TLS",
                Some(admit::CLIENT),
                None
            ),
        }
    }

    /// Sets the role to that of the site for this request.
    fn site(&mut self, sites: &Sites, parts: &RequestParts) -> Result<(), Refusal> {
        self.role = Rc::clone(&sites.none);
        let access = &self.local.proxy.config.access;
        self.client = self.client.clone().at(access, &self.role);
        let head = parts.head(self.buf.filled(), &self.slots);
        let target = head.target();
        if target.form == TargetForm::Authority {
            return Ok(());
        }
        let path = match target.form {
            TargetForm::Asterisk => b"/",
            _ => target.path,
        };
        let url = head.url(Scheme::Http);
        let host = url.as_ref().map(|url| url.authority.host);
        let found = sites.table.find(host, path);
        let found = found.map_err(|no| self.no_site(no))?;
        let Some((role, certificates)) = sites.roles.get(found) else {
            return Err(self.no_site(NoSite::Host));
        };
        if let Some(refusal) = self.misdirected(parts) {
            return Err(refusal);
        }
        // The certificate has the host, and belongs to a site with certificates of its own.
        if let (Some(own), Some(served)) = (certificates, &self.served)
            && rule!(
                "site: a connection is for the sites of its certificate",
                !own.has(served),
                false
            )
        {
            return Err(OTHER_CERTIFICATE);
        }
        self.role = Rc::clone(role);
        self.client = self.client.clone().at(access, &self.role);
        Ok(())
    }

    fn no_site(&self, no: NoSite) -> Refusal {
        let (status, reason) = match no {
            // A host of another server, for a client that reuses a TLS connection (RFC 9110
            // section 15.5.20).
            NoSite::Host if T::SECURE => (421, "no-site-for-host"),
            NoSite::Host => (404, "no-site-for-host"),
            NoSite::Path => (404, "no-site-for-path"),
            NoSite::Dots => return DOTS,
        };
        Refusal { status, reason }
    }
}
