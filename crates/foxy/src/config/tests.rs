//! From text to configuration, as users write it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

/// A machine of 8 GiB, 4 cores and 50 GiB free, without a store.
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
    let given = parse(text, "foxy.toml").map_err(strings)?;
    Config::build(&given, &LAPTOP).map_err(strings)
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
    assert!(config.log.query_strings);
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
    for setting in SETTINGS {
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

#[test]
fn certificates_are_read_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let make = || rcgen::generate_simple_self_signed(["shop.test".to_owned()]).unwrap();
    let (made, other) = (make(), make());
    let certificate = file("a.crt", made.cert.pem());
    let key = file("a.key", made.signing_key.serialize_pem());
    let stranger = file("b.key", other.signing_key.serialize_pem());
    let site = |rest: &str| {
        let text = format!("[[site]]\norigin = \"https://a.test\"\nlisten_tls = \":1\"\n{rest}");
        build(&text)
    };
    let pair = |key: &str| format!("certificate = \"{certificate}\"\nkey = \"{key}\"\n");
    let config = site(&pair(&key)).unwrap();
    assert_eq!(config.sites[0].listen, config.sites[0].listen_tls);
    assert!(config.listen.is_empty() && config.sites[0].origin_tls.is_some());
    let plan = config.plan(&ThisMachine);
    assert!(plan.contains("a.crt: shop.test; issued by rcgen"), "{plan}");
    assert!(plan.contains("chmod o= "), "{plan}");
    let shared = format!("[tls]\n{}", pair(&key));
    assert!(site(&shared).is_ok(), "the certificates of [tls]");
    let forward = build(&format!("listen_tls = \":1\"\n{shared}")).unwrap();
    assert_eq!(forward.listen, forward.listen_tls);
    let folder = folder.path().display();
    let all = format!("certificates = \"{folder}\"\ndefault_certificate = \"shop.test\"\n");
    assert!(site(&all).is_ok());
    for (rest, part) in [
        (String::new(), "no certificate for the site"),
        (pair(&stranger), "does not fit the key"),
        (pair("/none"), "/none"),
        (pair(&certificate), "no private key"),
        (
            format!("certificate = \"{certificate}\"\n"),
            "belong together",
        ),
        (
            all.replace("shop", "other"),
            "no certificate is for the default name",
        ),
        (format!("{all}origin_key = \"{key}\"\n"), "belong together"),
    ] {
        let problems = site(&rest).unwrap_err();
        let text: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(text.join(" ").contains(part), "{rest}: {text:?}");
    }
    assert!(build("listen_tls = \":1\"\n").is_err());
    let plain = "[[site]]\nlisten = \":1\"\norigin = \"http://a\"\norigin_name = \"b\"\n";
    assert!(build(plain).is_err(), "a name for an origin without TLS");
}

/// Two sites on one address, with these further settings.
fn sharing(first: &str, second: &str) -> String {
    format!(
        "[[site]]\nname = \"one\"\nlisten = [\"*:8080\"]\norigin = \"http://a:1\"\n{first}\n\
         [[site]]\nname = \"two\"\nlisten = [\"*:8080\"]\norigin = \"http://b:2\"\n{second}\n"
    )
}

#[test]
fn sites_that_share_an_address_must_be_told_apart() {
    let config = build(&sharing(
        "hosts = [\"Shop.test\", \"*.shop.test\"]",
        "hosts = [\"shop.test\"]\npaths = [\"/api\"]",
    ));
    let plan = config.unwrap().plan(&LAPTOP);
    assert!(plan.contains("hosts shop.test, *.shop.test"), "{plan}");
    assert!(plan.contains("paths /api"), "{plan}");
    for (first, second, expected) in [
        (
            "",
            "hosts = [\"b.test\"]",
            "one shares 0.0.0.0:8080 with others and has no hosts",
        ),
        (
            "hosts = [\"a.test\"]",
            "hosts = [\"b.test\", \"A.test\"]",
            "the sites one and two on 0.0.0.0:8080 are both for a.test/;",
        ),
        ("hosts = [\"*\"]", "hosts = [\"*\"]", "are both for */"),
        (
            "hosts = [\"a.test:80\"]",
            "hosts = [\"b.test\"]",
            "without port",
        ),
        (
            "hosts = [\"a.*.test\"]",
            "hosts = [\"b.test\"]",
            "it is not a host name",
        ),
        (
            "hosts = [\"a.test\"]\npaths = [\"api\"]",
            "hosts = [\"b.test\"]",
            "beginning of a path",
        ),
        (
            "hosts = [\"a.test\"]\npaths = [\"/a/../b\"]",
            "hosts = [\"b.test\"]",
            "beginning of a path",
        ),
        (
            "hosts = [\"a.test\"]\nlisten_tls = [\"*:8080\"]",
            "hosts = [\"b.test\"]",
            "0.0.0.0:8080",
        ),
    ] {
        let found = problems(&sharing(first, second)).join("\n");
        assert!(found.contains(expected), "{first} {second}: {found}");
    }
    let forward = format!(
        "listen = \"*:8080\"\n{}",
        sharing("hosts = [\"a\"]", "hosts = [\"b\"]")
    );
    let found = problems(&forward).join("\n");
    assert!(
        found.contains("is used by listen and by site one, site two"),
        "{found}"
    );
}

#[test]
fn several_origins_are_read_and_shown() {
    let site = |more: &str| {
        format!(
            "[[site]]\nlisten = [\"*:8080\"]\norigin = [\"http://a:1\", \"http://b:2 weight=3 connections=9\"]\n{more}"
        )
    };
    let config = build(&site(
        "check = \"/health\"\nbalance = \"hash\"\neject_after = 0",
    ))
    .unwrap();
    let origins = config.sites[0].origins.as_ref().unwrap();
    assert_eq!((origins.site.as_str(), origins.health.errors), ("a:1", 0));
    assert_eq!(origins.check.as_ref().unwrap().host, "a:1");
    assert_eq!(
        (origins.origins[1].weight, origins.origins[1].connections),
        (3, Some(9))
    );
    let plan = config.plan(&LAPTOP);
    assert!(
        plan.contains("origin http://b:2, weight 3, 9 connections"),
        "{plan}"
    );
    assert!(
        plan.contains("checked by /health every 5 s for status 200"),
        "{plan}"
    );
    // One origin needs no choice, unless it has a limit or checks.
    let one = |more: &str| build(&format!("[[site]]\nlisten = [\"*:1\"]\n{more}")).unwrap();
    assert!(one("origin = \"http://a\"").sites[0].origins.is_none());
    assert!(
        one("origin = \"http://a connections=2\"").sites[0]
            .origins
            .is_some()
    );
    assert!(
        one("origin = \"http://a\"\ncheck = \"/\"").sites[0]
            .origins
            .is_some()
    );
    let public = one(
        "origin = \"http://a\"\ncheck = \"/\"\npreserve_host = true\nhosts = [\"*.b\", \"c.b\"]",
    );
    assert_eq!(
        public.sites[0]
            .origins
            .as_ref()
            .unwrap()
            .check
            .as_ref()
            .unwrap()
            .host,
        "c.b"
    );
    for (origin, expected) in [
        ("[\"http://a\", \"https://b\"]", "all have the same scheme"),
        ("[\"http://a\", \"http://A\"]", "http://a twice"),
        ("[\"http://a weight=0\"]", "not a number from 1 to 1000"),
        ("[]", "the list is empty"),
    ] {
        let found =
            problems(&format!("[[site]]\nlisten = [\"*:1\"]\norigin = {origin}")).join("\n");
        assert!(found.contains(expected), "{origin}: {found}");
    }
}

#[test]
fn a_site_may_redirect_close_and_have_pages_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("503.html");
    std::fs::write(&page, "closed").unwrap();
    let site = |more: &str| format!("[[site]]\nlisten = [\"*:1\"]\norigin = \"http://a\"\n{more}");
    let text = format!(
        "redirect_to_https = \"308\"\nmaintenance = \"origin\"\nerror_pages = [\"503 {}\"]\nfirst_byte_timeout = \"2s\"",
        page.display()
    );
    let config = build(&site(&text)).unwrap();
    let manner = &config.sites[0].manner;
    assert_eq!(
        manner.to_https.map(|to| (to.status, to.port)),
        Some((308, 443))
    );
    assert_eq!(manner.retry_after, Duration::from_secs(300));
    assert_eq!(&*manner.pages[0].body, b"closed");
    assert_eq!(
        config.sites[0].timeouts.first_byte,
        Some(Duration::from_secs(2))
    );
    assert_eq!(config.sites[0].timeouts.connect, None);
    let plan = config.plan(&LAPTOP);
    for words in [
        "redirects to https at port 443 with 308",
        "MAINTENANCE",
        "own pages for 503",
    ] {
        assert!(plan.contains(words), "{plan}");
    }
    for (more, expected) in [
        (
            "error_pages = [\"503 /nowhere/503.html\"]".to_owned(),
            "/nowhere/503.html",
        ),
        (
            "error_pages = [\"503 /x.exe\"]".to_owned(),
            "ends with none of",
        ),
        (
            "error_pages = [\"200 /x.html\"]".to_owned(),
            "it is not a status and a path",
        ),
        (
            format!("error_pages = [\"503 {0}\", \"503 {0}\"]", page.display()),
            "two pages for 503",
        ),
    ] {
        let found = problems(&site(&more)).join("\n");
        assert!(found.contains(expected), "{more}: {found}");
    }
    let found = problems(
        "[[site]]\nlisten_tls = [\"*:1\"]\norigin = \"http://a\"\nredirect_to_https = \"301\"",
    );
    assert!(found.join("\n").contains("has no `listen`"), "{found:?}");
}

#[test]
fn clients_are_named_by_trusted_proxies_only() {
    let site = "proxy_protocol = true\n";
    let found = problems(&sharing(
        &format!("hosts = [\"a\"]\n{site}"),
        "hosts = [\"b\"]",
    ));
    let found = found.join("\n");
    assert!(
        found.contains("the sites one and two on 0.0.0.0:8080 differ in proxy_protocol"),
        "{found}"
    );
    assert!(
        found.contains("nobody is trusted to name clients"),
        "{found}"
    );
    let both = |name: &str| format!("hosts = [\"{name}\"]\n{site}");
    let text = sharing(&both("a"), &both("b"));
    let config = build(&format!(
        "{text}[access]\ntrusted_proxies = [\"10.0.0.0/8\"]"
    ))
    .unwrap();
    assert!(
        config
            .plan(&LAPTOP)
            .contains("trusted proxies name clients by the PROXY protocol")
    );
}
