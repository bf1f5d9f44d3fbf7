//! Rules are compared with requests: selected cases, and a comparison of the index with a scan of the rules.

mod property;

use std::net::IpAddr;

use foxy_base::Pattern;

use crate::*;

fn host(texts: &[&str]) -> Vec<HostPattern> {
    texts.iter().map(|text| HostPattern::new(text)).collect()
}

fn ask<'a>() -> Request<'a> {
    Request {
        who: Requester {
            client: Some(IpAddr::from([10, 1, 2, 3])),
            user: User::Nobody,
            site: "forward",
            minute: 0,
        },
        host: b"www.example.com",
        address: None,
        port: 80,
        scheme: Scheme::Http,
        method: b"GET",
        path: Some(b"/"),
    }
}

fn judge(rules: &RuleSet, request: &Request<'_>) -> Judgement {
    rules.judge(&mut rules.applicable(&request.who), request)
}

fn of(user: User<'_>) -> Requester<'_> {
    Requester { user, ..ask().who }
}

#[test]
fn the_first_rule_that_fits_decides() {
    let rules = RuleSet::new(vec![
        Rule {
            hosts: host(&["*.example.com"]),
            paths: vec![Pattern::new("/public/*")],
            ..Rule::default()
        },
        Rule {
            hosts: host(&[".example.com"]),
            action: Action::Deny,
            ..Rule::default()
        },
        Rule::default(),
    ]);
    for (host, path, rule) in [
        ("www.example.com", "/public/x", 0),
        ("www.example.com", "/private", 1),
        ("example.com", "/public/x", 1),
        ("example.com.", "/", 1),
        ("EXAMPLE.COM", "/", 1),
        ("example.org", "/public/x", 2),
    ] {
        let request = Request {
            host: host.as_bytes(),
            path: Some(path.as_bytes()),
            ..ask()
        };
        assert_eq!(
            judge(&rules, &request),
            Judgement::Rule(rule),
            "{host}{path}"
        );
    }
    assert_eq!(judge(&RuleSet::new(Vec::new()), &ask()), Judgement::None);
}

#[test]
fn what_is_not_known_is_asked_for_when_it_decides() {
    let rules = RuleSet::new(vec![
        Rule {
            hosts: host(&["secret.test"]),
            groups: vec!["staff".to_owned()],
            ..Rule::default()
        },
        Rule {
            addresses: vec!["10.0.0.0/8".parse().unwrap()],
            action: Action::Deny,
            ..Rule::default()
        },
        Rule::default(),
    ]);
    let secret = |user| Request {
        host: b"secret.test",
        who: of(user),
        ..ask()
    };
    let judge = |request| judge(&rules, &request);
    assert_eq!(judge(secret(User::Unknown)), Judgement::NeedsUser(0));
    assert_eq!(judge(secret(User::Nobody)), Judgement::NeedsAddress(1));
    let (staff, guest) = (
        rules.principal("a", &["staff"]),
        rules.principal("b", &["guests"]),
    );
    assert_eq!(judge(secret(User::Known(&staff))), Judgement::Rule(0));
    assert_eq!(
        judge(secret(User::Known(&guest))),
        Judgement::NeedsAddress(1)
    );
    // If the decision does not depend on the user, no login is needed.
    let other = Request {
        who: of(User::Unknown),
        ..ask()
    };
    assert_eq!(judge(other), Judgement::NeedsAddress(1));
    for (address, rule) in [("10.9.9.9", 1), ("::ffff:10.9.9.9", 1), ("192.0.2.1", 2)] {
        let address = Some(address.parse().unwrap());
        let request = Request { address, ..other };
        assert_eq!(judge(request), Judgement::Rule(rule), "{address:?}");
    }
}

#[test]
fn unknown_clients_fit_what_denies_some() {
    let net = |text: &str| vec![text.parse().unwrap()];
    let rules = RuleSet::new(vec![
        Rule {
            clients: net("10.0.0.0/8"),
            ..Rule::default()
        },
        Rule {
            clients: net("192.0.2.0/24"),
            action: Action::Deny,
            ..Rule::default()
        },
    ]);
    let of = |client: Option<&str>| {
        let client = client.map(|text| text.parse().unwrap());
        let who = Requester {
            client,
            ..ask().who
        };
        judge(&rules, &Request { who, ..ask() })
    };
    assert_eq!(of(Some("10.0.0.1")), Judgement::Rule(0));
    assert_eq!(of(Some("::ffff:10.0.0.1")), Judgement::Rule(0));
    assert_eq!(of(Some("192.0.2.7")), Judgement::Rule(1));
    assert_eq!(of(Some("2001:db8::1")), Judgement::None);
    assert_eq!(of(None), Judgement::Rule(1));
}

#[test]
fn answers_from_named_addresses_are_kept_apart_where_clients_differ() {
    let deny = Rule {
        addresses: vec!["10.0.0.0/8".parse().unwrap()],
        action: Action::Deny,
        ..Rule::default()
    };
    let admin = Rule {
        users: vec!["admin".to_owned()],
        ..Rule::default()
    };
    let alike = RuleSet::new(vec![deny.clone()]);
    let apart = RuleSet::new(vec![admin, deny]);
    let (inside, outside) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([11, 0, 0, 1]));
    assert!(!alike.keeps_apart(inside));
    assert!(apart.keeps_apart(inside) && !apart.keeps_apart(outside));
    assert!(apart.keeps_apart("::ffff:10.0.0.1".parse().unwrap()));
}

#[test]
fn an_explanation_names_the_condition() {
    let rules = RuleSet::new(vec![
        Rule {
            ports: vec![443..=443],
            ..Rule::default()
        },
        Rule {
            times: vec![Span::parse("mon 00:00-01:00").unwrap()],
            ..Rule::default()
        },
        Rule::default(),
    ]);
    let steps = rules.explain(&ask());
    let why: Vec<Why> = steps.iter().map(|step| step.why).collect();
    assert_eq!(why, [Why::Not(Condition::Port), Why::Fits]);
}
