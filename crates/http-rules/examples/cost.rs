//! Makes one decision many times, to count instructions: `cost NAME TIMES`. To get the cost of one decision,
//! run the program with two values of TIMES. Then divide the difference of the instruction counts by the
//! difference of the values. An example of a run is:
//! `valgrind --tool=callgrind --callgrind-out-file=/dev/null cost can_store 1000`.

use std::hint::black_box;

use foxy_base::{FieldBlock, FieldBlockBuilder, WallTime};
use foxy_http_rules::invalidation::TargetUri;
use foxy_http_rules::{
    CachingFacts, Config, Request, RequestFacts, Response, RuleSet, StorePlan, can_store, decide,
    stored_fields,
};

/// A usual response of a file server behind a framework.
const RESPONSE: [(&str, &str); 12] = [
    ("Server", "nginx/1.28.0"),
    ("Date", "Sun, 15 Jun 2025 12:00:00 GMT"),
    ("Content-Type", "text/css; charset=utf-8"),
    ("Content-Length", "4096"),
    ("Last-Modified", "Sun, 08 Jun 2025 09:12:41 GMT"),
    ("Connection", "keep-alive"),
    ("Vary", "Accept-Encoding"),
    ("ETag", "\"68454e59-1000\""),
    ("Cache-Control", "public, max-age=86400"),
    ("Accept-Ranges", "bytes"),
    ("X-Content-Type-Options", "nosniff"),
    ("Strict-Transport-Security", "max-age=31536000"),
];

/// A usual request of a browser.
const REQUEST: [(&str, &str); 9] = [
    ("Host", "www.example.com"),
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0)"),
    ("Accept", "text/css,*/*;q=0.1"),
    ("Accept-Language", "en-US,en;q=0.5"),
    ("Accept-Encoding", "gzip, deflate"),
    ("Referer", "http://www.example.com/"),
    ("Sec-Fetch-Dest", "style"),
    ("Sec-Fetch-Mode", "no-cors"),
    ("Connection", "keep-alive"),
];

const NOW: WallTime = WallTime::from_secs(1_749_988_800);

/// The data for the measured calls.
struct Bed {
    request: FieldBlock,
    response: FieldBlock,
    facts: RequestFacts,
    config: Config,
    rules: RuleSet,
    key: Vec<u8>,
}

impl Bed {
    fn new() -> Self {
        let request = block(&REQUEST);
        Self {
            facts: RequestFacts::new(b"GET", &request),
            request,
            response: block(&RESPONSE),
            config: Config::default(),
            rules: RuleSet::default(),
            key: b"forward GET http://www.example.com/style.css".to_vec(),
        }
    }

    fn store(&self) -> Option<StorePlan> {
        let request = Request {
            facts: &self.facts,
            target: TargetUri::default(),
            fields: &self.request,
        };
        let response = Response {
            status: 200,
            fields: &self.response,
            request_time: NOW,
            response_time: NOW,
        };
        can_store(&request, black_box(&response), &self.config).ok()
    }
}

fn block(fields: &[(&str, &str)]) -> FieldBlock {
    let mut builder = FieldBlockBuilder::default();
    for (name, value) in fields {
        let _ = builder.push(name.as_bytes(), value.as_bytes());
    }
    builder.finish()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let times: u32 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut bed = Bed::new();
    let Some(plan) = bed.store() else { return };
    let stored = plan.facts;
    let bytes = stored.encode();
    for _ in 0..times {
        match name.as_str() {
            "nothing" => {}
            "can_store" => {
                black_box(bed.store());
            }
            "stored_fields" => {
                let _ = black_box(stored_fields(black_box(&bed.response), &plan));
            }
            "decide" => {
                let stored = black_box(&stored);
                black_box(decide(black_box(&bed.facts), stored, NOW, &bed.config));
            }
            "digest_decode" => {
                black_box(CachingFacts::decode(black_box(&bytes)));
            }
            "request_digest" => {
                black_box(RequestFacts::new(b"GET", black_box(&bed.request)));
            }
            "rules" => {
                black_box(bed.rules.apply("forward", black_box(&mut bed.key)));
            }
            _ => {
                eprintln!(
                    "cost can_store|stored_fields|decide|digest_decode|request_digest|rules|nothing TIMES"
                );
                return;
            }
        }
    }
}
