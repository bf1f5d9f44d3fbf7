//! The certificates of all sites of a listener.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Served, ServerTls, Session};

/// The certificates of a listener: the sets of its sites. Several sites can use one set. Copies of this value
/// share the sets.
#[derive(Clone, Debug)]
pub struct ListenerTls(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The sets, in the order in which they are searched. Each set occurs once.
    sets: Vec<ServerTls>,
    /// The set of each site, as an index into `sets`. The key is a host of the site, or `*.` and its parent
    /// domain.
    hosts: HashMap<String, usize>,
}

impl ListenerTls {
    /// Makes the certificates of a listener from the sets of its sites. Each set comes with the hosts of its
    /// site, in lower case.
    #[must_use]
    pub fn of_sites(sites: impl IntoIterator<Item = (ServerTls, Vec<String>)>) -> Self {
        let mut inner = Inner::default();
        for (set, hosts) in sites {
            let known = inner.index_of(&set);
            for host in hosts {
                inner.hosts.entry(host).or_insert(known);
            }
        }
        Self(Arc::new(inner))
    }

    /// Makes a session with a client. The caller must not have read any byte of the client before.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::accepting(self.clone())
    }

    /// Returns the certificate for the name that a client requests. The flag is true if the certificate has
    /// that name. If the name fits a host of a site, the set of this site is searched first. In the other
    /// sets, an exact name has precedence over a wildcard. If no certificate has the name, the first default
    /// certificate is returned. `None` means that the client is refused.
    pub(crate) fn choose(&self, name: Option<&str>) -> Option<(Arc<Served>, bool)> {
        let name = name.map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        let sets = || self.0.sets.iter().map(ServerTls::table);
        let named = name.and_then(|name| {
            let own = self.0.of_host(&name).map(ServerTls::table);
            let own = own.and_then(|table| table.exact(&name).or_else(|| table.wildcard(&name)));
            own.or_else(|| sets().find_map(|table| table.exact(&name)))
                .or_else(|| sets().find_map(|table| table.wildcard(&name)))
        });
        let is_named = named.is_some();
        let served = named.or_else(|| sets().find_map(|table| table.fallback()))?;
        Some((served, is_named))
    }
}

impl Inner {
    /// Returns the index of a set. A set that is not in `sets` yet is added.
    fn index_of(&mut self, set: &ServerTls) -> usize {
        let known = self.sets.iter().position(|known| known == set);
        known.unwrap_or_else(|| {
            self.sets.push(set.clone());
            self.sets.len() - 1
        })
    }

    /// Returns the set of the site with this host.
    fn of_host(&self, name: &str) -> Option<&ServerTls> {
        let parent = || {
            let (_, parent) = name.split_once('.')?;
            self.hosts.get(&format!("*.{parent}"))
        };
        let at = self.hosts.get(name).or_else(parent)?;
        self.sets.get(*at)
    }
}

impl From<ServerTls> for ListenerTls {
    fn from(set: ServerTls) -> Self {
        Self::of_sites([(set, Vec::new())])
    }
}
