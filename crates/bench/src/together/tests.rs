//! Crowds that connect directly to an origin. There is no cache, so each client gets its own answer from
//! the origin.

use foxy_base::SystemClock;

use super::*;
use crate::{Origin, OriginConfig};

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::default())
}

fn crowd(origin: &Origin, knobs: Knobs) -> Together {
    Together {
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
    let mut crowd = crowd(&origin, Knobs::new(1, 300_000));
    crowd.knobs.latency_ms = Some(50);
    let gathered = crowd.run(&clock()).unwrap();
    assert!(gathered.is_right(), "{gathered:?}");
    assert_eq!((gathered.right, gathered.bytes), (20, 6_000_000));
    assert_eq!(gathered.origin.requests, 20);
    assert_eq!(gathered.origin.peak, 20, "they were not together");
}

#[test]
fn leavers_and_slow_ones_are_not_waited_for() {
    let origin = origin();
    let mut crowd = crowd(&origin, Knobs::new(1, 5_000_000));
    (crowd.leave_after, crowd.slow) = (Some(1000), 2);
    let gathered = crowd.run(&clock()).unwrap();
    assert!(gathered.is_right(), "{gathered:?}");
    assert_eq!((gathered.right, gathered.wanted), (19, 19));
    assert!(gathered.slow_bytes < 5_000_000, "{gathered:?}");
}

#[test]
fn each_cookie_has_its_own_body() {
    let origin = origin();
    let mut crowd = crowd(&origin, Knobs::new(1, 1000));
    crowd.cookies = true;
    assert!(crowd.run(&clock()).unwrap().is_right());
}

#[test]
fn what_is_broken_off_is_told() {
    let origin = origin();
    let mut crowd = crowd(&origin, Knobs::new(1, 1000));
    crowd.knobs.die_after = Some(10);
    let gathered = crowd.run(&clock()).unwrap();
    assert!(!gathered.is_right());
    assert!(
        gathered.problems[0].contains("after 10 of 1000 bytes"),
        "{gathered:?}"
    );
}
