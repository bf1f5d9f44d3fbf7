//! `foxy-micro CASE COUNT` runs one small piece of Foxy's frequently executed code COUNT times.
//!
//! The program itself measures nothing. `cargo xtask bench micro` runs it under callgrind with two values of
//! COUNT, and divides the difference of the executed instructions by the difference of these values. So the
//! result does not contain the instructions of the program's start and of the preparation of the case.

mod access;

use std::hint::black_box;
use std::process::ExitCode;

use foxy_base::{KeyHash, Rng, WallTime};
use foxy_format::{RecordHead, RecordPlace, RecordSections, encode_record, parse_record};
use foxy_http_rules::invalidation::TargetUri;
use foxy_http_rules::rules::{Pattern, Rule};
use foxy_http_rules::{
    CachingFacts, Config, Decision, Request, RequestFacts, Response, RuleSet, can_store,
    conditional, decide, vary,
};
use foxy_http1::{FieldSlots, HeadScanner, Limits, Method, RequestHead, ResponseHead};
use foxy_index::{Address, Entry, Index, SizeClass};

const REQUEST: &[u8] = b"GET http://www.example.com/images/logo.png?v=12 HTTP/1.1\r\n\
    Host: www.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n\
    Accept: image/avif,image/webp,*/*;q=0.8\r\nAccept-Encoding: gzip, deflate, br\r\n\
    Connection: keep-alive\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
    Server: x\r\nContent-Type: image/png\r\nContent-Length: 4096\r\n\
    Cache-Control: max-age=3600\r\nETag: \"0123456789abcdef\"\r\n\
    Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\nConnection: keep-alive\r\n\r\n";
/// Number of entries in the measured index. If COUNT is greater, entries are used several times.
const ENTRIES: u64 = 200_000;

type Case = (&'static str, fn(u64) -> Option<()>);

const CASES: [Case; 15] = [
    ("request-head", request_head),
    ("response-head", response_head),
    ("decide", decide_hit),
    ("hit-rules", |count| {
        rules_of_a_hit(count, RESPONSE, &RuleSet::default())
    }),
    ("hit-rules-all", rules_of_a_varying_hit),
    ("can-store", decide_storing),
    ("index-lookup", index_lookup),
    ("index-lookup-secret", index_lookup_secret),
    ("index-insert", index_insert),
    ("record-encode", record_encode),
    ("record-parse", record_parse),
    ("access-rules", access::rules),
    ("access-rules-hosts", access::rules_of_hosts),
    ("access-rules-many", access::rules_of_many_hosts),
    ("access-rules-paths", access::rules_of_paths),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let found = args
        .first()
        .and_then(|name| CASES.iter().find(|(n, _)| n == name));
    let count = args.get(1).and_then(|n| n.parse().ok());
    let (Some((_, run)), Some(count)) = (found, count) else {
        let names: Vec<_> = CASES.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: foxy-micro CASE COUNT; cases: {}", names.join(", "));
        return ExitCode::from(2);
    };
    match run(count) {
        Some(()) => ExitCode::SUCCESS,
        None => {
            eprintln!("the case went another way than it should");
            ExitCode::FAILURE
        }
    }
}

fn request_head(count: u64) -> Option<()> {
    let (limits, mut scanner, mut slots) = parser();
    for _ in 0..count {
        let head = RequestHead::parse(black_box(REQUEST), &mut scanner, &mut slots, &limits);
        black_box(head.ok()??.persistent());
    }
    Some(())
}

fn response_head(count: u64) -> Option<()> {
    let (limits, mut scanner, mut slots) = parser();
    for _ in 0..count {
        let head = ResponseHead::parse(black_box(RESPONSE), &mut scanner, &mut slots, &limits);
        black_box(head.ok()??.persistent(Method::Get));
    }
    Some(())
}

fn parser() -> (Limits, HeadScanner, FieldSlots) {
    (Limits::default(), HeadScanner::new(), FieldSlots::new())
}

/// Collects the facts about a request and decides about a fresh hit.
fn decide_hit(count: u64) -> Option<()> {
    let (limits, mut scanner, mut slots) = parser();
    let head = RequestHead::parse(REQUEST, &mut scanner, &mut slots, &limits).ok()??;
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    let answer = ResponseHead::parse(RESPONSE, &mut scanner, &mut slots, &limits).ok()??;
    let config = Config::default();
    let plan = plan(&head, &answer, &config)?;
    for _ in 0..count {
        let facts = RequestFacts::new(black_box(b"GET"), black_box(&head));
        black_box(decide(
            &facts,
            black_box(&plan),
            WallTime::from_secs(60),
            &config,
        ));
    }
    Some(())
}

/// Runs all caching rules for a memory hit, in the same order as the proxy. The other work of the proxy for a
/// hit is left out.
fn rules_of_a_hit(count: u64, response: &[u8], rules: &RuleSet) -> Option<()> {
    let (limits, mut scanner, mut slots) = parser();
    let head = RequestHead::parse(REQUEST, &mut scanner, &mut slots, &limits).ok()??;
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    let answer = ResponseHead::parse(response, &mut scanner, &mut slots, &limits).ok()??;
    let config = Config::default();
    let stored = plan(&head, &answer, &config)?.encode();
    let mut values = Vec::new();
    let list = match vary::of(&answer) {
        vary::Vary::List(list) => list.as_bytes().to_vec(),
        _ => Vec::new(),
    };
    vary::selecting_values(&list, &head, &mut values);
    let mut key = b"forward GET http://www.example.com/images/logo.png?v=12".to_vec();
    for _ in 0..count {
        let rule = rules.apply(black_box("forward"), &mut key);
        if rules.bypasses(rule, black_box(&head)) {
            return None;
        }
        if !list.is_empty() && !vary::matches(black_box(&list), &values, &head) {
            return None;
        }
        let facts = RequestFacts::new(black_box(b"GET"), &head);
        let stored = CachingFacts::decode(black_box(&stored))?;
        let now = WallTime::from_secs(60);
        let Decision::Fresh { age, ttl } = decide(&facts, &stored, now, &config) else {
            return None;
        };
        if facts.conditional {
            black_box(conditional::evaluate(&head, &answer, &stored, now));
        }
        black_box((age, ttl));
    }
    Some(())
}

/// As [`rules_of_a_hit`], for a response that varies by two fields, and with eight rules of the
/// operator. Only the last of these rules matches.
fn rules_of_a_varying_hit(count: u64) -> Option<()> {
    let vary = b"\r\nVary: Accept-Encoding, User-Agent\r\n\r\n";
    let response = [RESPONSE.strip_suffix(b"\r\n\r\n")?, vary].concat();
    let path = |n: u32| match n {
        7 => "/images/*".to_owned(),
        n => format!("/other-{n}/*"),
    };
    let rule = |n| Rule {
        name: format!("rule-{n}"),
        paths: vec![Pattern::new(&path(n))],
        ..Rule::default()
    };
    rules_of_a_hit(count, &response, &RuleSet::new((0..8).map(rule).collect()))
}

/// Decides whether an answer may be stored. The proxy does this when the answer's head arrives.
fn decide_storing(count: u64) -> Option<()> {
    let (limits, mut scanner, mut slots) = parser();
    let head = RequestHead::parse(REQUEST, &mut scanner, &mut slots, &limits).ok()??;
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    let answer = ResponseHead::parse(RESPONSE, &mut scanner, &mut slots, &limits).ok()??;
    let config = Config::default();
    for _ in 0..count {
        black_box(plan(black_box(&head), black_box(&answer), &config)?);
    }
    Some(())
}

fn plan(
    head: &RequestHead<'_>,
    answer: &ResponseHead<'_>,
    config: &Config,
) -> Option<CachingFacts> {
    let facts = RequestFacts::new(b"GET", head);
    let request = Request {
        facts: &facts,
        target: TargetUri {
            scheme: "http",
            authority: "www.example.com",
            path: "/images/logo.png?v=12",
        },
        fields: head,
    };
    let response = Response {
        status: 200,
        fields: answer,
        request_time: WallTime::from_secs(1),
        response_time: WallTime::from_secs(2),
    };
    can_store(&request, &response, config)
        .ok()
        .map(|plan| plan.facts)
}

fn filled(secret: u64) -> Option<(Index, Vec<KeyHash>)> {
    let (index, mut rng) = (Index::new().with_secret(secret), Rng::new(1));
    let hashes: Vec<_> = (0..ENTRIES)
        .map(|_| KeyHash(u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())))
        .collect();
    for (n, hash) in hashes.iter().enumerate() {
        let _ = index.insert(*hash, entry(n as u64)?);
    }
    Some((index, hashes))
}

fn entry(n: u64) -> Option<Entry> {
    Some(Entry::new(
        Address::from_sectors(n * 17)?,
        SizeClass::for_bytes(6000)?,
    ))
}

fn index_lookup(count: u64) -> Option<()> {
    lookups(0, count)
}

/// Makes lookups in an index whose buckets depend on a secret, as in the product.
fn index_lookup_secret(count: u64) -> Option<()> {
    lookups(0x9e37_79b9_7f4a_7c15, count)
}

fn lookups(secret: u64, count: u64) -> Option<()> {
    let (index, hashes) = filled(secret)?;
    for hash in hashes.iter().cycle().take(usize::try_from(count).ok()?) {
        black_box(index.lookup(black_box(*hash)).first()?);
    }
    Some(())
}

/// Each insert replaces an existing entry, so that the index does not grow.
fn index_insert(count: u64) -> Option<()> {
    let (index, hashes) = filled(0)?;
    for (n, hash) in hashes
        .iter()
        .cycle()
        .take(usize::try_from(count).ok()?)
        .enumerate()
    {
        let _ = black_box(index.insert(black_box(*hash), entry(n as u64)?));
    }
    Some(())
}

/// A record with a body of 8 KB.
fn record<'a>(body: &'a [u8]) -> (RecordHead, RecordSections<'a>) {
    let head = RecordHead {
        status: 200,
        version: 7,
        total_length: body.len() as u64,
        ..RecordHead::default()
    };
    let sections = RecordSections {
        key: b"fG http://www.example.com/images/logo.png?v=12",
        fields: RESPONSE,
        body,
        ..RecordSections::default()
    };
    (head, sections)
}

fn record_encode(count: u64) -> Option<()> {
    let (body, mut out) = (vec![7; 8000], vec![0; 16 << 10]);
    let (head, sections) = record(&body);
    for _ in 0..count {
        black_box(encode_record(black_box(&head), &sections, &mut out)?);
    }
    Some(())
}

fn record_parse(count: u64) -> Option<()> {
    let (body, mut out) = (vec![7; 8000], vec![0; 16 << 10]);
    let (head, sections) = record(&body);
    let (length, _) = encode_record(&head, &sections, &mut out)?;
    let place = RecordPlace::default();
    for _ in 0..count {
        black_box(parse_record(black_box(&out[..length]), &place).ok()?.0);
    }
    Some(())
}
