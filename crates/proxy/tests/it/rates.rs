//! Limits of bytes, on real sockets. Every kind of answer is slowed if it exceeds the limit.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Answer, Foxy, Origin};
use foxy_base::{Clock, SystemClock};
use foxy_proxy::access_rules::{Rate, RuleSet};
use foxy_proxy::{Config, Gatekeeper, Limit, Per, Role};

/// Length of a long body, which is stored in fragments.
const LONG: usize = 1_000_003;
const SHORT: usize = 200_000;
/// Rate in bytes per second.
const RATE: usize = 50_000_000;
/// Number of bytes that may be sent without delay, before the rate applies.
const BURST: usize = 10_000;

fn config() -> Config {
    let limit = Limit {
        name: "slow".to_owned(),
        per: Per::Client,
        sites: Vec::new(),
        requests: None,
        bytes: Some(Rate::new(RATE as f64, BURST as f64)),
        under_way: None,
    };
    let gate = Gatekeeper::new(RuleSet::new(Vec::new()), jiff::tz::TimeZone::UTC);
    Config {
        gatekeeper: Some(Arc::new(gate.with_limits(vec![limit]))),
        ..Config::default()
    }
}

fn body(path: &str) -> Vec<u8> {
    let length = if path.contains("long") { LONG } else { SHORT };
    (0..length).map(|i| (i % 251) as u8).collect()
}

fn origin() -> Origin {
    Origin::start(|asked| {
        let body = body(asked.path());
        let fields = match asked.path().contains("passed") {
            true => "Cache-Control: no-store\r\n",
            false => "Cache-Control: max-age=6000\r\nETag: \"a\"\r\n",
        };
        asked.reply("200 OK", fields, body);
        true
    })
}

/// Sends a request. Returns the answer, and the time from the request to the end of the answer. Before the
/// request, the clock advances, so that earlier answers no longer count against the limit.
fn timed(foxy: &Foxy, origin: &Origin, path: &str, fields: &str) -> (Answer, Duration) {
    foxy.clock.advance(Duration::from_secs(600));
    // Foxy slows the answer in real time, so the time is measured with the real clock. The clock of the test
    // only decides when earlier answers no longer count against the limit.
    let clock = SystemClock::default();
    let begun = clock.mono();
    let answer = foxy.get_with(origin, path, fields);
    (answer, clock.mono().since(begun))
}

#[test]
fn answers_of_every_way_are_slowed() {
    let (foxy, origin) = (Foxy::start(Role::Forward, config(), 1), origin());
    let range = "Range: bytes=300000-599999\r\n";
    let parts = "Range: bytes=0-199999,500000-699999\r\n";
    for (path, fields, cache, bytes) in [
        ("/short", "", "fwd=uri-miss", SHORT),
        ("/short", "", "hit", SHORT),
        ("/long", "", "fwd=uri-miss", LONG),
        ("/long", "", "hit", LONG),
        ("/long", range, "hit", 300_000),
        ("/long", parts, "hit", 400_000),
        ("/long/passed", "", "fwd=uri-miss", LONG),
    ] {
        let (answer, took) = timed(&foxy, &origin, path, fields);
        assert!(
            answer.whole && answer.cache().contains(cache),
            "{path}: {}",
            answer.cache()
        );
        assert!(
            answer.body.len() >= bytes,
            "{path} {fields}: {}",
            answer.body.len()
        );
        // The limit permits no shorter time, even on a fast machine.
        let least = Duration::from_secs_f64((bytes - BURST) as f64 / RATE as f64);
        assert!(
            took >= least,
            "{path} {fields}{cache}: {took:?} of {least:?}"
        );
    }
    assert_eq!(origin.asked(), 3);
}
