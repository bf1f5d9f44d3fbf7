//! Compares the index with a scan of the rules one by one, for random rules and requests.

use std::net::{IpAddr, Ipv6Addr};

use foxy_base::{Pattern, Rng};
use ipnet::IpNet;

use crate::*;

const HOSTS: [&str; 14] = [
    // Hosts have labels of eight bytes and longer labels, because the index reads eight bytes at a time.
    "metadata.test",
    "*.metadata-service.test",
    "example.com",
    "*.example.com",
    ".example.com",
    "a.b.example.com",
    "*.b.example.com",
    "ads*.example.com",
    "*track*",
    ".test",
    "x.test",
    "10.0.0.1",
    "w*.test",
    "*",
];
const ASKED: [&str; 15] = [
    "metadata.test",
    "a.metadata-service.test",
    "METADATB.test",
    "example.com",
    "EXAMPLE.com.",
    "www.example.com",
    "a.b.example.com",
    "c.a.b.example.com",
    "ads1.example.com",
    "badexample.com",
    "my.tracker.org",
    "x.test",
    "w.x.test",
    "10.0.0.1",
    "test",
];
const PATHS: [&str; 8] = [
    "/", "/a/*", "/a/b/*", "*.jpg", "/a/b", "/*/c", "*", "/a/b/c/d",
];
const ASKED_PATHS: [&str; 8] = [
    "/", "/a", "/a/", "/a/b", "/a/b/c", "/a/b/c/d", "/x.jpg", "/z/c",
];
const METHODS: [&str; 3] = ["GET", "POST", "PURGE"];
const SITES: [&str; 3] = ["forward", "shop", "blog"];
const USERS: [&str; 4] = ["alice", "bob", "eve", "*"];
const GROUPS: [&str; 3] = ["staff", "guests", "ci"];
const TIMES: [&str; 4] = [
    "mon-fri 08:00-17:00",
    "22:00-06:00",
    "sat,sun",
    "sun 23:00-01:00",
];
const NETS: [&str; 8] = [
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.3/32",
    "192.0.2.0/24",
    "0.0.0.0/0",
    "2001:db8::/32",
    "::/0",
    "255.255.255.255/32",
];
const ADDRESSES: [&str; 7] = [
    "10.1.2.3",
    "10.1.9.9",
    "10.200.0.1",
    "192.0.2.255",
    "255.255.255.255",
    "2001:db8::1",
    "::ffff:10.1.2.3",
];

/// Returns some elements of a list, most often none.
fn some<'a>(rng: &mut Rng, of: &[&'a str]) -> Vec<&'a str> {
    let count = [0, 0, 0, 1, 1, 2][rng.below(6) as usize];
    (0..count).map(|_| one(rng, of)).collect()
}

fn one<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.below(of.len() as u64) as usize]
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn rule(rng: &mut Rng) -> Rule {
    let nets = |rng: &mut Rng| -> Vec<IpNet> {
        some(rng, &NETS)
            .iter()
            .map(|n| n.parse().unwrap())
            .collect()
    };
    let ports = ["80", "443", "8080"];
    Rule {
        name: String::new(),
        clients: nets(rng),
        users: owned(&some(rng, &USERS)),
        groups: owned(&some(rng, &GROUPS)),
        hosts: some(rng, &HOSTS)
            .iter()
            .map(|h| HostPattern::new(h))
            .collect(),
        addresses: nets(rng),
        ports: some(rng, &ports)
            .iter()
            .map(|p| p.parse().unwrap()..=9000)
            .collect(),
        schemes: some(rng, &["0", "1", "2"])
            .iter()
            .map(|s| Scheme::ALL[s.parse::<usize>().unwrap()])
            .collect(),
        methods: owned(&some(rng, &METHODS)),
        paths: some(rng, &PATHS).iter().map(|p| Pattern::new(p)).collect(),
        sites: owned(&some(rng, &SITES)),
        times: some(rng, &TIMES)
            .iter()
            .map(|t| Span::parse(t).unwrap())
            .collect(),
        action: match rng.below(2) {
            0 => Action::Deny,
            _ => Action::Allow,
        },
        text: String::new(),
    }
}

#[test]
fn the_index_judges_as_a_scan_does() {
    let (mut judged, mut waits) = (0, 0);
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let count = [0, 1, 7, 60, 513, 1100][rng.below(6) as usize];
        let rules = RuleSet::new((0..count).map(|_| rule(&mut rng)).collect());
        let principals: Vec<Principal> = (0..4)
            .map(|_| rules.principal(one(&mut rng, &USERS[..3]), &some(&mut rng, &GROUPS)))
            .collect();
        for _ in 0..100 {
            let address = |rng: &mut Rng| -> Option<IpAddr> {
                match rng.below(4) {
                    0 => None,
                    1 => Some(Ipv6Addr::from_bits(u128::from(rng.next_u64()) << 64).into()),
                    _ => Some(one(rng, &ADDRESSES).parse().unwrap()),
                }
            };
            let path = one(&mut rng, &ASKED_PATHS);
            let who = Requester {
                client: address(&mut rng),
                user: match rng.below(3) {
                    0 => User::Nobody,
                    1 => User::Unknown,
                    _ => User::Known(&principals[rng.below(4) as usize]),
                },
                site: one(&mut rng, &SITES),
                minute: rng.below(u64::from(MINUTES)) as u16,
            };
            let request = Request {
                who,
                host: one(&mut rng, &ASKED).as_bytes(),
                address: address(&mut rng),
                port: [80, 443, 8080, 9001][rng.below(4) as usize],
                scheme: Scheme::ALL[rng.below(3) as usize],
                method: one(&mut rng, &METHODS).as_bytes(),
                path: (rng.below(5) > 0).then_some(path.as_bytes()),
            };
            let mut applicable = rules.applicable(&who);
            let found = rules.judge(&mut applicable, &request);
            assert_eq!(
                found,
                rules.judge_slowly(&request),
                "seed {seed}: {request:?}"
            );
            // Judges more requests of the same requester. Each request has a new random path, and may differ
            // in one other property.
            for _ in 0..4 {
                let path = one(&mut rng, &ASKED_PATHS);
                let mut next = Request {
                    path: Some(path.as_bytes()),
                    ..request
                };
                match rng.below(6) {
                    0 => next.host = one(&mut rng, &ASKED).as_bytes(),
                    1 => next.method = one(&mut rng, &METHODS).as_bytes(),
                    2 => next.address = address(&mut rng),
                    3 => next.port = [80, 443, 8080][rng.below(3) as usize],
                    4 => next.scheme = Scheme::ALL[rng.below(3) as usize],
                    _ => {}
                }
                let found = rules.judge(&mut applicable, &next);
                assert_eq!(found, rules.judge_slowly(&next), "seed {seed}: {next:?}");
            }
            judged += usize::from(matches!(found, Judgement::Rule(_)));
            waits += usize::from(matches!(
                found,
                Judgement::NeedsUser(_) | Judgement::NeedsAddress(_)
            ));
        }
    }
    assert!(judged > 3000 && waits > 1000, "{judged} {waits}");
}
