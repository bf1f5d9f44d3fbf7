//! The admin listener: health, metrics, statistics, purging, stores and a live status page.
//!
//! The listener has its own thread, so that it answers when the network threads are busy and never delays
//! them. It is not a proxy. Requests over TCP without a token are answered only under loopback names, the
//! listener's own address, and names that the operator lists. Otherwise the owner of a web page could point
//! the page's own host name at the listener, and the browser would let the page read the answers (DNS
//! rebinding). A request that changes something needs a field that a foreign page cannot add: the token, or
//! `X-Foxy-Admin`. The rights of a request follow from its token, or from the connection by which it arrives
//! (over the unix socket, or from loopback). See `guard` and `keys`. At an address that other machines can
//! reach, all requests for data need a token.

mod connection;
mod guard;
mod keys;
mod list;
mod listening;
mod metrics;
mod names;
mod open;
mod origins;
mod purge;
mod query;
mod reload;
mod socket;
mod stats;
mod stores;
mod traffic;
mod why;

pub(crate) use keys::Keys;
pub(crate) use list::Line;
pub(crate) use listening::{AdminThread, bind};
pub use origins::{OriginLine, SiteLine};
pub(crate) use purge::{Operation, Removed, Started};
pub(crate) use socket::UnixSocket;
pub(crate) use stats::resident_bytes;
pub use stats::{Durations, Memory, Stats, Store};
pub(crate) use stores::{Changed, StoreLine};
pub use why::{Stored as WhyStored, Why as WhyAnswer};

use std::sync::Arc;

use foxy_base::{Clock, MonoTime};
use foxy_http1::RequestHead;
use foxy_proxy::{Origins, Proxy};
use foxy_store::{Engine, Health, OneStoreStats};
use foxy_tls::ServerTls;
use tokio::sync::mpsc;

use self::connection::Answer;
use self::guard::{FIELD, ListenerKind, Refusal};
use self::names::Names;
use self::stats::health_name;
use crate::access_log::LogHandle;
use crate::config::Config;
use crate::run::{Addresses, ReloadRequest, StoreKeeper};

const NO_TOKEN: &str = "the admin token is needed: send `Authorization: Bearer TOKEN`, or name its \
                        file with --token-file (access.admin_token_file of the configuration)";
const PAGE: &str = include_str!("page.html");

/// The state from which answers are made.
#[derive(Debug)]
pub(crate) struct State {
    proxy: Arc<Proxy>,
    engine: Arc<Engine>,
    stores: Arc<StoreKeeper>,
    clock: Arc<dyn Clock>,
    log: Option<LogHandle>,
    started: MonoTime,
    memory: u64,
    hosts: Vec<String>,
    names: Names,
    keys: Keys,
    addresses: Addresses,
    certificates: Vec<ServerTls>,
    reloads: mpsc::Sender<ReloadRequest>,
    /// The origins of sites.
    origins: Vec<Origins>,
}

impl State {
    pub(crate) fn new(
        proxy: &Arc<Proxy>,
        (engine, stores): (&Arc<Engine>, &Arc<StoreKeeper>),
        clock: &Arc<dyn Clock>,
        log: Option<LogHandle>,
        (config, addresses, origins): (&Config, &Addresses, Vec<Origins>),
        (keys, started): (Keys, MonoTime),
        reloads: mpsc::Sender<ReloadRequest>,
    ) -> Self {
        let sites = addresses.sites.iter().map(|(name, _)| name.clone());
        let forward = (!addresses.forward.is_empty()).then(|| "forward".to_owned());
        let mut hosts = config.admin_hosts.clone();
        hosts.extend(addresses.admin.map(|address| address.ip().to_string()));
        Self {
            proxy: Arc::clone(proxy),
            engine: Arc::clone(engine),
            stores: Arc::clone(stores),
            clock: Arc::clone(clock),
            log,
            started,
            memory: config.memory,
            hosts,
            names: Names::of(config, forward.into_iter().chain(sites).collect()),
            keys,
            addresses: addresses.clone(),
            certificates: config.certificates(),
            reloads,
            origins,
        }
    }
}

impl State {
    /// Returns the number of partitions: the forward proxy and the sites.
    fn sites(&self) -> usize {
        self.names.partitions.len()
    }
}

/// Returns the answer to a request.
async fn answer(
    head: &RequestHead<'_>,
    body: &[u8],
    (kind, state): (ListenerKind, &State),
) -> Answer {
    let target = String::from_utf8_lossy(head.target_text()).into_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    match guard::check(head, path, kind, state) {
        Ok(()) => {}
        // The status page itself contains no data, and asks the user for the token.
        Err(Refusal::NoToken) if path == "/" => return page(401),
        Err(Refusal::NoToken) => return Answer::text(401, NO_TOKEN),
        Err(Refusal::Forbidden(reason)) => return Answer::text(403, reason),
        Err(Refusal::Beyond(has)) => {
            let has = has.as_str();
            return Answer::text(403, &format!("this needs more rights than `{has}`"));
        }
    }
    match (head.method_text(), path) {
        (b"GET" | b"HEAD", "/why") => why::answer(query, state),
        (b"GET" | b"HEAD", "/ls") => list::answer(query, state),
        (b"GET" | b"HEAD", "/purges") => purge::list(state),
        (b"GET" | b"HEAD", "/stores") => stores::list(state),
        (b"GET" | b"HEAD", _) => match path.strip_prefix("/purges/") {
            Some(number) => purge::status(number, state),
            None => get(path, state),
        },
        (b"POST", _) if !guard::may_change(head, state) => {
            Answer::text(403, &format!("changes need the field `{FIELD}: 1`"))
        }
        (b"POST", "/purge") => purge::purge(query, body, state).await,
        (b"POST", "/reload") => reload::answer(state).await,
        (b"POST", _) if path.starts_with("/stores/") => {
            stores::change(&path["/stores/".len()..], query, state).await
        }
        _ => Answer::text(
            405,
            "only GET, HEAD, POST /purge, POST /reload and POST /stores/... are known here",
        ),
    }
}

fn get(path: &str, state: &State) -> Answer {
    let shutting_down = state.proxy.is_shutting_down();
    match path {
        "/" => page(200),
        "/healthz" => Answer::text(200, "ok"),
        "/readyz" if shutting_down => Answer::text(503, "draining"),
        "/readyz" => {
            let (text, is_ready) = ready(state);
            Answer::text(if is_ready { 200 } else { 503 }, &text)
        }
        "/metrics" => Answer {
            status: 200,
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            body: metrics::text(state).into_bytes(),
            more: None,
        },
        "/stats" => Answer::json(200, &Stats::of(state)),
        "/purge" => Answer::text(405, "purging changes something: use POST"),
        _ => Answer::text(
            404,
            "try /, /healthz, /readyz, /metrics, /stats, /stores, /ls, /purges or /why?url=...",
        ),
    }
}

/// Returns the text of `/readyz`, and whether Foxy is ready. Foxy stays ready if a store or some origins of a
/// site are missing. The text then names the missing stores and origins.
fn ready(state: &State) -> (String, bool) {
    let absent = state.stores.absent();
    let without = absent
        .iter()
        .map(|store| format!("\nwithout {}", store.reason));
    let (sick, left) = origins::sick(state);
    let word = if left { "ready" } else { "no origin is left" };
    let without = without.collect::<String>();
    let stores = sick_stores(&state.engine.stats().stores);
    let memory = match state.proxy.memory_is_short() {
        true => "\nmemory is short: idle connections are closed, and requests may be refused",
        false => "",
    };
    (format!("{word}{without}{stores}{sick}{memory}"), left)
}

/// Returns the lines about stores that are slow, full, read-only or offline. Foxy continues to serve
/// requests, but such stores cannot read and write normally.
fn sick_stores(stores: &[OneStoreStats]) -> String {
    let state = |store: &OneStoreStats| match store.health {
        Health::Good => store.full.then_some("full"),
        health => Some(health_name(health)),
    };
    let sick = stores
        .iter()
        .filter_map(|store| Some((&store.disk, state(store)?)));
    sick.map(|(disk, state)| format!("\nstore {disk} is {state}"))
        .collect()
}

fn page(status: u16) -> Answer {
    Answer {
        status,
        content_type: "text/html; charset=utf-8",
        body: PAGE.as_bytes().to_vec(),
        more: None,
    }
}
