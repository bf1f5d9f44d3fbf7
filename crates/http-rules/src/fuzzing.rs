//! Invariants that hold for any fields, as functions for fuzzers and seeded tests. Each function panics if an
//! invariant is violated.

use foxy_base::{FieldBlock, FieldBlockBuilder, Fields as _, WallTime};

use crate::conditional::{self, Condition};
use crate::invalidation::TargetUri;
use crate::{
    CachingFacts, Config, Decision, Method, Request, RequestFacts, Response, can_store, decide,
    freshness, invalidation, refresh, stored_fields, update, vary,
};

/// Lines of fields that caches use.
pub(crate) const LINES: [(&str, &str); 34] = [
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

/// A request, its answer, and the fields of a later answer.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) method: &'static [u8],
    pub(crate) status: u16,
    pub(crate) request: FieldBlock,
    pub(crate) response: FieldBlock,
    pub(crate) later: FieldBlock,
    pub(crate) config: Config,
    /// Time between request and response in seconds.
    pub(crate) delay: i64,
}

const METHODS: [&[u8]; 4] = [b"GET", b"HEAD", b"POST", b"get"];
const STATUSES: [u16; 7] = [200, 206, 304, 404, 416, 503, 599];

/// Sun, 15 Jun 2025 12:00:00 GMT.
const T0: WallTime = WallTime::from_secs(1_749_988_800);

const fn after(secs: i64) -> WallTime {
    WallTime(T0.0 + secs * 1000)
}

const TARGET: TargetUri<'static> = TargetUri {
    scheme: "http",
    authority: "example.com",
    path: "/a/b?c=d",
};

/// Makes all decisions about the exchange that `data` encodes. `data` has one byte each for method, status
/// and settings, and then lines with a field number and a value. Empty lines separate request, answer and
/// later answer. Returns true if the answer is stored.
pub fn caching_fields(data: &[u8]) -> bool {
    let [method, status, settings, fields @ ..] = data else {
        return false;
    };
    let some = |bit: u8, seconds| (settings & bit != 0).then_some(seconds);
    let mut lines = fields.split(|b| *b == b'\n');
    let exchange = Exchange {
        method: METHODS[usize::from(*method) % METHODS.len()],
        status: STATUSES[usize::from(*status) % STATUSES.len()],
        request: block(&mut lines),
        response: block(&mut lines),
        later: block(&mut lines),
        config: Config {
            surrogate_control: settings & 1 != 0,
            default_ttl_s: some(2, 5),
            ttl_min_s: some(4, 10),
            ttl_max_s: some(8, 20),
            ..Config::default()
        },
        delay: i64::from(settings >> 4) % 9,
    };
    variants(&exchange.request, &exchange.response);
    check(&exchange)
}

/// Reads the fields up to an empty line.
fn block<'a>(lines: &mut impl Iterator<Item = &'a [u8]>) -> FieldBlock {
    let mut builder = FieldBlockBuilder::default();
    while let Some([which, value @ ..]) = lines.next() {
        let (name, _) = LINES[usize::from(*which) % LINES.len()];
        let value: Vec<u8> = value
            .iter()
            .copied()
            .filter(|b| !b"\r\0".contains(b))
            .collect();
        // Oversized values are left out.
        let _ = builder.push(name.as_bytes(), value.trim_ascii());
    }
    builder.finish()
}

/// Checks that a request selects the variant that was stored for it.
pub(crate) fn variants(request: &FieldBlock, response: &FieldBlock) {
    if let vary::Vary::List(list) = vary::of(response) {
        let mut own = Vec::new();
        vary::selecting_values(list.as_bytes(), request, &mut own);
        let own = vary::matches(list.as_bytes(), &own, request);
        assert!(own, "it does not select its own variant");
    }
}

/// Makes all decisions about an exchange. Returns true if the answer is stored.
pub(crate) fn check(exchange: &Exchange) -> bool {
    let (request, response, config) = (&exchange.request, &exchange.response, &exchange.config);
    let facts = RequestFacts::new(exchange.method, request);
    let asked = Request {
        facts: &facts,
        target: TARGET,
        fields: request,
    };
    let answer = Response {
        status: exchange.status,
        fields: response,
        request_time: T0,
        response_time: after(exchange.delay),
    };
    let _ = invalidation::invalidated_by(facts.method, &TARGET, exchange.status, response);
    let Ok(plan) = can_store(&asked, &answer, config) else {
        return false;
    };
    let stored = stored_fields(response, &plan).expect("what came fits");
    for i in 0..stored.count() {
        assert!(!stored_fields::is_hop_by_hop(stored.field(i).0));
    }
    judged(&plan.facts, &facts, &stored, request, config);
    for freshens in [false, true] {
        let _ = update::updated_fields(&stored, &exchange.later, freshens);
    }
    let validation = Response {
        status: 304,
        fields: &exchange.later,
        ..answer
    };
    let _ = refresh(&asked, &stored, &plan.facts, &validation, config);
    true
}

/// Checks the invariants of a stored answer.
fn judged(
    stored: &CachingFacts,
    asked: &RequestFacts,
    fields: &FieldBlock,
    request: &FieldBlock,
    config: &Config,
) {
    assert_eq!(CachingFacts::decode(&stored.encode()), Some(*stored));
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
