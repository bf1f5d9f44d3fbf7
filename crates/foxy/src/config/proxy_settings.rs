//! The sections that set the proxy itself, from values to its own types.

use foxy_proxy::{
    Access, Config, FillConfig, ForwardedMode, HeaderConfig, Limits, Timeouts, UpstreamConfig,
};

use super::given::AllGiven;
use super::kind::Value;
use super::problem::Problem;
use super::values::Values;

/// Every section of the proxy but `access`, which it shares with the admin listener.
pub(super) fn all_but_access(given: &AllGiven, problems: &mut Vec<Problem>) -> Config {
    let single = |name: &str| given.single.get(name);
    let mut config = Config {
        limits: limits(&mut Values::read("limits", single("limits"), problems)),
        timeouts: timeouts(&mut Values::read("timeouts", single("timeouts"), problems)),
        upstream: upstream(&mut Values::read("upstream", single("upstream"), problems)),
        fill: fill(&mut Values::read("fill", single("fill"), problems)),
        headers: headers(&mut Values::read("headers", single("headers"), problems)),
        ..Config::default()
    };
    rules(
        &mut Values::read("cache", single("cache"), problems),
        &mut config,
    );
    config
}

fn limits(values: &mut Values<'_>) -> Limits {
    Limits {
        connections: values.usize_of("connections"),
        client_connections: values.usize_of("client_connections"),
        head_bytes: values.usize_of("head"),
        head_fields: values.usize_of("fields"),
        ..Limits::default()
    }
}

fn timeouts(values: &mut Values<'_>) -> Timeouts {
    Timeouts {
        head: values.duration("head"),
        idle: values.duration("idle"),
        progress: values.duration("progress"),
        connect: values.duration("connect"),
        first_byte: values.duration("first_byte"),
        upstream_progress: values.duration("upstream_progress"),
        tunnel: values.duration("tunnel"),
        drain: values.duration("drain"),
    }
}

fn upstream(values: &mut Values<'_>) -> UpstreamConfig {
    UpstreamConfig {
        idle_max: values.duration("idle"),
        age_max: values.duration("age"),
        idle_per_destination: values.usize_of("idle_per_destination"),
        idle_total: values.usize_of("idle_total"),
        name_servers: values.addresses("name_servers"),
        dns_names: values.usize_of("dns_names"),
        origin_concurrency: values.usize_of("origin_concurrency"),
        origin_queue: values.usize_of("origin_queue"),
        ..UpstreamConfig::default()
    }
}

fn fill(values: &mut Values<'_>) -> FillConfig {
    FillConfig {
        window: values.usize_of("window"),
        lag: values.duration("lag"),
        finish_remaining: values.size("finish_remaining"),
        finish_percent: u8::try_from(values.usize_of("finish_percent")).unwrap_or(100),
        ..FillConfig::default()
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

fn rules(values: &mut Values<'_>, config: &mut Config) {
    let rules = &mut config.rules;
    rules.targeted = values.texts("targeted_fields");
    rules.surrogate_control = values.flag("surrogate_control");
    rules.heuristic_percent = u8::try_from(values.usize_of("heuristic_percent")).unwrap_or(10);
    rules.heuristic_max_s = values.seconds("heuristic_max");
    rules.default_ttl_s = values.seconds_or_off("default_ttl");
    rules.negative_ttl_s = values.seconds_or_off("negative_ttl");
    rules.server_error_ttl_s = values.seconds_or_off("server_error_ttl");
    rules.ttl_min_s = values.seconds_or_off("ttl_min");
    rules.ttl_max_s = values.seconds_or_off("ttl_max");
    rules.stale_on_disconnect_s = values.seconds("stale_on_disconnect");
    rules.stale_if_error_s = values.seconds_or_off("stale_if_error");
    rules.stale_while_revalidate_s = values.seconds_or_off("stale_while_revalidate");
    rules.store_set_cookie = values.flag("store_set_cookie");
    // For the forward proxy: sites have other defaults, see `places`.
    rules.obey_request = values.flag_or("obey_request", true);
    rules.post = values.flag_or("store_post", false);
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
}
