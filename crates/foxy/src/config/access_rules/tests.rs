//! Tests of access rules in a configuration file, and of their decisions.

use super::super::tests::build;

#[test]
fn rules_are_read_in_their_order() {
    let config = build("[[access_rule]]\nhost = [\".Example.com\", \"[::1]\"]\n");
    assert!(config.is_err(), "brackets belong to URLs");
    let config = build(
        "[[access_rule]]\nname = \"a\"\nhost = [\".Example.com\", \"::ffff:10.0.0.1\"]\n\
         time = \"mon-fri 08:00-17:00\"\naction = \"deny\"\n[[access_rule]]\nscheme = [\"connect\"]\n",
    )
    .unwrap();
    let gate = config.proxy.gatekeeper.unwrap();
    let rules = gate.rules().all();
    assert_eq!((&rules[0].name[..], &rules[1].name[..]), ("a", "access-2"));
    let hosts: Vec<String> = rules[0].hosts.iter().map(|host| host.text()).collect();
    assert_eq!(hosts, [".example.com", "10.0.0.1"]);
    assert!(build("").unwrap().proxy.gatekeeper.is_none());
}

#[test]
fn mistakes_are_named() {
    for (text, word) in [
        ("time = \"xyz\"", "not a day"),
        ("host = \"http://a\"", "not a host"),
        ("host = \"a:80\"", "see `port`"),
        ("site = \"shop\"", "no such site"),
        ("user = \"a\"", "nobody can log in"),
        ("action = \"refuse\"", "no such word"),
    ] {
        let found = build(&format!("[[access_rule]]\n{text}\n")).expect_err(text);
        assert!(found[0].contains(word), "{found:?}");
    }
    let found = build("[access]\ntime_zone = \"Nowhere/City\"\n[[access_rule]]\n");
    assert!(found.expect_err("zone")[0].contains("no such time zone"));
}
