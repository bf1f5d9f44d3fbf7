//! Listeners that several sites share.

use std::net::SocketAddr;

use foxy_proxy::{SiteNames, SiteTable};

use super::build::{Config, SiteConfig};
use super::problem::Problem;

/// An address where one or more sites listen.
#[derive(Clone, Debug)]
pub(crate) struct SharedListener<'c> {
    pub(crate) address: SocketAddr,
    /// The sites at this address: at least one, in the order of the configuration.
    pub(crate) sites: Vec<&'c SiteConfig>,
}

impl SharedListener<'_> {
    /// True if every request is for the same site: only one site listens here, and this site has all hosts
    /// and paths.
    pub(crate) fn is_one(&self) -> bool {
        matches!(&self.sites[..], [only] if only.names == SiteNames::default())
    }

    /// Returns the sites by host and path.
    ///
    /// # Errors
    /// An error if two sites have the same host and path. The error names both sites.
    pub(crate) fn table(&self) -> Result<SiteTable, String> {
        let names: Vec<SiteNames> = self.sites.iter().map(|site| every(&site.names)).collect();
        SiteTable::new(&names).map_err(|clash| {
            let name = |site: usize| self.sites.get(site).map_or("", |site| &site.name[..]);
            format!(
                "the sites {} and {} on {} are both for {}{}; give that host or path to one of them",
                name(clash.sites.0),
                name(clash.sites.1),
                self.address,
                clash.host,
                clash.path,
            )
        })
    }

    /// True if trusted proxies name the clients of this address, by the PROXY protocol.
    pub(crate) fn is_named(&self) -> bool {
        self.sites.iter().any(|site| site.proxy_protocol)
    }

    /// True if clients of this address speak TLS.
    pub(crate) fn speaks_tls(&self) -> bool {
        let speaks = |site: &&SiteConfig| site.listen_tls.contains(&self.address);
        self.sites.iter().any(speaks)
    }
}

/// Returns the hosts and paths of a site. A site without hosts gets the host `*`, which stands for every
/// host.
fn every(names: &SiteNames) -> SiteNames {
    let mut names = names.clone();
    if names.hosts.is_empty() {
        names.hosts.push("*".to_owned());
    }
    names
}

impl Config {
    /// Returns the addresses of sites in the order of the configuration, each address with its sites. An
    /// address whose port the system chooses is never shared.
    pub(crate) fn shared_listeners(&self) -> Vec<SharedListener<'_>> {
        let mut listeners: Vec<SharedListener<'_>> = Vec::new();
        for site in &self.sites {
            for address in &site.listen {
                let known = listeners
                    .iter_mut()
                    .find(|known| known.address == *address && address.port() != 0);
                match known {
                    Some(known) => known.sites.push(site),
                    None => listeners.push(SharedListener {
                        address: *address,
                        sites: vec![site],
                    }),
                }
            }
        }
        listeners
    }
}

/// Finds settings that are ambiguous because sites share an address.
pub(super) fn check(config: &Config, problems: &mut Vec<Problem>) {
    for listener in config.shared_listeners() {
        let address = listener.address;
        let sites = &listener.sites;
        let mut problem = |setting: &str, text: String| {
            problems.push(Problem::conflict(setting, text));
        };
        for (i, site) in sites.iter().enumerate() {
            if sites[..i].iter().any(|other| std::ptr::eq(*other, *site)) {
                let text = format!("{address} is listed twice for the site {}", site.name);
                return problem("site.listen", format!("{text}; take one out"));
            }
        }
        if sites.len() > 1 {
            for site in sites.iter().filter(|site| site.names.hosts.is_empty()) {
                let text = format!(
                    "the site {} shares {address} with others and has no hosts; name them, or \
                     write [\"*\"] for every host that no other site has",
                    site.name
                );
                problem("site.hosts", text);
            }
        }
        before_the_host(&listener, &mut problem);
        let unnamed = sites.len() > 1 && sites.iter().any(|s| s.names.hosts.is_empty());
        if let Err(text) = listener.table()
            && !unnamed
        {
            problem("site.hosts", text);
        }
    }
}

/// Finds settings that differ between the sites of one address, but apply before the host of a request is
/// known. Such settings must be equal.
fn before_the_host(listener: &SharedListener<'_>, mut problem: impl FnMut(&str, String)) {
    let (address, sites) = (listener.address, &listener.sites);
    let plain = sites.iter().find(|s| !s.listen_tls.contains(&address));
    if let (true, Some(plain)) = (listener.speaks_tls(), plain) {
        let text = format!(
            "{address} is for TLS, but the site {} has it in `listen`; all sites of an address \
             speak TLS there, or none",
            plain.name
        );
        problem("site.listen", text);
    }
    let other = sites
        .iter()
        .find(|s| s.proxy_protocol != sites[0].proxy_protocol);
    if let Some(other) = other {
        let text = format!(
            "the sites {} and {} on {address} differ in proxy_protocol; it comes before the host: \
             give both the same",
            sites[0].name, other.name
        );
        problem("site.proxy_protocol", text);
    }
    let defaults = sites.iter().filter_map(|site| site.tls.as_ref());
    let mut defaults = defaults.filter(|tls| tls.has_default());
    let first = defaults.next();
    if listener.speaks_tls() && defaults.any(|tls| Some(tls) != first) {
        let text = format!(
            "several sites on {address} have a default_certificate; only one of them can be it"
        );
        problem("site.default_certificate", text);
    }
    for (i, site) in sites.iter().enumerate().filter(|_| listener.speaks_tls()) {
        let same = |other: &&&SiteConfig| {
            let mut hosts = site.names.hosts.iter();
            other.tls != site.tls && hosts.any(|host| other.names.hosts.contains(host))
        };
        if let Some(other) = sites[..i].iter().find(same) {
            let text = format!(
                "the sites {} and {} on {address} have a host in common and different \
                 certificates; the path comes after the handshake: give both the same",
                other.name, site.name
            );
            problem("site.certificate", text);
        }
    }
}
