//! Tests of the caching settings that apply to a request. They depend on the forward proxy or site, and on
//! the rule.

use foxy_proxy::rules::{Config as Caching, RuleSet};

use super::super::tests::build;

/// Returns a configuration with two sites and a rule for `/r`. The section of the site `open` contains the
/// settings `own`.
fn text(cache: &str, own: &str, rule: &str) -> String {
    format!(
        r#"
listen = "127.0.0.1:3128"
[cache]
{cache}
[[site]]
name = "plain"
listen = "127.0.0.1:8001"
origin = "http://a.test"
[[site]]
name = "open"
listen = "127.0.0.1:8002"
origin = "http://b.test"
{own}
[[rule]]
path = "/r*"
default_ttl = "1m"
{rule}
"#
    )
}

fn found<'c>(base: &'c Caching, rules: &'c RuleSet, partition: &str, path: &str) -> &'c Caching {
    let mut key = format!("{partition} GET http://x.test{path}").into_bytes();
    let id = rules.apply(partition, &mut key);
    rules.config(id).unwrap_or(base)
}

/// Returns the effect of `obey_request` for the forward proxy and for the sites `plain` and `open`. Each has
/// two values: without the rule and with the rule.
fn obeys(cache: &str, own: &str, rule: &str) -> [[bool; 2]; 3] {
    let proxy = build(&text(cache, own, rule)).unwrap().proxy;
    ["forward", "plain", "open"].map(|partition| {
        ["/", "/r"].map(|path| {
            let config = found(&proxy.rules, &proxy.user_rules, partition, path);
            assert_eq!(config.default_ttl_s, (path == "/r").then_some(60));
            config.obey_request
        })
    })
}

#[test]
fn sites_do_not_obey_requests_unless_told() {
    const YES: [bool; 2] = [true; 2];
    const NO: [bool; 2] = [false; 2];
    let (on, off) = ("obey_request = true", "obey_request = false");
    assert_eq!(obeys("", "", ""), [YES, NO, NO]);
    assert_eq!(obeys(on, "", ""), [YES, YES, YES]);
    assert_eq!(obeys(off, "", ""), [NO, NO, NO]);
    assert_eq!(obeys("", on, ""), [YES, NO, YES]);
    assert_eq!(obeys(on, off, ""), [YES, YES, NO]);
    assert_eq!(obeys("", off, ""), [YES, NO, NO]);
    let by_rule = [true, false];
    assert_eq!(obeys("", on, off), [by_rule, NO, by_rule]);
    let by_rule = [false, true];
    assert_eq!(obeys("", "", on), [YES, by_rule, by_rule]);
}

#[test]
fn posts_are_stored_for_sites_alone_unless_told() {
    let posts = |cache: &str| {
        let proxy = build(&text(cache, "", "")).unwrap().proxy;
        let post = |partition: &str, path: &str| {
            found(&proxy.rules, &proxy.user_rules, partition, path).post
        };
        let [forward, site] = ["forward", "plain"].map(|partition| {
            assert_eq!(post(partition, "/"), post(partition, "/r"));
            post(partition, "/")
        });
        (forward, site)
    };
    assert_eq!(posts(""), (false, true));
    assert_eq!(posts("store_post = true"), (true, true));
    assert_eq!(posts("store_post = false"), (false, false));
}

#[test]
fn cookies_are_stored_by_permission_of_the_cache_or_a_rule() {
    let stores = |cache: &str, rule: &str| {
        let proxy = build(&text(cache, "", rule)).unwrap().proxy;
        ["forward", "open"].map(|partition| {
            ["/", "/r"].map(|path| {
                found(&proxy.rules, &proxy.user_rules, partition, path).store_set_cookie
            })
        })
    };
    assert_eq!(stores("", ""), [[false; 2]; 2]);
    assert_eq!(stores("store_set_cookie = true", ""), [[true; 2]; 2]);
    let rule = "store_set_cookie = true";
    assert_eq!(stores("", rule), [[false, true]; 2]);
}
