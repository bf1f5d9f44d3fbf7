//! Tests of sites as users write them: certificates, shared listeners, origins, error pages, and clients that
//! certificates name.

use std::time::Duration;

use super::{LAPTOP, build, problems};
use crate::config::*;

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

/// Returns the text of two sites on one address. `first` and `second` are further settings of the two sites.
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
            "prefix of paths",
        ),
        (
            "hosts = [\"a.test\"]\npaths = [\"/a/../b\"]",
            "hosts = [\"b.test\"]",
            "prefix of paths",
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
    let origins = &config.sites[0].origins;
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
    // A single origin with a limit has a separate line. A single origin without a limit is only in the line
    // of the site.
    let one = |more: &str| build(&format!("[[site]]\nlisten = [\"*:1\"]\n{more}")).unwrap();
    for (origin, lines) in [("http://a", 0), ("http://a connections=2", 1)] {
        let config = one(&format!("origin = \"{origin}\""));
        assert_eq!(config.sites[0].origins.origins.len(), 1);
        let plan = config.plan(&LAPTOP);
        assert_eq!(plan.matches("  origin http://a").count(), lines, "{plan}");
    }
    let public = one(
        "origin = \"http://a\"\ncheck = \"/\"\npreserve_host = true\nhosts = [\"*.b\", \"c.b\"]",
    );
    assert_eq!(public.sites[0].origins.check.as_ref().unwrap().host, "c.b");
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
    let responses = &config.sites[0].local_responses;
    assert_eq!(
        responses.to_https.map(|to| (to.status, to.port)),
        Some((308, 443))
    );
    assert_eq!(responses.retry_after, Duration::from_secs(300));
    assert_eq!(&*responses.pages[0].body, b"closed");
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

#[test]
fn build_caches_have_writers_who_can_log_in_and_no_origin() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, format!("{} user=ci\n", "ab".repeat(32))).unwrap();
    let login = format!("[login]\ntoken_file = {tokens:?}\nat = \"build\"\n");
    let site = |rest: &str| {
        format!("[[site]]\nkind = \"objects\"\nname = \"build\"\nlisten = \":1\"\n{rest}\n")
    };
    let whole =
        site("write = [\"ci\", \"@staff\"]\nwrite_ac = \"main\"\nobject_max_size = \"2MiB\"");
    let config = build(&format!("{whole}{login}")).unwrap();
    let own = config.sites[0].objects.as_ref().unwrap();
    assert_eq!(own.size_max, 2 << 20);
    assert_eq!(
        (&own.writers.users[..], &own.writers.groups[..]),
        (&["ci".to_owned()][..], &["staff".to_owned()][..])
    );
    assert!(!own.writers.all && own.action_writers.users == ["main"]);
    // By default, a build cache is only for the clients of the proxy, not for all clients.
    assert_eq!(
        config.sites[0].allow_clients.as_ref(),
        Some(&config.proxy.access.allow_clients)
    );
    let plan = config.plan(&ThisMachine);
    assert!(
        plan.contains("objects up to 2MiB, stored by ci, @staff; results of actions (ac) by main"),
        "{plan}"
    );
    let open = site("write = \"*\"\nallow_clients = \"all\"");
    let open = build(&format!("{open}{login}")).unwrap();
    assert!(open.sites[0].objects.as_ref().unwrap().writers.all);
    assert_ne!(
        open.sites[0].allow_clients.as_ref(),
        Some(&open.proxy.access.allow_clients)
    );
    for (text, part) in [
        (format!("{}{login}", site("")), "nobody may store objects"),
        (
            site("write = \"ci\""),
            "nobody can log in at the site `build`",
        ),
        (
            format!(
                "{}{}",
                site("write = \"ci\""),
                login.replace("at = \"build\"", "")
            ),
            "nobody can log in",
        ),
        (
            format!("{}{login}", site("write = \"ci\"\norigin = \"http://a\"")),
            "site.origin does not go with a site of kind = \"objects\"",
        ),
        (
            format!("{}{login}", whole.replace("name = \"build\"\n", "")),
            "site.name is missing",
        ),
        (
            "[[site]]\nlisten = \":1\"\norigin = \"http://a\"\nwrite = \"ci\"\n".to_owned(),
            "site.write does not go with a site of kind = \"origin\"",
        ),
    ] {
        let problems = build(&text).unwrap_err();
        let said: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(said.join(" ").contains(part), "{text}: {said:?}");
    }
}
