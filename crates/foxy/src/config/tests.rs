//! Tests of configurations in the form that users write, and of the values that are read from them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

mod every;
mod rewriting;
mod sites;

/// A machine with 8 GiB of memory, 4 cores, 50 GiB of free space, and no store.
#[derive(Debug)]
struct Laptop {
    existing: u64,
}

impl Machine for Laptop {
    fn memory(&self) -> u64 {
        8 << 30
    }
    fn cores(&self) -> usize {
        4
    }
    fn free_space(&self, _: &Path) -> Option<u64> {
        Some(50 << 30)
    }
    fn existing(&self, _: &Path) -> Option<u64> {
        (self.existing > 0).then_some(self.existing)
    }
    fn state_folder(&self) -> PathBuf {
        PathBuf::from("/cache/foxy")
    }
}

const LAPTOP: Laptop = Laptop { existing: 0 };

pub(super) fn build(text: &str) -> Result<Config, Vec<String>> {
    let strings = |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect();
    let raw = parse(text, "foxy.toml").map_err(strings)?;
    Config::build(&raw, &LAPTOP).map_err(strings)
}

fn problems(text: &str) -> Vec<String> {
    build(text).expect_err(text)
}

#[test]
fn nothing_given_is_a_safe_forward_proxy() {
    let config = build("").unwrap();
    assert_eq!(config.listen, ["127.0.0.1:3128".parse().unwrap()]);
    assert_eq!(config.admin, Some("127.0.0.1:3129".parse().unwrap()));
    assert_eq!((config.memory, config.workers), (512 << 20, 4));
    assert_eq!(config.stores[0].path, Path::new("/cache/foxy/store"));
    assert_eq!(config.stores[0].size, 5 << 30, "a tenth of the free space");
    assert!(config.loopback_only() && config.sites.is_empty());
}

#[test]
fn defaults_are_those_of_the_proxy() {
    let shown = |config: &foxy_proxy::Config| format!("{config:#?}");
    assert_eq!(
        shown(&build("").unwrap().proxy),
        shown(&foxy_proxy::Config::default())
    );
}

#[test]
fn a_site_alone_switches_the_forward_proxy_off() {
    let site = "[[site]]\nlisten = [\"*:8080\"]\norigin = \"http://localhost:9000\"\n";
    let config = build(site).unwrap();
    assert!(config.listen.is_empty());
    assert_eq!(config.sites[0].name, "localhost:9000");
    let both = build(&format!("listen = \"127.0.0.1:1\"\n{site}")).unwrap();
    assert_eq!((both.listen.len(), both.sites.len()), (1, 1));
}

#[test]
fn sizes_and_shares_of_the_machine() {
    let config = build("memory = \"50%\"\n[[store]]\npath = \"/a\"\nsize = \"100%\"").unwrap();
    assert_eq!((config.memory, config.stores[0].size), (4 << 30, 50 << 30));
    assert!(
        build("[[store]]\npath = \"off\"")
            .unwrap()
            .stores
            .is_empty()
    );
}

#[test]
fn an_existing_store_keeps_its_size_unless_told() {
    let existing = Laptop { existing: 7 << 30 };
    let build = |text| Config::build(&parse(text, "").unwrap(), &existing).unwrap();
    assert_eq!(build("").stores[0].size, 7 << 30);
    assert_eq!(build("[[store]]\nsize = \"1GiB\"").stores[0].size, 1 << 30);
}

#[test]
fn settings_reach_the_proxy() {
    let config = build(
        "[timeouts]\nhead = \"3s\"\n[limits]\nhead = \"16KiB\"\n[cache]\nttl_max = \"1h\"\nsurrogate_control = true\n\
         [headers]\nx_forwarded_for = \"remove\"\n[access]\nconnect_ports = [443, 8443]\n",
    )
    .unwrap();
    assert_eq!(config.proxy.timeouts.head, Duration::from_secs(3));
    assert_eq!(config.proxy.limits.head_bytes, 16 << 10);
    assert_eq!(config.proxy.rules.ttl_max_s, Some(3600));
    assert!(config.proxy.rules.surrogate_control);
    assert_eq!(config.proxy.access.connect_ports, [443, 8443]);
}

#[test]
fn all_problems_are_told_at_once_with_place_value_and_what_is_allowed() {
    let found = problems("memory = \"lots\"\nworkers = 0\n\n[timeouts]\nhead = \"5 weeks\"\n");
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(
        found[0].starts_with("foxy.toml:1: memory = \"lots\": it is not a size"),
        "{}",
        found[0]
    );
    assert!(found[1].contains("foxy.toml:2: workers") && found[1].contains("from 1 to 1024"));
    assert!(found[2].contains("foxy.toml:5: timeouts.head") && found[2].contains("10m"));
}

#[test]
fn unknown_settings_get_a_suggestion() {
    for (text, suggestion) in [
        ("memmory = 1", "`memory`"),
        ("[timeouts]\nheads = 1", "`timeouts.head`"),
        ("connect_ports = [1]", "`access.connect_ports`"),
        ("[stores]\npath = \"x\"", "docs/config.md"),
    ] {
        let found = problems(text);
        assert!(
            found[0].contains("not a setting") && found[0].contains(suggestion),
            "{found:?}"
        );
    }
}

#[test]
fn shapes_and_syntax() {
    for (text, hint) in [
        ("[store]\npath = \"x\"", "[[store]]"),
        ("timeouts = 5", "[timeouts]"),
        ("memory = [1, 2]", "it is a list"),
        ("memory = {}", "form"),
        ("memory = ", "not valid TOML"),
    ] {
        let found = problems(text);
        assert!(found[0].contains(hint), "{text}: {found:?}");
    }
}

#[test]
fn settings_that_do_not_go_together() {
    for (text, hint) in [
        ("admin = \"127.0.0.1:3128\"", "used by listen and by admin"),
        ("[[site]]\nlisten = \":1\"", "site.origin is missing"),
        ("[[site]]\norigin = \"http://a\"", "site.listen is missing"),
        (
            "[[site]]\nname = \"forward\"\nlisten = \":1\"\norigin = \"http://a\"",
            "is taken",
        ),
        (
            "[[store]]\npath = \"/a\"\n[[store]]\npath = \"/a\"",
            "listed twice",
        ),
    ] {
        let found = problems(text);
        assert!(
            found.iter().any(|problem| problem.contains(hint)),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn access_reaches_the_proxy() {
    use foxy_proxy::ForwardedMode;
    let config = build(
        "[access]\nallow_clients = [\"203.0.113.0/24\"]\ntrusted_proxies = \"127.0.0.1\"\n\
         ports = [80, \"8000-8999\"]\npurge_rate = 7\nadmin_token_file = \"/t\"\n\
         [headers]\nx_forwarded_for = \"append\"\n[log]\nquery_strings = true\n\
         [[site]]\nlisten = \":1\"\norigin = \"http://a\"\nallow_clients = [\"10.0.0.0/8\"]\n\
         [[site]]\nlisten = \":2\"\norigin = \"http://b\"\n",
    )
    .unwrap();
    let access = &config.proxy.access;
    assert_eq!(access.allow_clients, ["203.0.113.0/24".parse().unwrap()]);
    assert_eq!(access.trusted_proxies, ["127.0.0.1/32".parse().unwrap()]);
    assert_eq!(access.ports, [80..=80, 8000..=8999]);
    assert_eq!(access.purge_rate, 7);
    assert_eq!(config.admin_token.path, Path::new("/t"));
    let headers = &config.proxy.headers;
    assert_eq!(headers.x_forwarded_for, Some(ForwardedMode::Append));
    assert_eq!(headers.forwarded, None);
    assert_eq!(config.log.queries, LogQueries::Kept);
    let listed = config.sites[0].allow_clients.as_deref();
    assert_eq!(listed, Some(&["10.0.0.0/8".parse().unwrap()][..]));
    assert_eq!(config.sites[1].allow_clients, None);
    let token = build("").unwrap().admin_token;
    assert_eq!(
        (token.path.as_path(), token.given),
        (Path::new("/cache/foxy/admin-token"), false)
    );
}

#[test]
fn the_plan_lists_the_permitted_clients() {
    for (text, words) in [
        (
            "",
            "forward proxy on 127.0.0.1:3128: clients on this machine may use it",
        ),
        (
            "listen = [\"*:3128\"]",
            "0.0.0.0:3128: clients of 127.0.0.0/8, ::1/128, 10.0.0.0/8",
        ),
        (
            "listen = [\"*:3128\"]\n[access]\nallow_clients = \"all\"",
            "everybody may use it: it is an open proxy",
        ),
        (
            "[[site]]\nname = \"s\"\nlisten = \"*:80\"\norigin = \"http://a\"",
            "site s on 0.0.0.0:80: everybody may use it\n",
        ),
        (
            "admin = \"10.0.0.1:3129\"",
            "needs the token in /cache/foxy/admin-token",
        ),
    ] {
        let plan = build(text).unwrap().plan(&LAPTOP);
        assert!(plan.contains(words), "{words} in\n{plan}");
    }
}

#[test]
fn the_plan_names_what_matters() {
    let config = build("listen = [\"*:3128\"]").unwrap();
    let plan = config.plan(&LAPTOP);
    for word in [
        "0.0.0.0:3128",
        "private",
        "512MiB of 8GiB",
        "4 on 4 cores",
        "/cache/foxy/store, 5GiB, will be made",
    ] {
        assert!(plan.contains(word), "{word} in\n{plan}");
    }
}

#[test]
fn unknown_names_and_wrong_values_are_reported_together() {
    let text = "memry = \"1GiB\"\nworkers = 0\nlog = 1\n[limits]\nfields = 200\nhed = 1\n";
    let found = problems(text).join("\n");
    for place in [
        "foxy.toml:1:",
        "foxy.toml:2:",
        "foxy.toml:3:",
        "foxy.toml:5:",
        "foxy.toml:6:",
    ] {
        assert!(found.contains(place), "{place} {found}");
    }
}

#[test]
fn the_example_in_the_readme_is_right() {
    let readme = include_str!("../../../../README.md");
    let example = readme
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    build(example).unwrap();
}

#[test]
fn the_reference_lists_every_setting() {
    let text = reference();
    for setting in SETTINGS.iter() {
        assert!(
            text.contains(&format!("### {}\n", setting.name)),
            "{}",
            setting.name
        );
        assert!(
            SECTIONS.iter().any(|(name, _)| *name == setting.section),
            "{}",
            setting.section
        );
    }
}
