//! The plan of a configuration on this machine, in words. `foxy check` prints it.

use std::fmt::Write;
use std::net::SocketAddr;

use foxy_base::ByteSize;
use foxy_store::ReadMode;

use super::build::{Config, LogTarget, SiteConfig};
use super::clients::{Users, users};
use super::machine::Machine;
use super::{local_responses, mirrors, objects, origins, rewriting};

impl Config {
    /// Returns a few lines that describe what Foxy would start.
    #[must_use]
    pub fn plan(&self, machine: &dyn Machine) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        if !self.listen.is_empty() {
            let _ = writeln!(text, "forward proxy  {}", join(&self.listen));
            let _ = writeln!(text, "               {}", self.guard());
        }
        for users in self.users(&self.listen, |site| &site.listen) {
            let _ = writeln!(text, "clients        {}", users.words);
        }
        for site in &self.sites {
            text.push_str(&site_lines(site));
        }
        text.push_str(&mirrors::lines(self.proxy.mirrors.as_deref()));
        text.push_str(&self.certificate_lines());
        let admin = self
            .admin
            .map_or("off".to_owned(), |address| address.to_string());
        let _ = writeln!(text, "admin          {admin}");
        if let Some(socket) = &self.admin_socket {
            let path = socket.path.display();
            let rights = self.admin_rights.socket.as_str();
            let _ = writeln!(
                text,
                "               {path}, mode {:04o}: {rights}",
                socket.mode
            );
        }
        if self.admin.is_some_and(|admin| !admin.ip().is_loopback()) {
            let path = self.admin_token.path.display();
            let _ = writeln!(text, "               needs the token in {path}");
        }
        let total = machine.memory();
        let _ = writeln!(
            text,
            "memory         {} of {}",
            human(self.memory),
            human(total)
        );
        let cores = machine.cores();
        let _ = writeln!(text, "workers        {} on {cores} cores", self.workers);
        if self.stores.is_empty() {
            let _ = writeln!(text, "store          none: contents are lost at the end");
        }
        for store in &self.stores {
            let state = match machine.existing(&store.path) {
                Some(bytes) if bytes > 0 => "exists",
                _ => "will be made",
            };
            let path = store.path.display();
            let size = human(store.size);
            let reads = match store.reads {
                ReadMode::Auto => "",
                ReadMode::Sorted => ", reads sorted",
                ReadMode::Direct => ", reads direct",
            };
            let _ = writeln!(text, "store          {path}, {size}, {state}{reads}");
        }
        for rule in self.proxy.user_rules.all() {
            let _ = writeln!(text, "rule           {}", rule.describe());
        }
        let _ = writeln!(text, "access log     {}", self.access_log());
        text
    }

    /// True if all proxy listeners can be reached only from this machine.
    #[must_use]
    pub fn loopback_only(&self) -> bool {
        let sites = self.sites.iter().flat_map(|site| &site.listen);
        self.listen
            .iter()
            .chain(sites)
            .all(|address| address.ip().is_loopback())
    }

    /// Returns the clients that may use the forward proxy and each site, by listener address.
    pub(crate) fn users<'a>(
        &'a self,
        forward: &[SocketAddr],
        addresses: impl Fn(&'a SiteConfig) -> &'a [SocketAddr],
    ) -> Vec<Users> {
        let clients = Some(&self.proxy.access.allow_clients[..]);
        let forward = forward.iter();
        let mut all: Vec<_> = forward
            .map(|on| users("forward proxy", *on, clients, true))
            .collect();
        for site in &self.sites {
            let name = format!("site {}", site.name);
            let listed = site.allow_clients.as_deref();
            let on = addresses(site).iter();
            all.extend(on.map(|on| users(&name, *on, listed, false)));
        }
        all
    }

    fn guard(&self) -> String {
        let listed = &self.proxy.access.allow_destinations;
        if self.loopback_only() {
            "reaches any destination but link-local addresses".to_owned()
        } else if listed.is_empty() {
            "does not reach private or loopback destinations, nor this machine's own addresses (access.allow_destinations opens some)"
                .to_owned()
        } else {
            let listed: Vec<_> = listed.iter().map(ToString::to_string).collect();
            format!("reaches public destinations and {}", listed.join(", "))
        }
    }

    fn access_log(&self) -> String {
        match &self.log.access {
            LogTarget::Off => "off".to_owned(),
            LogTarget::Stdout => "standard output".to_owned(),
            LogTarget::File(path) => path.display().to_string(),
            LogTarget::Service(service) => service.to_string(),
        }
    }
}

/// Returns the lines about one site.
fn site_lines(site: &SiteConfig) -> String {
    let mut text = String::new();
    let listen = join(&site.listen);
    let origin = match &site.objects {
        Some(_) => "objects of its clients".to_owned(),
        None => site.origin.to_string(),
    };
    let _ = writeln!(
        text,
        "site           {} on {listen} for {origin}",
        site.name
    );
    if let Some(objects) = &site.objects {
        text.push_str(&objects::line(objects));
    }
    if site.proxy_protocol {
        text.push_str("               trusted proxies name clients by the PROXY protocol\n");
    }
    text.push_str(&local_responses::lines(&site.local_responses));
    let (rewriting, compress) = (site.rewriting.as_deref(), site.compress.as_deref());
    text.push_str(&rewriting::lines(rewriting, compress));
    text.push_str(&origins::lines(&site.origins));
    for (word, list) in [("hosts", &site.names.hosts), ("paths", &site.names.paths)] {
        if !list.is_empty() {
            let _ = writeln!(text, "               {word} {}", list.join(", "));
        }
    }
    text
}

fn join(addresses: &[SocketAddr]) -> String {
    addresses
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Writes a size in the largest unit in which the number is at least one. A number that is not whole gets one
/// decimal.
#[must_use]
pub(crate) fn human(bytes: u64) -> String {
    let units = ["GiB", "MiB", "KiB"];
    let found = units
        .iter()
        .zip([30, 20, 10])
        .find(|(_, shift)| bytes >> shift > 0);
    match found {
        Some((unit, shift)) if bytes.trailing_zeros() >= shift => {
            format!("{}{unit}", bytes >> shift)
        }
        Some((unit, shift)) => format!("{:.1}{unit}", bytes as f64 / (1u64 << shift) as f64),
        None => ByteSize(bytes).to_string(),
    }
}
