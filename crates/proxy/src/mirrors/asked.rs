//! Converts the URLs that operators write for objects of mirrors. Operators write the URL that clients use,
//! but the keys of stored objects contain the upstream's name. For this, the module finds the part of the
//! mirror (server and class of URLs) to which the URL belongs.

use std::net::{IpAddr, SocketAddr};

use foxy_base::{Fields, first};
use foxy_http_rules::rewrite::Rewriting;
use foxy_http1::{Host, Method, Url};

use super::{Roles, Wants, own_name};
use crate::http::route::key_url;
use crate::{Proxy, Role, Site};

/// The part of a mirror to which a URL belongs: one server and one class of URLs.
#[derive(Clone, Debug)]
pub struct MirrorPart(Site);

impl MirrorPart {
    /// Returns the name of the mirror.
    #[must_use]
    pub fn mirror(&self) -> &str {
        self.0.mirror.as_ref().map_or("", |part| part.name())
    }

    /// Returns the partition of the stored objects. For documents, it depends on the form of the document and
    /// on the host name in the request.
    #[must_use]
    pub fn partition(&self) -> &str {
        &self.0.name
    }

    /// Returns the rules by which the mirror's requests and answers are rewritten.
    #[must_use]
    pub fn rewriting(&self) -> Option<&Rewriting> {
        self.0.rewriting.as_deref()
    }

    /// Returns the URL in the form that keys of stored objects contain.
    #[must_use]
    pub fn url<'a>(&'a self, asked: &Url<'a>) -> Url<'a> {
        key_url(&self.0, asked.path)
    }
}

impl Proxy {
    /// Returns the part of a mirror to which a request for `url` with these fields belongs. Returns `None` if
    /// the request is not for a mirror: no mirror has the path, or the host is not one of Foxy's names.
    /// Foxy's names are the public names. An address and `localhost` are also Foxy's names, if the URL has
    /// the port of one of the `listeners`.
    #[must_use]
    pub fn mirror_part<F: Fields>(
        &self,
        url: &Url<'_>,
        fields: &F,
        listeners: &[SocketAddr],
    ) -> Option<MirrorPart> {
        let mirrors = self.config.mirrors.as_ref()?;
        let port = url.authority.port_or_default(url.scheme);
        let ours = listeners.iter().any(|listener| listener.port() == port);
        let here = address(url).filter(|_| ours);
        let here = here.map(|ip| SocketAddr::new(ip, port));
        let base = own_name(&mirrors.public, url, url.scheme, here)?;
        let accept = first(fields, "Accept").unwrap_or_default();
        self.part(url, Method::Get, accept, base)
    }

    /// Converts the URL that clients use to the URL in the keys of the stored objects, for a purge in all
    /// partitions. The host of `url` does not matter. Returns `None` if no mirror has the path, or if the
    /// path belongs to a mirror other than `mirror`.
    #[must_use]
    pub fn mirrored_text(&self, url: &Url<'_>, mirror: Option<&str>) -> Option<Vec<u8>> {
        let part = self.part(url, Method::Purge, b"", String::new())?;
        let meant = mirror.is_none_or(|name| part.mirror() == name);
        meant.then(|| self.purge_text(part.partition(), &part.url(url)))
    }

    /// Returns the hosts of the servers of the mirror with this name, in the form that keys contain. Returns
    /// `None` if there is no such mirror.
    #[must_use]
    pub fn mirror_hosts(&self, name: &str) -> Option<Vec<Vec<u8>>> {
        let mut sites = self.config.mirror_sites().iter();
        let site = sites.find(|site| site.mirror.name == name)?;
        Some(site.mirror.hosts().collect())
    }

    fn part(
        &self,
        url: &Url<'_>,
        method: Method,
        accept: &[u8],
        base: String,
    ) -> Option<MirrorPart> {
        let mirrors = self.config.mirrors.as_ref()?;
        let wants = Wants {
            method,
            method_text: b"",
            path: url.path,
            accept,
            login: None,
        };
        let clients = &self.config.access.allow_clients;
        let role = Roles::default().find(mirrors, &wants, || Some(base), clients);
        match &*role.ok()? {
            Role::Site(site) if site.mirror.is_some() => Some(MirrorPart(site.clone())),
            _ => None,
        }
    }
}

/// Returns the address that the URL names.
fn address(url: &Url<'_>) -> Option<IpAddr> {
    match url.authority.host {
        Host::V6(ip) => Some(ip.into()),
        Host::Name(name) if name.eq_ignore_ascii_case(b"localhost") => Some([127, 0, 0, 1].into()),
        Host::Name(name) => std::str::from_utf8(name).ok()?.parse().ok(),
    }
}
