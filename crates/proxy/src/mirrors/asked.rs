//! The part of a mirror that a URL is about, for operators: they name a URL as clients do, but what is
//! stored has the upstream's name.

use std::net::{IpAddr, SocketAddr};

use foxy_base::{Fields, first};
use foxy_http_rules::rewrite::Rewriting;
use foxy_http1::{Host, Method, Url};

use super::{Roles, Wants, own_name};
use crate::http::route::key_url;
use crate::{Proxy, Role, Site};

/// The part of a mirror that requests for a URL get.
#[derive(Clone, Debug)]
pub struct MirrorPart(Site);

impl MirrorPart {
    /// Name of the mirror.
    #[must_use]
    pub fn mirror(&self) -> &str {
        self.0.mirror.as_ref().map_or("", |part| part.name())
    }

    /// Its partition: that of the form and the name that the request asks for.
    #[must_use]
    pub fn partition(&self) -> &str {
        &self.0.name
    }

    /// Rewriting of its requests and answers.
    #[must_use]
    pub fn rewriting(&self) -> Option<&Rewriting> {
        self.0.rewriting.as_deref()
    }

    /// The URL as it is in keys.
    #[must_use]
    pub fn url<'a>(&'a self, asked: &Url<'a>) -> Url<'a> {
        key_url(&self.0, asked.path)
    }
}

impl Proxy {
    /// The part of a mirror that a request for `url` with these fields gets. `None` if it is not for a
    /// mirror: its path has no mirror, or its host is none of Foxy's names. These are the public names,
    /// and addresses and `localhost` with the port of one of the `listeners`.
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

    /// The URL of keys for what mirrors store under `url`, whatever host it names: for a purge of all
    /// partitions. `None` if its path has no mirror, or another one than `mirror`.
    #[must_use]
    pub fn mirrored_text(&self, url: &Url<'_>, mirror: Option<&str>) -> Option<Vec<u8>> {
        let part = self.part(url, Method::Purge, b"", String::new())?;
        let meant = mirror.is_none_or(|name| part.mirror() == name);
        meant.then(|| self.purge_text(part.partition(), &part.url(url)))
    }

    /// Hosts of the servers of the mirror of this name, as keys have them. `None`: there is no such mirror.
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

/// The address that the URL names.
fn address(url: &Url<'_>) -> Option<IpAddr> {
    match url.authority.host {
        Host::V6(ip) => Some(ip.into()),
        Host::Name(name) if name.eq_ignore_ascii_case(b"localhost") => Some([127, 0, 0, 1].into()),
        Host::Name(name) => std::str::from_utf8(name).ok()?.parse().ok(),
    }
}
