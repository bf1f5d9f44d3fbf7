//! The typed configuration. It is built from the given settings and the properties of the machine.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::ByteSize;
use foxy_base::settings::{Plain, Range};
use foxy_proxy::rules::rewrite::Rewriting;
use foxy_proxy::rules::rules::Pattern;
use foxy_proxy::{Compress, LocalResponses, Objects, OriginTimeouts, OriginsConfig, SiteNames};
use foxy_tls::{OriginTls, ServerTls};
use ipnet::IpNet;

use super::admin_access::{self, AdminRights, AdminSocket};
use super::kind::Value;
use super::log::{LogClients, LogQueries, LogService};
use super::log_template::LogTemplate;
use super::machine::Machine;
use super::origin::OriginUrl;
use super::problem::Problem;
use super::raw::{RawConfig, Section};
use super::token_file::TokenFile;
use super::values::Values;
use super::{
    access_rules, certificates, mirrors, partition_configs, proxy_settings, rules, shared, site,
    stores,
};

/// All settings of Foxy, checked and complete.
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses of the forward proxy; empty if there is none.
    pub listen: Vec<SocketAddr>,
    /// The addresses in `listen` where clients speak TLS.
    pub listen_tls: Vec<SocketAddr>,
    /// True if trusted proxies name the client of each connection to `listen`, by the PROXY protocol.
    pub proxy_protocol: bool,
    /// Certificates for `listen_tls`, and for sites that name no certificates.
    pub tls: Option<ServerTls>,
    /// Address of the admin listener.
    pub admin: Option<SocketAddr>,
    /// Further names under which the admin listener answers.
    pub admin_hosts: Vec<String>,
    /// The admin token's file.
    pub admin_token: TokenFile,
    /// A unix socket of the admin listener.
    pub admin_socket: Option<AdminSocket>,
    /// Rights at the admin listener, in addition to the rights of the admin token.
    pub admin_rights: AdminRights,
    /// The memory budget in bytes.
    pub memory: u64,
    /// Number of network threads, at least one.
    pub workers: usize,
    /// True if each network thread is bound to one core. Threads share cores if there are fewer cores than
    /// threads.
    pub pin_workers: bool,
    /// The stores. Without a store, objects are kept only in memory.
    pub stores: Vec<StoreConfig>,
    /// Folder for files in which Foxy keeps information about the stores.
    pub state_folder: PathBuf,
    /// Limits on objects that are written to disks.
    pub admission: foxy_store::AdmissionConfig,
    /// Settings of the scrub, which reads all stored contents to find damaged records.
    pub scrub: ScrubConfig,
    /// The sites (reverse proxies).
    pub sites: Vec<SiteConfig>,
    /// The access log, and the level of Foxy's own messages.
    pub log: LogConfig,
    /// The proxy's own settings. At the start, the addresses of the listeners are added to `access`.
    pub proxy: foxy_proxy::Config,
}

/// One store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// A file or block device.
    pub path: PathBuf,
    /// True if the user named this store. Otherwise it is the default store, and Foxy creates its folder.
    pub named: bool,
    /// Number of bytes that the store may use.
    pub size: u64,
    /// True if the user gave the size. Otherwise an existing store keeps its size.
    pub size_given: bool,
    /// The order in which waiting reads are sent to the disk.
    pub reads: foxy_store::ReadMode,
}

foxy_base::settings! {
    /// The reading of all stored contents to find damaged records.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ScrubConfig {
        /// Bytes per second that are read to find damaged records. While requests read from disks, Foxy
        /// reads only a quarter of this number. 0 turns scrubbing off.
        "rate" rate: u64 = Plain::Number(2 << 20), Range::Bytes(0, 16 << 30);
        /// Time from the beginning of one pass over all contents to the beginning of the next pass. The
        /// first pass begins at the start of Foxy.
        "every" every: Duration = Plain::seconds(7 * 86_400), Range::Time(60, 365 * 86_400);
    }
}

/// One reverse proxy.
#[derive(Clone, Debug)]
pub struct SiteConfig {
    /// The name of the site. The site's partition (its key space in the cache) has the same name.
    pub name: String,
    /// Addresses where the site listens.
    pub listen: Vec<SocketAddr>,
    /// The addresses in `listen` where clients speak TLS.
    pub listen_tls: Vec<SocketAddr>,
    /// Certificates for `listen_tls`.
    pub tls: Option<ServerTls>,
    /// True if trusted proxies name the client of each connection to the site, by the PROXY protocol.
    pub proxy_protocol: bool,
    /// Hosts and paths of the site; without hosts: all hosts.
    pub names: SiteNames,
    /// The first origin of the site. Requests to all origins of the site contain the host of this origin,
    /// unless `preserve_host` is true.
    pub origin: OriginUrl,
    /// All origins of the site.
    pub origins: OriginsConfig,
    /// TLS settings for the origin; `None`: no TLS.
    pub origin_tls: Option<OriginTls>,
    /// Times for which the site waits for its origins.
    pub timeouts: OriginTimeouts,
    /// Settings for answers that the site makes without its origins.
    pub local_responses: LocalResponses,
    /// Rules that rewrite fields and URLs, if there are any.
    pub rewriting: Option<Arc<Rewriting>>,
    /// Compression of answers that are stored uncompressed; `None`: they are not compressed.
    pub compress: Option<Arc<Compress>>,
    /// True if the origin receives the client's `Host`.
    pub preserve_host: bool,
    /// Determines which waiting requests get the answer of a running fetch.
    pub collapse: foxy_proxy::Collapse,
    /// True if `Cache-Control` and `Pragma` of requests are obeyed; `None`: as in `[cache]`.
    pub obey_request: Option<bool>,
    /// True if paths have one normal form in keys, rules, purges and requests to the origin; `None`: as for
    /// the forward proxy.
    pub normalise: Option<bool>,
    /// Clients that may use the site; `None`: all.
    pub allow_clients: Option<Vec<IpNet>>,
    /// Names in the certificates of clients that may use the site; `None`: all clients.
    pub allow_client_names: Option<Vec<Pattern>>,
    /// The settings of a build cache, whose clients store the objects themselves. A build cache has no
    /// origin. `None` for a site with an origin.
    pub objects: Option<Arc<Objects>>,
}

/// Settings of the access log and of Foxy's own messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// Target of the access log.
    pub access: LogTarget,
    /// Format of the access log.
    pub format: LogFormat,
    /// Form of URL queries in the access log.
    pub queries: LogQueries,
    /// Form of the clients' addresses and names in the access log.
    pub clients: LogClients,
    /// Level of Foxy's own messages.
    pub level: LogLevel,
}

/// Target of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// There is no access log.
    Off,
    /// Standard output.
    Stdout,
    /// A file, appended to.
    File(PathBuf),
    /// A service of the system or the network.
    Service(LogService),
}

/// Formats of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Squid's native format.
    Squid,
    /// Apache's common format.
    Common,
    /// Apache's combined format.
    Combined,
    /// One JSON object per line.
    Json,
    /// A template of the operator.
    Template(Arc<LogTemplate>),
}

/// Level of Foxy's own messages: `error`, `warn`, `info` or `debug`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLevel(pub String);

const DEFAULT_MEMORY_MAX: u64 = 512 << 20;
pub(super) const MEMORY_MIN: u64 = 48 << 20;
/// Default memory budget in percent of a container's memory. A container is meant for Foxy alone. The
/// remaining 15 % is for the kernel.
const CONTAINER_SHARE: f64 = 85.0;

impl Config {
    /// Builds the configuration.
    ///
    /// # Errors
    /// Returns all problems. The problems of one section's values are in the order of the table of settings.
    pub fn build(raw: &RawConfig, machine: &dyn Machine) -> Result<Self, Vec<Problem>> {
        let mut problems = raw.problems.clone();
        let config = read_all(raw, machine, &mut problems);
        check_together(&config, &mut problems);
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(problems)
        }
    }
}

fn read_all(raw: &RawConfig, machine: &dyn Machine, problems: &mut Vec<Problem>) -> Config {
    let single = |name: &str| raw.single.get(name);
    let mut top = Values::read("", single(""), problems);
    let (listen, admin) = (
        top.addresses("listen"),
        top.addresses("admin").first().copied(),
    );
    let listen_tls = top.given_addresses("listen_tls");
    let public = top.texts_or_none("public_url");
    let memory = memory(top.given("memory"), machine);
    let pin_workers = top.flag("pin_workers");
    let proxy_protocol = top.flag("proxy_protocol");
    let workers = match top.given("workers") {
        Some(Value::Count(count)) => usize::try_from(*count).unwrap_or(1),
        _ => machine.cores(),
    };
    let tls = certificates::section(single("tls"), problems);
    let mut sites: Vec<SiteConfig> = repeated(raw, "site")
        .iter()
        .filter_map(|section| site::read(section, tls.as_ref(), problems))
        .collect();
    let stores = stores::all(repeated(raw, "store"), machine, problems);
    let mut access = Values::read("access", single("access"), problems);
    let admin_hosts = access.texts("admin_hosts");
    let admin_token = admin_token(&access, machine);
    let admin_socket = admin_access::socket(&mut access);
    let admin_rights = admin_access::rights(&mut access);
    let access = proxy_settings::access(&mut access);
    for site in sites.iter_mut().filter(|site| site.objects.is_some()) {
        let all = || access.allow_clients.clone();
        site.allow_clients.get_or_insert_with(all);
    }
    // A configuration with sites has a forward proxy only if it sets `listen` or `listen_tls` at the top
    // level.
    let asks = |name| single("").is_some_and(|top| top.contains_key(name));
    let alone = sites.is_empty() && !asks("listen_tls");
    let listen = if asks("listen") || alone {
        listen
    } else {
        Vec::new()
    };
    let listen = [listen, listen_tls.clone()].concat();
    let mut proxy = proxy_settings::all_but_access(raw, problems);
    proxy.mirrors = mirrors::read(repeated(raw, "mirror"), &public, problems);
    caching(raw, (&sites, !listen.is_empty()), &mut proxy, problems);
    let forward = (!listen.is_empty()).then(|| "forward".to_owned());
    let mut names = mirrors::names(proxy.mirrors.as_deref());
    names.extend(sites.iter().map(|site| site.name.clone()).chain(forward));
    proxy.gatekeeper = access_rules::read(raw, (&sites, &names), problems);
    proxy.pac = access_rules::pac(single("access"));
    Config {
        proxy: foxy_proxy::Config { access, ..proxy },
        log: log(single("log"), problems),
        scrub: Values::read("scrub", single("scrub"), problems).fields(),
        admission: admission(single("admission"), problems),
        listen,
        listen_tls,
        proxy_protocol,
        tls,
        admin,
        admin_hosts,
        admin_token,
        admin_socket,
        admin_rights,
        memory,
        workers: workers.max(1),
        pin_workers,
        stores,
        state_folder: machine.state_folder(),
        sites,
    }
}

fn admin_token(access: &Values<'_>, machine: &dyn Machine) -> TokenFile {
    let named = match access.given("admin_token_file") {
        Some(Value::Text(path)) => Some(&path[..]),
        _ => None,
    };
    TokenFile::new(named, machine)
}

/// Reads the `[[rule]]` sections, and the caching settings of sites and mirrors.
fn caching(
    raw: &RawConfig,
    (sites, has_forward): (&[SiteConfig], bool),
    proxy: &mut foxy_proxy::Config,
    problems: &mut Vec<Problem>,
) {
    let cache = raw.single.get("cache");
    let sections = repeated(raw, "rule");
    let as_received = as_received(cache, sites);
    let mirrored = mirrors::names(proxy.mirrors.as_deref());
    let place = rules::Place {
        mirrors: &mirrored,
        cache: &proxy.rules,
        sites,
        forward: has_forward,
        as_received: &as_received,
    };
    let rules = rules::rules(sections, &place, problems);
    let partitions = partition_configs::partition_configs(
        sections,
        cache,
        &proxy.rules,
        &rules,
        (sites, mirrored),
    );
    proxy.user_rules = rules
        .with_partition_configs(partitions)
        .with_received(as_received);
}

/// Returns the partitions that keep paths as received, not in normal form, in keys and in requests to the
/// origin. Mistakes in `cache` are ignored here, because the code that reads the complete section reports
/// them.
fn as_received(cache: Option<&Section>, sites: &[SiteConfig]) -> Vec<String> {
    let general = Values::read("cache", cache, &mut Vec::new()).flag("normalise");
    let kept = |site: &&SiteConfig| !site.normalise.unwrap_or(general);
    let names = sites.iter().filter(kept).map(|site| site.name.clone());
    let forward = (!general).then(|| "forward".to_owned());
    names.chain(forward).collect()
}

fn repeated<'a>(raw: &'a RawConfig, name: &str) -> &'a [Section] {
    raw.repeated.get(name).map_or(&[], Vec::as_slice)
}

pub(super) fn share(percent: f64, of: u64) -> u64 {
    (of as f64 * percent / 100.0) as u64
}

fn memory(given: Option<&Value>, machine: &dyn Machine) -> u64 {
    match given {
        Some(Value::Size(bytes)) => *bytes,
        Some(Value::Share(percent)) => share(*percent, machine.memory()).max(MEMORY_MIN),
        _ => {
            let part = if machine.is_container() {
                CONTAINER_SHARE
            } else {
                25.0
            };
            share(part, machine.memory()).clamp(MEMORY_MIN, DEFAULT_MEMORY_MAX)
        }
    }
}

fn admission(
    section: Option<&Section>,
    problems: &mut Vec<Problem>,
) -> foxy_store::AdmissionConfig {
    let mut values = Values::read("admission", section, problems);
    foxy_store::AdmissionConfig {
        write_budget: values.size("write_budget"),
        // The table of settings accepts only names that can be parsed here.
        when_spent: values.text("when_spent").parse().unwrap_or_default(),
        size_max: match values.given("max_size") {
            Some(Value::Size(bytes)) => *bytes,
            _ => u64::MAX,
        },
    }
}

fn log(section: Option<&Section>, problems: &mut Vec<Problem>) -> LogConfig {
    let mut values = Values::read("log", section, problems);
    LogConfig {
        access: log_target(&values.text("access")),
        format: match values.text("format").as_str() {
            "common" => LogFormat::Common,
            "combined" => LogFormat::Combined,
            "json" => LogFormat::Json,
            text => LogTemplate::parse(text).map_or(LogFormat::Squid, |template| {
                LogFormat::Template(Arc::new(template))
            }),
        },
        queries: match values.text("query_strings").as_str() {
            "true" => LogQueries::Kept,
            "hashed" => LogQueries::Hashed,
            _ => LogQueries::Off,
        },
        clients: match values.text("clients").as_str() {
            "network" => LogClients::Network,
            "hashed" => LogClients::Hashed,
            "off" => LogClients::Off,
            _ => LogClients::Full,
        },
        level: LogLevel(values.text("level")),
    }
}

fn log_target(text: &str) -> LogTarget {
    match text {
        "off" => LogTarget::Off,
        "stdout" => LogTarget::Stdout,
        text => match LogService::named(text) {
            Some(service) => LogTarget::Service(service),
            None => LogTarget::File(PathBuf::from(text)),
        },
    }
}

/// Finds mistakes that are not visible in a single value, such as addresses, names and paths that occur
/// twice.
fn check_together(config: &Config, problems: &mut Vec<Problem>) {
    shared::check(config, problems);
    let mut addresses: Vec<(SocketAddr, String)> = Vec::new();
    let shared = config.shared_listeners();
    let all = config
        .listen
        .iter()
        .map(|address| (*address, "listen".to_owned()))
        .chain(shared.iter().map(|listener| {
            let sites = listener.sites.iter();
            let names: Vec<_> = sites.map(|site| format!("site {}", site.name)).collect();
            (listener.address, names.join(", "))
        }))
        .chain(config.admin.map(|address| (address, "admin".to_owned())));
    for (address, user) in all {
        let twice = addresses
            .iter()
            .find(|(other, _)| *other == address && address.port() != 0);
        if let Some((_, other)) = twice {
            let text = format!("{address} is used by {other} and by {user}; give each its own");
            problems.push(Problem::conflict("listen", text));
        }
        addresses.push((address, user));
    }
    for (i, site) in config.sites.iter().enumerate() {
        if site.name == "forward"
            || config.sites[..i]
                .iter()
                .any(|other| other.name == site.name)
        {
            let text = format!(
                "the name `{}` is taken; give the site another name",
                site.name
            );
            problems.push(Problem::conflict("site.name", text));
        }
    }
    for (i, store) in config.stores.iter().enumerate() {
        if config.stores[..i]
            .iter()
            .any(|other| other.path == store.path)
        {
            let text = format!("{} is listed twice; take one out", store.path.display());
            problems.push(Problem::conflict("store.path", text));
        }
        // An existing file keeps its length. When Foxy opens the file, its contents show whether it is a
        // store.
        if store.size < 16 << 20 && (store.size_given || !store.path.exists()) {
            let text = format!(
                "the store {} would have {}; it needs at least 16MiB: make room, or give its size or another path",
                store.path.display(),
                ByteSize(store.size)
            );
            problems.push(Problem::conflict("store.size", text));
        }
    }
    let named = config.proxy_protocol || config.sites.iter().any(|site| site.proxy_protocol);
    if named && config.proxy.access.trusted_proxies.is_empty() {
        let text = "nobody is trusted to name clients; name the proxies in access.trusted_proxies";
        problems.push(Problem::conflict("proxy_protocol", text.to_owned()));
    }
    certificates::check(config, problems);
    mirrors::check(config, problems);
    if config.listen.is_empty() && config.sites.is_empty() {
        let text = "there is no listener; give `listen` or a [[site]]".to_owned();
        problems.push(Problem::conflict("listen", text));
    }
}
