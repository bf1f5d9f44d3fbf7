//! Tests of the choice of a rule, and of its effect on keys.

use super::*;

fn rule(name: &str, host: &str, path: &str) -> Rule {
    let some = |text: &str| {
        let given = !text.is_empty();
        given.then(|| Pattern::new(text)).into_iter().collect()
    };
    Rule {
        name: name.into(),
        hosts: some(host),
        paths: some(path),
        ..Rule::default()
    }
}

fn applied(set: &RuleSet, partition: &str, url: &str) -> (String, String) {
    let mut key = format!("{partition} GET {url}").into_bytes();
    let id = set.apply(partition, &mut key);
    let name = set.get(id).map_or("", |rule| &rule.name).to_owned();
    let url = key.split_off(partition.len() + 5);
    (name, String::from_utf8(url).unwrap())
}

#[test]
fn the_first_rule_that_fits_decides() {
    let mut shop = rule("shop", "", "/a/*");
    shop.sites = vec!["shop".into()];
    let set = RuleSet::new(vec![
        shop,
        rule("images", "*.example.com", "*.png"),
        rule("host", "www.example.com", ""),
        rule("port", "other.test:8080", ""),
        rule("path", "", "/a/*"),
    ]);
    for (partition, url, name) in [
        ("forward", "http://www.example.com/x.png?a=1", "images"),
        ("forward", "http://www.example.com/x", "host"),
        ("forward", "http://example.com/x.png", ""),
        ("forward", "http://other.test:8080/", "port"),
        ("forward", "http://other.test/", ""),
        ("forward", "http://other.test/a/b", "path"),
        ("shop", "http://other.test/a/b", "shop"),
        ("forward", "http://other.test/?/a/b", ""),
    ] {
        assert_eq!(applied(&set, partition, url).0, name, "{partition} {url}");
    }
}

#[test]
fn only_the_query_of_a_key_is_rewritten_and_only_by_its_rule() {
    let mut strip = rule("strip", "e.com", "/s/*");
    strip.query.which = Which::Ignore(vec![Pattern::new("*")]);
    let set = RuleSet::new(vec![strip]);
    for (url, key) in [
        ("http://e.com/s/a?x=1", "http://e.com/s/a"),
        ("http://e.com/t/a?x=1", "http://e.com/t/a?x=1"),
        ("http://f.com/s/a?x=1", "http://f.com/s/a?x=1"),
    ] {
        assert_eq!(applied(&set, "forward", url).1, key);
    }
}

#[test]
fn no_rules_change_nothing() {
    let set = RuleSet::default();
    let (name, key) = applied(&set, "forward", "http://e.com/?b&a");
    assert_eq!((name.as_str(), key.as_str()), ("", "http://e.com/?b&a"));
    assert!(set.is_empty() && set.get(RuleId::default()).is_none());
}

#[test]
fn keys_of_any_bytes_are_taken() {
    let set = RuleSet::new(vec![rule("all", "", "")]);
    for key in [
        &b""[..],
        b"forward",
        b"forward GET http:/",
        b"forward GET http://x",
    ] {
        let mut owned = key.to_vec();
        set.apply("forward", &mut owned);
        assert_eq!(owned, key);
    }
}

#[test]
fn partitions_have_caching_rules_of_their_own() {
    let ttl = |seconds| Config {
        default_ttl_s: Some(seconds),
        ..Config::default()
    };
    let rule = Rule {
        paths: vec![Pattern::new("/a*")],
        config: ttl(1),
        ..Rule::default()
    };
    let partition_config = |partitions: &[&str], base, in_rule| PartitionConfig {
        partitions: partitions.iter().map(|&name| name.to_owned()).collect(),
        config: ttl(base),
        rules: vec![ttl(in_rule)],
    };
    let set = RuleSet::new(vec![rule]);
    let configs = vec![
        partition_config(&["x", "y"], 10, 11),
        partition_config(&[], 20, 21),
    ];
    let set = set.with_partition_configs(configs);
    for (partition, plain, in_rule) in [
        ("forward", None, Some(1)),
        ("y", Some(10), Some(11)),
        ("z", Some(20), Some(21)),
    ] {
        for (path, expected) in [("/b", plain), ("/a", in_rule)] {
            let mut key = format!("{partition} GET http://e.com{path}").into_bytes();
            let id = set.apply(partition, &mut key);
            let ttl = set.config(id).and_then(|config| config.default_ttl_s);
            assert_eq!(ttl, expected, "{partition} {path}");
            assert_eq!(set.get(id).is_some(), path == "/a");
        }
    }
}
