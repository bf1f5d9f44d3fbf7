//! Certificates of listeners: their settings, and the lines of `foxy check` about them.

use std::fmt::Write;
use std::path::PathBuf;

use foxy_base::{Clock, SystemClock};
use foxy_tls::{ClientOptions, ServerOptions, ServerTls};

use super::build::{Config, SiteConfig};
use super::kind::Value;
use super::problem::Problem;
use super::raw::Section;
use super::values::Values;

/// Returns the certificates that a section names; `None` if it names no certificate.
///
/// # Errors
/// Returns a description of the mistake in the settings or in the files.
pub(super) fn read(values: &Values<'_>) -> Result<Option<ServerTls>, String> {
    let text = |name: &str| match values.given(name) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let path = |name: &str| text(name).map(PathBuf::from);
    let (certificate, key) = (path("certificate"), path("key"));
    if certificate.is_some() != key.is_some() {
        return Err("certificate and key belong together; give both or none".to_owned());
    }
    let clients = path("client_ca").map(|authorities| ClientOptions {
        authorities,
        required: !matches!(values.given("client_certificate"), Some(Value::Text(word)) if word == "request"),
    });
    let options = ServerOptions {
        clients,
        certificate: certificate.zip(key),
        folder: path("certificates"),
        default: text("default_certificate"),
    };
    if options.certificate.is_none() && options.folder.is_none() {
        if options.clients.is_some() {
            let text = "client_ca needs certificates of its own here: give certificate and key, or certificates";
            return Err(text.to_owned());
        }
        return match options.default {
            None => Ok(None),
            Some(_) => Err("default_certificate needs certificates to choose from".to_owned()),
        };
    }
    ServerTls::new(options)
        .map(Some)
        .map_err(|error| error.to_string())
}

/// Reads the section `[tls]`.
pub(super) fn section(section: Option<&Section>, problems: &mut Vec<Problem>) -> Option<ServerTls> {
    let mut values = Values::read("tls", section, problems);
    read(&values).unwrap_or_else(|text| {
        values.problem(Problem::conflict("[tls]", text));
        None
    })
}

/// Checks that listeners with TLS have certificates.
pub(super) fn check(config: &Config, problems: &mut Vec<Problem>) {
    if !config.listen_tls.is_empty() && config.tls.is_none() {
        let text = "there is no certificate for it; give tls.certificate and tls.key".to_owned();
        problems.push(Problem::conflict("listen_tls", text));
    }
    for site in &config.sites {
        client_certificates(site, problems);
        if !site.listen_tls.is_empty() && site.tls.is_none() {
            let text = format!(
                "there is no certificate for the site {}; give its certificate and key",
                site.name
            );
            problems.push(Problem::conflict("site.listen_tls", text));
        }
    }
}

/// Checks that clients can present the required certificates. A client can do this only over TLS.
fn client_certificates(site: &SiteConfig, problems: &mut Vec<Problem>) {
    let asked = site.tls.as_ref().and_then(ServerTls::clients);
    let required = asked.is_some_and(|clients| clients.required);
    let plain = site.listen.len() > site.listen_tls.len();
    if required && plain {
        let text = format!(
            "the site {} wants certificates of clients and also listens without TLS, where there are none; take its `listen` out, or set client_certificate to \"request\"",
            site.name
        );
        problems.push(Problem::conflict("site.client_ca", text));
    }
    if asked.is_none() && site.allow_client_names.is_some() {
        let text = format!(
            "the site {} asks no client for a certificate, so nobody could use it; give client_ca",
            site.name
        );
        problems.push(Problem::conflict("site.allow_client_names", text));
    }
}

impl Config {
    /// Returns the certificates of all listeners, each certificate once.
    pub(crate) fn certificates(&self) -> Vec<ServerTls> {
        let mut all: Vec<ServerTls> = Vec::new();
        let sites = self.sites.iter().filter_map(|site| site.tls.as_ref());
        for tls in self.tls.iter().chain(sites) {
            if !all.contains(tls) {
                all.push(tls.clone());
            }
        }
        all
    }

    /// Returns the hosts without a certificate: each host of a site with TLS that no certificate of this site
    /// covers. Each entry is the site's name and the host.
    fn hosts_without_certificate(&self) -> Vec<(&str, &str)> {
        let mut without = Vec::new();
        for site in self.sites.iter().filter(|site| !site.listen_tls.is_empty()) {
            let Some(tls) = &site.tls else { continue };
            let served = tls.served();
            let has = |host: &str| {
                // In place of a host with a wildcard, one of the names that it covers is checked.
                let host = host.replacen('*', "x", 1);
                let mut certificates = served.iter().map(|served| served.certificate());
                certificates.any(|certificate| certificate.is_for(host.as_bytes()))
            };
            let hosts = site.names.hosts.iter().filter(|host| *host != "*");
            without.extend(
                hosts
                    .filter(|host| !has(host))
                    .map(|host| (&site.name[..], &host[..])),
            );
        }
        without
    }

    /// Returns the lines about certificates: a line for each certificate, a line about the certificates of
    /// clients, and a line for each problem that the operator should correct.
    pub(super) fn certificate_lines(&self) -> String {
        let now = SystemClock::default().wall().0.div_euclid(1000);
        let mut text = String::new();
        for tls in self.certificates() {
            for served in tls.served() {
                let certificate = served.certificate();
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "certificate    {}: {}; issued by {}; {} days left",
                    served.path().display(),
                    certificate.names.join(", "),
                    certificate.issuer,
                    certificate.days_left(now)
                );
            }
            if let Some(clients) = tls.clients() {
                let word = if clients.required { "must" } else { "may" };
                let path = clients.authorities.display();
                let _ = writeln!(
                    text,
                    "               clients {word} show a certificate of {path}"
                );
            }
            for warning in tls.warnings(now) {
                let _ = writeln!(text, "               {warning}");
            }
        }
        for (site, host) in self.hosts_without_certificate() {
            let _ = writeln!(
                text,
                "               site {site}: no certificate has the name {host}"
            );
        }
        text
    }
}
