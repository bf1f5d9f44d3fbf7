//! The settings that reloads change in the simulated process, and the settings that may apply to a request.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use foxy_access::RuleSet as AccessRules;
use foxy_base::{Pattern, Rng};
use foxy_http_rules::rules::{PartitionConfig, QueryRule, Rule, RuleSet, Which};
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};

use super::profile::Profile;
use super::request::USERS;
use super::spot::{Part, Spot};
use super::workers::Listeners;
use crate::{
    Config, Gatekeeper, LoginToken, LoginsConfig, Role, Serves, Site, SiteNames, SiteTable,
    Timeouts,
};

type Caching = foxy_http_rules::Config;

/// The settings that a reload may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// True if the query is removed, both from keys and from requests to the origin.
    pub(super) drops_query: bool,
    /// True if answers with cookies are shared, even if their origin does not permit it.
    pub(super) shares_cookies: bool,
    /// True if a rule makes the field `X-Variant` select variants, although the page does not name it in
    /// `Vary`.
    pub(super) has_parts: bool,
    /// True if there is little memory for fetches.
    pub(super) tight: bool,
}

impl Settings {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let mut flag = || rng.chance(0.5);
        Self {
            drops_query: flag(),
            shares_cookies: flag(),
            has_parts: flag(),
            tight: flag(),
        }
    }

    /// Returns the settings for keys and sharing of `other`, together with the remaining settings of `self`.
    pub(super) const fn deciding_as(self, other: Self) -> Self {
        let tight = self.tight;
        Self { tight, ..other }
    }

    /// Returns true if the settings for keys and sharing are equal.
    pub(super) fn is_like(self, other: Self) -> bool {
        self.deciding_as(other) == self
    }

    /// Returns the spot that Foxy requests from the origin under these settings, if a client requests `spot`.
    /// It has no query if the settings remove queries.
    pub(super) fn effective(self, spot: Spot) -> Spot {
        match self.drops_query || spot.part == Part::Users {
            true => spot.plain(),
            false => spot,
        }
    }

    pub(super) fn config(self, profile: &Profile) -> Config {
        let seconds = Duration::from_secs;
        let mut config = Config {
            timeouts: Timeouts {
                head: seconds(5),
                idle: seconds(20),
                progress: seconds(10),
                connect: seconds(3),
                first_byte: seconds(8),
                upstream_progress: seconds(6),
                ..Timeouts::default()
            },
            seed: 7,
            ..Config::default()
        };
        config.headers.instance = "simulated".into();
        config.rules.stale_on_disconnect_s = (super::ON_FAILURE / 1000) as u32;
        config.upstream.idle_max = seconds(10);
        if profile.short {
            config.limits.memory = 1 << 20;
            config.fill.memory = 256 << 10;
        }
        if profile.wide {
            config.fill.window = 64 << 10;
            config.fill.lag = Duration::from_millis(400);
            config.fill.finish_remaining = 64 << 10;
            config.fill.memory = 1 << 20;
            // Longer bodies are not stored. Their bytes are only in the window (buffer) of the fetch.
            config.rules.store_bytes_max = 450_000;
        }
        if self.tight {
            config.fill.memory = 300 << 10;
        }
        if profile.reloads || profile.sites {
            config.user_rules = self.rules(&config.rules);
        }
        if profile.sites {
            config.gatekeeper = Some(Arc::new(gatekeeper()));
        }
        config
    }

    /// Returns the rules of the operator. Only the first rule that fits a request decides.
    fn rules(self, base: &Caching) -> RuleSet {
        let cookies = Caching {
            store_set_cookie: self.shares_cookies,
            ..base.clone()
        };
        let parts = Caching {
            key_parts: match self.has_parts {
                true => vec!["x-variant".into()],
                false => Vec::new(),
            },
            ..base.clone()
        };
        let rule = |part: Option<Part>, paths: &[&str], config: &Caching| Rule {
            name: format!("{part:?} {paths:?}"),
            sites: part.iter().map(|part| part.name().to_owned()).collect(),
            paths: paths.iter().map(|path| Pattern::new(path)).collect(),
            query: match self.drops_query || part.is_some() {
                true => QueryRule {
                    which: Which::Ignore(vec![Pattern::new("tag")]),
                    sort: false,
                },
                false => QueryRule::default(),
            },
            config: config.clone(),
            ..Rule::default()
        };
        let users = Some(Part::Users);
        let rules = vec![
            rule(users, &["/cookie"], &cookies),
            rule(None, &["/cookie"], &cookies),
            rule(users, &["/parted"], &parts),
            rule(None, &["/parted"], &parts),
            rule(users, &[], base),
            rule(None, &[], base),
        ];
        // The site `Part::Users` ignores cache directives of requests, as a site of the product does by
        // default.
        let deaf = |config: &Caching| Caching {
            obey_request: false,
            ..config.clone()
        };
        let partition_config = PartitionConfig {
            partitions: vec![Part::Users.name().to_owned()],
            config: deaf(base),
            rules: rules.iter().map(|rule| deaf(&rule.config)).collect(),
        };
        RuleSet::new(rules).with_partition_configs(vec![partition_config])
    }
}

/// Returns the gatekeeper. Users log in at one site. They use tokens, because passwords are checked on other
/// threads.
fn gatekeeper() -> Gatekeeper {
    let token = |name: &&str| {
        let user = LoginToken {
            user: (*name).to_owned(),
            ..LoginToken::default()
        };
        (Sha256::digest(name.as_bytes()).into(), user)
    };
    let logins = LoginsConfig {
        realm: "simulated".to_owned(),
        at: vec![Part::Users.name().to_owned()],
        required: true,
        tokens: USERS.iter().map(token).collect(),
        lifetime: Duration::from_secs(60),
        ..LoginsConfig::default()
    };
    Gatekeeper::new(AccessRules::new(Vec::new()), TimeZone::UTC).with_logins(Some(logins))
}

/// Returns the address of the listener with this index.
pub(super) fn address(listener: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], [3128, 8080][listener]))
}

/// Returns the listeners of a process: the listener of the forward proxy and the listener of the sites.
pub(super) fn listeners(profile: &Profile) -> Listeners {
    let mut all = vec![(address(0), Serves::One(Role::Forward))];
    if profile.sites {
        let parts = [Part::Plain, Part::Users];
        let names = parts.map(|part| SiteNames {
            hosts: vec![part.host().to_owned()],
            paths: Vec::new(),
        });
        let site = |part: Part| Site {
            name: part.name().to_owned(),
            host: "origin.sim".to_owned(),
            port: 80,
            preserve_host: part.host() == part.origin(),
            ..Site::default()
        };
        let sites = parts.map(|part| (site(part), None)).into();
        let table = SiteTable::new(&names).unwrap_or_default();
        all.push((address(1), Serves::Sites(Arc::new(table), sites)));
    }
    all
}

/// The eras of a history, in the order of time. An era begins with a start of the process or with a reload.
#[derive(Debug, Default)]
pub(super) struct Eras(RefCell<Vec<Era>>);

/// The settings of one era.
#[derive(Clone, Copy, Debug)]
struct Era {
    settings: Settings,
    /// Time at which every worker had the settings. `None` if some workers do not have them yet.
    applied: Option<u64>,
}

impl Eras {
    /// Notes that from now on some workers may have these settings. `applied` is the time at which all
    /// workers have them.
    pub(super) fn begin(&self, settings: Settings, applied: Option<u64>) {
        self.0.borrow_mut().push(Era { settings, applied });
    }

    /// Notes that every worker has the newest settings.
    pub(super) fn apply(&self, now: u64) {
        if let Some(era) = self.0.borrow_mut().last_mut() {
            era.applied = Some(now);
        }
    }

    /// Returns the newest settings.
    pub(super) fn last(&self) -> Settings {
        let eras = self.0.borrow();
        eras.last()
            .map_or_else(Settings::default, |era| era.settings)
    }

    /// Returns the settings that may have applied so far to a request that began at `started`.
    pub(super) fn since(&self, started: u64) -> Vec<Settings> {
        let mut found = Vec::new();
        for era in self.0.borrow().iter().rev() {
            found.push(era.settings);
            if era.applied.is_some_and(|at| at < started) {
                break;
            }
        }
        found
    }
}
