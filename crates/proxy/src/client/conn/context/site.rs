//! The site of a request, on a listener of several sites.

use foxy_base::rule;
use foxy_http1::{RequestParts, Scheme, TargetForm};

use super::{ConnectionContext, Sites};
use crate::access::refusal::Refusal;
use crate::client::conn::admit;
use crate::http::connection::Link;
use crate::http::net::Transport;
use crate::state::local::Local;
use crate::{NoSite, Role};

/// Refusal of a request for a site that does not use the certificate of the connection.
const OTHER_CERTIFICATE: Refusal = Refusal {
    status: 421,
    reason: "site-has-other-certificate",
};

const DOTS: Refusal = Refusal {
    status: 400,
    reason: "dots-in-path",
};

impl ConnectionContext {
    /// Returns a refusal if this request may not be answered on this connection. On a listener of several
    /// sites, also sets the role of the request.
    #[inline]
    pub(in crate::client::conn) fn misplaced<T: Transport>(
        &mut self,
        local: &Local,
        link: &Link<T>,
        parts: &RequestParts,
    ) -> Option<Refusal> {
        let misplaced = match self.sites.clone() {
            None => self
                .misdirected(link, parts)
                .or_else(|| self.mirrored(local, link, parts)),
            Some(sites) => self.site(local, &sites, link, parts).err(),
        };
        misplaced.or_else(|| self.unverified())
    }

    /// Returns a refusal if the clients of the request's site must show a certificate, but this connection
    /// does not use TLS or its handshake was for another site.
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

    /// Finds the site that the request is for, and sets its role as the role of the request.
    fn site<T: Transport>(
        &mut self,
        local: &Local,
        sites: &Sites,
        link: &Link<T>,
        parts: &RequestParts,
    ) -> Result<(), Refusal> {
        self.set_role(local, &sites.none);
        let head = link.head(parts);
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
        let found = found.map_err(no_site::<T>)?;
        let Some((role, certificates)) = sites.roles.get(found) else {
            return Err(no_site::<T>(NoSite::Host));
        };
        if let Some(refusal) = self.misdirected(link, parts) {
            return Err(refusal);
        }
        // The connection's certificate is valid for the host. But the site may have its own certificates, and
        // the connection may use a certificate of another site.
        if let (Some(own), Some(served)) = (certificates, &self.served)
            && rule!(
                "site: a connection is for the sites of its certificate",
                !own.has(served),
                false
            )
        {
            return Err(OTHER_CERTIFICATE);
        }
        self.set_role(local, role);
        Ok(())
    }
}

const fn no_site<T: Transport>(no: NoSite) -> Refusal {
    let (status, reason) = match no {
        // The client may have reused a TLS connection for a host of another server (RFC 9110 section
        // 15.5.20).
        NoSite::Host if T::SECURE => (421, "no-site-for-host"),
        NoSite::Host => (404, "no-site-for-host"),
        NoSite::Path => (404, "no-site-for-path"),
        NoSite::Dots => return DOTS,
    };
    Refusal { status, reason }
}
