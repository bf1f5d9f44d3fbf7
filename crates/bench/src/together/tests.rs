//! Bursts of clients that connect directly to an origin. There is no cache, so each client gets its own
//! answer from the origin.

use foxy_base::SystemClock;

use super::*;
use crate::{Origin, OriginConfig};

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::default())
}

fn burst(origin: &Origin, knobs: Knobs) -> Burst {
    Burst {
        target: origin.address(),
        origin: origin.address(),
        knobs,
        clients: 20,
        lead: Duration::from_millis(1),
        leave_after: None,
        slow: 0,
        slow_rate: 1000,
        cookies: false,
        timeout: Duration::from_secs(20),
    }
}

fn origin() -> Origin {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = OriginConfig {
        listen,
        ..OriginConfig::default()
    };
    Origin::start(config, &clock()).unwrap()
}

#[test]
fn everybody_gets_everything_and_the_origin_is_counted() {
    let origin = origin();
    let mut burst = burst(&origin, Knobs::new(1, 300_000));
    burst.knobs.latency_ms = Some(50);
    let report = burst.run(&clock()).unwrap();
    assert!(report.is_right(), "{report:?}");
    assert_eq!((report.right, report.bytes), (20, 6_000_000));
    assert_eq!(report.origin.requests, 20);
    // On a busy machine, the first answers can end before the last requests arrive.
    let peak = report.origin.peak;
    assert!((2..=20).contains(&peak), "{peak} requests at once");
}

#[test]
fn leavers_and_slow_ones_are_not_waited_for() {
    let origin = origin();
    let mut burst = burst(&origin, Knobs::new(1, 5_000_000));
    (burst.leave_after, burst.slow) = (Some(1000), 2);
    let report = burst.run(&clock()).unwrap();
    assert!(report.is_right(), "{report:?}");
    assert_eq!((report.right, report.wanted), (19, 19));
    assert!(report.slow_bytes < 5_000_000, "{report:?}");
}

#[test]
fn each_cookie_has_its_own_body() {
    let origin = origin();
    let mut burst = burst(&origin, Knobs::new(1, 1000));
    burst.cookies = true;
    assert!(burst.run(&clock()).unwrap().is_right());
}

#[test]
fn what_is_broken_off_is_told() {
    let origin = origin();
    let mut burst = burst(&origin, Knobs::new(1, 1000));
    burst.knobs.die_after = Some(10);
    let report = burst.run(&clock()).unwrap();
    assert!(!report.is_right());
    assert!(
        report.problems[0].contains("after 10 of 1000 bytes"),
        "{report:?}"
    );
}
