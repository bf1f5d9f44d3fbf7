//! Cases of `foxy-micro` in which access rules decide about requests. There are 500 rules, with every kind of
//! condition. Most requests match only the last rule, so a search that ends at the first matching rule saves
//! no work.

use std::hint::black_box;
use std::net::IpAddr;

use foxy_access::{
    Action, HostPattern, Judgement, Request, Requester, Rule, RuleSet, Scheme, Span, User,
};
use foxy_base::Pattern;
use ipnet::IpNet;

const RULES: u8 = 250;

/// Number of the rule that decides if no other rule matches.
const LAST: usize = RULES as usize * 2 - 1;

/// Makes requests for one host.
pub(crate) fn rules(count: u64) -> Option<()> {
    judge(count, &[("www.example.com", LAST)])
}

/// Makes requests for two hosts in turn.
pub(crate) fn rules_of_hosts(count: u64) -> Option<()> {
    judge(
        count,
        &[("www.example.com", LAST), ("img.example.com", LAST)],
    )
}

/// Makes requests for hosts that match different rules. A connection remembers the judgements about four
/// classes of hosts (the same rules fit all hosts of a class). These hosts belong to more classes.
pub(crate) fn rules_of_many_hosts(count: u64) -> Option<()> {
    let hosts = [
        ("a.bad240.example.com", 480),
        ("a.bad241.example.com", 482),
        ("www.example.com", LAST),
        ("a.bad242.example.com", 484),
        ("a.bad243.example.com", 486),
        ("fonts.stylesheets.test", LAST),
        ("a.bad244.example.com", 488),
        ("a.bad245.example.com", 490),
    ];
    judge(count, &hosts)
}

/// Makes requests for a host that has rules with paths. The requests match none of these paths.
pub(crate) fn rules_of_paths(count: u64) -> Option<()> {
    judge(count, &[("intranet.example.com", LAST)])
}

/// Lets the rules decide about `count` requests for these hosts, in turn. Each host has the number of the
/// rule that must decide.
fn judge(count: u64, hosts: &[(&'static str, usize)]) -> Option<()> {
    let set = set()?;
    let staff = set.principal("alice", &["staff"]);
    let who = Requester {
        client: Some(IpAddr::from([10, 1, 2, 3])),
        user: User::Known(&staff),
        site: "forward",
        minute: 700,
    };
    let mut applicable = set.applicable(&who);
    let request = |(host, rule): &(&'static str, usize)| {
        let request = Request {
            who,
            host: host.as_bytes(),
            address: Some(IpAddr::from([203, 0, 113, 9])),
            port: 80,
            scheme: Scheme::Http,
            method: b"GET",
            path: Some(b"/images/logo.png"),
        };
        (request, *rule)
    };
    let requests: Vec<_> = hosts.iter().map(request).collect();
    for (request, rule) in requests.iter().cycle().take(count as usize) {
        let found = set.judge(black_box(&mut applicable), black_box(request));
        if found != Judgement::Rule(*rule) {
            return None;
        }
    }
    Some(())
}

fn set() -> Option<RuleSet> {
    let mut rules = Vec::new();
    for i in 0..RULES {
        let net: IpNet = format!("172.16.{i}.0/24").parse().ok()?;
        let deny = Rule {
            hosts: vec![HostPattern::new(&format!("*.bad{i}.example.com"))],
            action: Action::Deny,
            ..Rule::default()
        };
        rules.push(deny.clone());
        rules.push(match i % 6 {
            0 => Rule {
                clients: vec![net],
                ..deny
            },
            1 => Rule {
                addresses: vec![net],
                hosts: Vec::new(),
                ..deny
            },
            2 => Rule {
                hosts: vec![HostPattern::new("intranet.example.com")],
                paths: vec![Pattern::new(&format!("/private{i}/*"))],
                ..deny
            },
            3 => Rule {
                clients: vec!["10.0.0.0/8".parse().ok()?],
                groups: vec![format!("group{i}")],
                ..Rule::default()
            },
            4 => Rule {
                methods: vec!["POST".to_owned()],
                ports: vec![8000 + u16::from(i)..=9000],
                sites: vec!["forward".to_owned()],
                ..deny
            },
            _ => Rule {
                schemes: vec![Scheme::Connect],
                times: vec![Span::parse("sat,sun 08:00-18:00").ok()?],
                hosts: Vec::new(),
                ..deny
            },
        });
    }
    rules.pop();
    rules.push(Rule::default());
    Some(RuleSet::new(rules))
}
