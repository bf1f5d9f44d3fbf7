//! The sections that contain settings of the proxy, converted from values to the proxy's own types.

use foxy_proxy::rules::Config as CacheRules;
use foxy_proxy::{Access, Config, ForwardedMode, HeaderConfig, UpstreamConfig};

use super::kind::Value;
use super::problem::Problem;
use super::raw::RawConfig;
use super::values::Values;

/// Reads all sections of the proxy except `access`, which the proxy shares with the admin listener.
pub(super) fn all_but_access(raw: &RawConfig, problems: &mut Vec<Problem>) -> Config {
    let single = |name: &str| raw.single.get(name);
    Config {
        limits: Values::read("limits", single("limits"), problems).fields(),
        timeouts: Values::read("timeouts", single("timeouts"), problems).fields(),
        upstream: upstream(&mut Values::read("upstream", single("upstream"), problems)),
        fill: Values::read("fill", single("fill"), problems).fields(),
        headers: headers(&mut Values::read("headers", single("headers"), problems)),
        rules: cache(&mut Values::read("cache", single("cache"), problems)),
        ..Config::default()
    }
}

fn upstream(values: &mut Values<'_>) -> UpstreamConfig {
    UpstreamConfig {
        name_servers: values.addresses("name_servers"),
        ..values.fields()
    }
}

/// Returns the rules for clients and their destinations.
pub(super) fn access(values: &mut Values<'_>) -> Access {
    Access {
        allow_clients: values.networks("allow_clients"),
        trusted_proxies: values.networks("trusted_proxies"),
        ports: values.port_ranges("ports"),
        connect_ports: values.ports("connect_ports"),
        purge_rate: u32::try_from(values.usize_of("purge_rate")).unwrap_or(u32::MAX),
        purge_from: values.networks("purge_from"),
        allow_destinations: values.networks("allow_destinations"),
        ..Access::default()
    }
}

fn headers(values: &mut Values<'_>) -> HeaderConfig {
    HeaderConfig {
        name: values.text("name"),
        x_forwarded_for: forwarded(values.given("x_forwarded_for")),
        forwarded: forwarded(values.given("forwarded")),
        cache_status: values.flag("cache_status"),
        ..HeaderConfig::default()
    }
}

fn forwarded(given: Option<&Value>) -> Option<ForwardedMode> {
    let Some(Value::Text(word)) = given else {
        return None;
    };
    Some(match &word[..] {
        "append" => ForwardedMode::Append,
        "replace" => ForwardedMode::Replace,
        "remove" => ForwardedMode::Remove,
        _ => ForwardedMode::Transparent,
    })
}

fn cache(values: &mut Values<'_>) -> CacheRules {
    let mut rules = CacheRules {
        targeted: values.texts("targeted_fields"),
        // This is the default of the forward proxy. Sites have other defaults, see `partition_configs`.
        obey_request: values.flag_or("obey_request", true),
        post: values.flag_or("store_post", false),
        ..values.fields()
    };
    if let Some(Value::Size(bytes)) = values.given("min_size") {
        rules.store_bytes_min = *bytes;
    }
    if let Some(Value::Size(bytes)) = values.given("max_size") {
        rules.store_bytes_max = *bytes;
    }
    if rules.store_bytes_min > rules.store_bytes_max {
        let text = "cache.min_size is over cache.max_size: nothing would be stored; lower one or raise the other";
        values.problem(Problem::conflict("cache.min_size", text.to_owned()));
    }
    rules
}
