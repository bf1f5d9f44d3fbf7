//! Seeded fuzzing of every parser and of the decisions made from what they read: usual fields are
//! damaged at random; nothing may panic, and what must hold for any input holds. One seed replays
//! a case; it is in every failure message.

use foxy_base::{FieldBlock, FieldBlockBuilder, Fields as _, Rng};

use crate::conditional::{self, Condition};
use crate::range::{ContentRange, RANGES_LIMIT, Ranges, Resolved};
use crate::testing::{T0, TARGET, after};
use crate::{
    Config, Decision, Digest, Method, Request, RequestDigest, Response, can_store, date, decide,
    etag, freshness, hygiene, invalidation, refresh, stored_fields, text, update, vary,
};

const ROUNDS: u64 = 60_000;

/// Field lines that caches read.
const LINES: [(&str, &str); 34] = [
    ("Cache-Control", "public, max-age=60, s-maxage=\"30\""),
    (
        "Cache-Control",
        "private=\"x-a, set-cookie\", no-cache=\"x-b\"",
    ),
    (
        "Cache-Control",
        "must-understand, no-store, stale-if-error=9",
    ),
    ("Cache-Control", "max-stale, min-fresh=5, only-if-cached"),
    (
        "CDN-Cache-Control",
        "max-age=60;x=1, stale-while-revalidate=5",
    ),
    ("Foxy-Cache-Control", "max-age=?1, no-store"),
    (
        "Surrogate-Control",
        "max-age=60+30;foxy, content=\"ESI/1.0\"",
    ),
    ("Expires", "Sun, 15 Jun 2025 12:10:00 GMT"),
    ("Expires", "0"),
    ("Date", "Sunday, 15-Jun-25 12:00:00 GMT"),
    ("Last-Modified", "Sun Jun  8 09:12:41 2025"),
    ("If-Modified-Since", "Sun, 08 Jun 2025 09:12:41 GMT"),
    ("If-Unmodified-Since", "Sun, 08 Jun 2025 09:12:41 GMT"),
    ("Age", "12, 13"),
    ("ETag", "W/\"a,b\""),
    ("ETag", "\"strong\""),
    ("If-None-Match", "\"strong\", W/\"x\", *"),
    ("If-Match", "*"),
    ("If-Range", "\"strong\""),
    ("Range", "bytes=0-9, 20-, -5"),
    ("Range", "bytes=18446744073709551615-"),
    ("Content-Range", "bytes 0-9/100"),
    ("Content-Range", "bytes */100"),
    ("Content-Length", "100"),
    ("Vary", "Accept-Encoding, accept-language,X-A"),
    ("Vary", "*"),
    ("Accept-Encoding", "gzip;q=0.5, br;q=1.000, *;q=0"),
    ("Accept-Language", "de-AT, en;q=0.8"),
    ("Content-Language", "de-AT"),
    ("Cookie", "a=1; b=\"2\"; a=3"),
    ("Set-Cookie", "a=1; Path=/"),
    ("Location", "//Example.COM:80/a/../b?c#d"),
    ("Connection", "close, x-a, , keep-alive"),
    ("Pragma", "no-cache, x=\"\\\"\""),
];

/// Pieces that matter to parsers.
const WORDS: [&str; 26] = [
    "\"",
    "\\",
    ",",
    ";",
    "=",
    " ",
    "\t",
    "-",
    "--",
    "*",
    "/",
    "0",
    "99999999999999999999",
    "2147483649",
    "-1",
    "1.5",
    "q=",
    "W/",
    "bytes=",
    "max-age=",
    "no-store",
    "\u{e9}",
    "(",
    "?1",
    ":",
    "GMT",
];

fn damaged(rng: &mut Rng, value: &str) -> Vec<u8> {
    let mut text = value.as_bytes().to_vec();
    for _ in 0..rng.below(4) {
        let at = rng.below(text.len() as u64 + 1) as usize;
        let end = (at + rng.below(6) as usize).min(text.len());
        let word = WORDS[rng.below(WORDS.len() as u64) as usize].bytes();
        match rng.below(5) {
            0 if at < text.len() => text[at] = rng.next_u64() as u8,
            1 => drop(text.drain(at..end)),
            2 => drop(text.splice(at..end, word)),
            3 => {
                let copy = text[at..end].to_vec();
                drop(text.splice(at..at, copy));
            }
            _ => drop(text.splice(at..at, word)),
        }
    }
    // What a codec lets through is one line.
    text.retain(|b| !matches!(b, b'\r' | b'\n' | 0));
    text
}

fn some_fields(rng: &mut Rng) -> FieldBlock {
    let mut builder = FieldBlockBuilder::default();
    for _ in 0..rng.below(9) {
        let (name, value) = LINES[rng.below(LINES.len() as u64) as usize];
        builder.push(name.as_bytes(), &damaged(rng, value)).unwrap();
    }
    builder.finish()
}

fn config(rng: &mut Rng) -> Config {
    Config {
        surrogate_control: rng.chance(0.5),
        default_ttl_s: rng.chance(0.3).then_some(5),
        ttl_min_s: rng.chance(0.2).then_some(10),
        ttl_max_s: rng.chance(0.2).then_some(20),
        ..Config::default()
    }
}

/// A request, an answer to it, and all that is decided about them.
fn exchange(rng: &mut Rng) -> bool {
    let (request, response, config) = (some_fields(rng), some_fields(rng), config(rng));
    let method: &[u8] = [&b"GET"[..], b"HEAD", b"POST", b"get"][rng.below(4) as usize];
    let status = [200, 206, 304, 404, 416, 503, 599][rng.below(7) as usize];
    let digest = RequestDigest::new(method, &request);
    let asked = Request {
        digest: &digest,
        target: TARGET,
        fields: &request,
    };
    let answer = Response {
        status,
        fields: &response,
        request_time: T0,
        response_time: after(i64::try_from(rng.below(9)).unwrap_or(0)),
    };
    let _ = invalidation::invalidated_by(digest.method, &TARGET, status, &response);
    let Ok(plan) = can_store(&asked, &answer, &config) else {
        return false;
    };
    let stored = stored_fields(&response, &plan).expect("what came fits");
    for i in 0..stored.count() {
        assert!(!hygiene::is_hop_by_hop(stored.field(i).0));
    }
    judged(&plan.digest, &digest, &stored, &request, &config);
    let later = some_fields(rng);
    let _ = update::updated_fields(&stored, &later, rng.chance(0.5));
    let validation = Response {
        status: 304,
        fields: &later,
        ..answer
    };
    let _ = refresh(&asked, &stored, &plan.digest, &validation, &config);
    true
}

/// What holds for whatever is stored.
fn judged(
    stored: &Digest,
    asked: &RequestDigest,
    fields: &FieldBlock,
    request: &FieldBlock,
    config: &Config,
) {
    assert_eq!(Digest::decode(&stored.encode()), Some(*stored));
    let (mut age, mut ttl) = (0, i64::MAX);
    for secs in [10, 20, 100, 1 << 33] {
        let now = after(secs);
        let next = freshness::age(stored, now);
        assert!(next >= age, "age goes back");
        assert!(freshness::ttl_ms(stored, now) <= ttl, "it gets younger");
        (age, ttl) = (next, freshness::ttl_ms(stored, now));
        if let Decision::Fresh { ttl, .. } = decide(asked, stored, now, config) {
            assert!(ttl >= 0, "fresh with a lifetime over");
        }
    }
    let get = asked.method == Method::Get;
    let condition = conditional::evaluate(request, fields, stored, after(10));
    if get && condition == Condition::NotModified {
        assert!(asked.conditional, "304 to a request without a condition");
    }
}

/// Every parser of one value.
fn values(rng: &mut Rng) {
    let (_, value) = LINES[rng.below(LINES.len() as u64) as usize];
    let line = damaged(rng, value);
    let members: usize = text::members(&line).map(<[u8]>::len).sum();
    assert!(members <= line.len());
    let _ = text::directives(&line).filter(|d| d.is("max-age")).count();
    let _ = etag::list(&line).filter(etag::ETag::is_strong).count();
    if let Some(time) = date::parse(&line, T0) {
        assert_eq!(date::parse(&date::format(time), T0), Some(time));
    }
    if let Some(range) = ContentRange::parse(&line) {
        let mut out = Vec::new();
        range.write(&mut out);
        assert_eq!(ContentRange::parse(&out), Some(range));
    }
    if let Some(ranges) = Ranges::parse(&line) {
        assert!(ranges.specs().len() <= RANGES_LIMIT);
        let length = rng.below(1000);
        let parts = match ranges.resolve(length, 8) {
            Resolved::One(one) => vec![one],
            Resolved::Many(many) => many,
            Resolved::Unsatisfiable | Resolved::Whole => Vec::new(),
        };
        assert!(parts.iter().all(|part| part.end <= length));
    }
}

/// A request selects the variant that was made for it.
fn variants(rng: &mut Rng) {
    let (request, response) = (some_fields(rng), some_fields(rng));
    if let vary::Vary::List(list) = vary::of(&response) {
        let mut own = Vec::new();
        vary::selecting_values(list.as_bytes(), &request, &mut own);
        let own = vary::matches(list.as_bytes(), &own, &request);
        assert!(own, "it does not select its own variant");
    }
    // Values from a disk may be anything.
    let _ = vary::matches(&damaged(rng, "a,b"), &damaged(rng, "a=1"), &request);
    let mut bytes = [0; crate::DIGEST_BYTES];
    bytes.iter_mut().for_each(|b| *b = rng.next_u64() as u8);
    if let Some(digest) = Digest::decode(&bytes) {
        let _ = freshness::age(&digest, T0);
    }
}

#[test]
fn damaged_fields_never_break_a_promise() {
    let mut stored = 0;
    for seed in 0..ROUNDS {
        let case = std::panic::catch_unwind(|| {
            let mut rng = Rng::new(seed);
            values(&mut rng);
            variants(&mut rng);
            exchange(&mut rng)
        });
        stored += u64::from(case.unwrap_or_else(|_| panic!("seed {seed}")));
    }
    // Both must be frequent, or the test looks at one side alone.
    assert!(
        (ROUNDS / 50..ROUNDS / 2).contains(&stored),
        "{stored} stored"
    );
}
