//! Tests of the limits of clients, users and sites.

use super::*;

fn limit(per: Per) -> Limit {
    Limit {
        name: "l".to_owned(),
        per,
        sites: Vec::new(),
        requests: Some(Rate::new(10.0, 10.0)),
        bytes: None,
        under_way: None,
    }
}

fn subject<'a>(client: &str, user: &'a str) -> Subject<'a> {
    Subject {
        client: client.parse().unwrap(),
        user,
        token: 0,
        site: "forward",
    }
}

fn at(ms: u64) -> MonoTime {
    MonoTime(1 + ms * 1_000_000)
}

/// Sends a request every 10 ms for a minute, and returns the number of requests that the limits admit.
fn in_a_minute(limits: &Limits, subject: &Subject<'_>) -> usize {
    let mut through = 0;
    for ms in (0..60_000).step_by(10) {
        if let Ok(keys) = limits.enter(subject, at(ms)) {
            limits.leave(&keys, at(ms));
            through += 1;
        }
    }
    through
}

#[test]
fn a_minute_has_its_requests_within_five_percent() {
    let limits = Limits::new(vec![limit(Per::Client)]);
    let through = in_a_minute(&limits, &subject("10.0.0.1", ""));
    assert!((590..=630).contains(&through), "{through}");
}

#[test]
fn tokens_of_one_user_have_limits_of_their_own() {
    let limits = Limits::new(vec![limit(Per::Token)]);
    let through = |token, user| {
        let subject = Subject {
            token,
            ..subject("10.0.0.1", user)
        };
        let enter = |_: &u32| limits.enter(&subject, at(0)).is_ok();
        (0..20).filter(enter).count()
    };
    assert_eq!((through(5, "ci"), through(7, "ci")), (10, 10));
    assert_eq!(through(5, "ci"), 0);
    // Logins without a token are counted by user. Requests without a login are counted by address.
    assert_eq!((through(0, "ci"), through(0, "ann")), (10, 10));
    assert_eq!((through(0, ""), through(0, "")), (10, 0));
}

#[test]
fn subjects_are_networks_users_and_sites() {
    let count = |per, subjects: &[(&str, &str)]| {
        let limits = Limits::new(vec![limit(per)]);
        let enter = |(client, user): &(&str, &str)| {
            (0..20)
                .filter(|_| limits.enter(&subject(client, user), at(0)).is_ok())
                .count()
        };
        subjects.iter().map(enter).sum::<usize>()
    };
    assert_eq!(
        count(Per::Client, &[("2001:db8::1", ""), ("2001:db8::2", "")]),
        10
    );
    assert_eq!(
        count(Per::Client, &[("2001:db8::1", ""), ("2001:db8:0:1::", "")]),
        20
    );
    assert_eq!(
        count(Per::Client, &[("10.0.0.1", "a"), ("::ffff:10.0.0.1", "b")]),
        10
    );
    // Users behind one address have separate limits. One user behind several addresses has one limit.
    assert_eq!(
        count(Per::User, &[("10.0.0.1", "a"), ("10.0.0.1", "b")]),
        20
    );
    assert_eq!(
        count(Per::User, &[("10.0.0.1", "a"), ("10.0.0.2", "a")]),
        10
    );
    assert_eq!(count(Per::User, &[("10.0.0.1", ""), ("10.0.0.2", "")]), 20);
    assert_eq!(
        count(Per::Site, &[("10.0.0.1", "a"), ("10.0.0.2", "b")]),
        10
    );
}

#[test]
fn requests_under_way_leave_again_and_refused_ones_count_for_nothing() {
    let limits = Limits::new(vec![
        Limit {
            requests: None,
            under_way: Some(2),
            ..limit(Per::Client)
        },
        limit(Per::Client),
    ]);
    let own = subject("10.0.0.1", "");
    let first = limits.enter(&own, at(0)).unwrap();
    let _second = limits.enter(&own, at(0)).unwrap();
    for _ in 0..50 {
        assert_eq!(limits.enter(&own, at(0)).unwrap_err().limit, 0);
    }
    limits.leave(&first, at(0));
    let _third = limits.enter(&own, at(0)).unwrap();
    assert!(limits.enter(&own, at(0)).is_err());
}

#[test]
fn a_request_that_one_limit_refuses_does_not_count_for_the_limit_before_it() {
    let one_under_way = Limit {
        requests: None,
        under_way: Some(1),
        ..limit(Per::Client)
    };
    let limits = Limits::new(vec![limit(Per::Client), one_under_way]);
    let own = subject("10.0.0.1", "");
    let held = limits.enter(&own, at(0)).unwrap();
    for _ in 0..50 {
        assert_eq!(limits.enter(&own, at(0)).unwrap_err().limit, 1);
    }
    limits.leave(&held, at(0));
    let admitted = (0..20).filter_map(|_| limits.enter(&own, at(0)).ok());
    let admitted = admitted.map(|keys| limits.leave(&keys, at(0)));
    assert_eq!(admitted.count(), 9, "ten at once, and one of them was held");
}

/// Fifty clients share the byte rate of one site evenly. Each client sends its next piece as soon as the
/// limit permits it.
#[test]
fn fifty_clients_share_a_rate_evenly() {
    let limits = Limits::new(vec![Limit {
        requests: None,
        bytes: Some(Rate::new(1e6, 1e5)),
        ..limit(Per::Site)
    }]);
    let keys = limits.enter(&subject("10.0.0.1", ""), at(0)).unwrap();
    let (mut sent, mut next) = ([0u64; 50], [0u64; 50]);
    // The pieces of different clients have different sizes.
    for ms in 0..60_000u64 {
        for client in 0..50 {
            if next[client] <= ms {
                let piece = 4096 + 64 * client as u64;
                sent[client] += piece;
                let wait = limits.spend(&keys, piece, at(ms));
                next[client] = ms + 1 + wait.as_millis() as u64;
            }
        }
    }
    let (sum, squares) = sent.iter().fold((0.0, 0.0), |(sum, squares), n| {
        (sum + *n as f64, squares + (*n as f64).powi(2))
    });
    let jain = sum * sum / (50.0 * squares);
    assert!(jain > 0.95, "{jain}");
    assert!((sum - 60e6).abs() < 60e6 * 0.05, "{sum}");
}

#[test]
fn the_number_of_buckets_is_bounded() {
    let limits = Limits::new(vec![limit(Per::Client)]);
    for n in 0..72_000u32 {
        let ip = IpAddr::from(n.to_be_bytes());
        let own = Subject {
            client: ip,
            ..subject("10.0.0.1", "")
        };
        if let Ok(keys) = limits.enter(&own, at(0)) {
            limits.leave(&keys, at(0));
        }
    }
    let held: usize = limits.shards.iter().map(|shard| shard.lock().len()).sum();
    assert!(held <= SHARDS * (BUCKETS + 1), "{held}");
    // A minute later, all buckets are idle. So old buckets are dropped, and new buckets can be added.
    assert!(limits.enter(&subject("192.0.2.1", ""), at(60_000)).is_ok());
}

/// A request that was counted in the shared bucket of a full shard leaves this bucket, even if the shard is
/// not full any more at that time.
#[test]
fn a_request_leaves_the_bucket_in_which_it_was_counted() {
    let one_under_way = Limit {
        requests: None,
        under_way: Some(1),
        ..limit(Per::Client)
    };
    let limits = Limits::new(vec![one_under_way]);
    let client = |n: u32| Subject {
        client: IpAddr::from(n.to_be_bytes()),
        ..subject("10.0.0.1", "")
    };
    let mut of_a_shard = (1..)
        .map(client)
        .filter(|own| limits.key(0, own).shard == 0);
    for round in 0..3 {
        let mut enter = || limits.enter(&of_a_shard.next().unwrap(), at(round));
        let own: Vec<_> = (0..BUCKETS).map(|_| enter().unwrap()).collect();
        let shared = enter().unwrap();
        assert!(enter().is_err(), "the shared bucket is at its limit");
        own.iter().for_each(|keys| limits.leave(keys, at(round)));
        limits.leave(&shared, at(round));
    }
}
