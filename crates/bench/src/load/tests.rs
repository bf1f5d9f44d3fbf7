//! Tests of the load generator with an origin in this process.

use std::net::Ipv4Addr;

use foxy_base::{Rng, SystemClock};

use super::*;
use crate::{Origin, OriginConfig};

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::default())
}

fn origin() -> Origin {
    Origin::start(OriginConfig::default(), &clock()).unwrap()
}

fn objects(count: u64) -> Vec<RequestSpec> {
    (0..count)
        .map(|id| RequestSpec {
            server: (id % 5) as u32 + 1,
            id,
            size: id * id % 70_000,
            version: (id % 3) as u32,
            no_store: false,
        })
        .collect()
}

fn config(origin: &Origin, mode: Option<Mode>) -> LoadConfig {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, origin.address().port()));
    let mode = mode.unwrap_or(Mode::Forward {
        port: address.port(),
    });
    let style = Style {
        mode,
        same_url: false,
        extra: String::new(),
        knobs: String::new(),
    };
    let mut config = LoadConfig::new(address, style);
    config.origin = Some(address);
    config.connections = 8;
    config
}

#[test]
fn a_closed_loop_asks_for_all_and_checks_all() {
    let origin = origin();
    for (mode, threads, knobs) in [
        (None, 1, ""),
        (
            Some(Mode::Reverse {
                host: "site".to_owned(),
            }),
            2,
            "&c=1",
        ),
    ] {
        let mut config = config(&origin, mode);
        config.threads = threads;
        config.style.knobs = knobs.to_owned();
        let report = run(&config, Box::new(objects(500).into_iter()), &clock()).unwrap();
        assert_eq!((report.answers, report.errors), (500, 0), "{report}");
        assert_eq!((report.checked, report.unknown.count), (500, 500));
        assert_eq!(
            report.bytes,
            objects(500).iter().map(|w| w.size).sum::<u64>()
        );
        assert!(report.origin_hit_ratio.unwrap() < 0.01 && report.hit_ratio.is_none());
    }
}

#[test]
fn unchecked_bodies_are_counted_too() {
    let origin = origin();
    let mut config = config(&origin, None);
    config.check = 0.0;
    let report = run(&config, Box::new(objects(500).into_iter()), &clock()).unwrap();
    assert_eq!(
        (report.answers, report.errors, report.checked),
        (500, 0, 0),
        "{report}"
    );
    assert_eq!(
        report.bytes,
        objects(500).iter().map(|w| w.size).sum::<u64>()
    );
}

#[test]
fn neither_side_needs_to_sleep() {
    let config = OriginConfig {
        poll: true,
        ..OriginConfig::default()
    };
    let origin = Origin::start(config, &clock()).unwrap();
    let mut config = self::config(&origin, None);
    config.poll = true;
    for pace in [Pace::Closed, Pace::Open(5000.0)] {
        config.pace = pace;
        let report = run(&config, Box::new(objects(500).into_iter()), &clock()).unwrap();
        assert_eq!((report.answers, report.errors), (500, 0), "{report}");
        let busy = report.origin.unwrap().busy_ns as f64 / 1e9;
        assert!(busy > 0.0 && busy < report.seconds, "{report}");
    }
}

#[test]
fn faults_of_the_server_are_told() {
    let origin = origin();
    let ask = |knobs: &str, timeout| {
        let mut config = config(&origin, None);
        config.style.knobs = knobs.to_owned();
        config.timeout = timeout;
        let spec = RequestSpec {
            server: 1,
            id: 1,
            size: 5000,
            ..RequestSpec::default()
        };
        run(&config, Box::new([spec; 5].into_iter()), &clock()).unwrap()
    };
    // On a busy machine, an answer can take long. So only the case whose answer is late on purpose has a
    // short timeout.
    let (long, short) = (Duration::from_secs(20), Duration::from_millis(300));
    for (knobs, fault, timeout) in [
        ("&d=100", "cut", long),
        ("&d=100&c=1", "cut", long),
        ("&f=10", "length", long),
        ("&st=404", "status", long),
        ("&v=9", "identity", long),
        ("&l=5000", "timeout", short),
    ] {
        let report = ask(knobs, timeout);
        let faults: Vec<_> = report.faults.into_iter().collect();
        assert_eq!(faults, [(fault, 5)], "{knobs}: {:?}", report.described);
    }
}

#[test]
fn a_dead_target_is_a_fault_or_waited_for() {
    let gone = origin();
    let mut config = config(&gone, None);
    drop(gone);
    let report =
        |config: &LoadConfig| run(config, Box::new(objects(5).into_iter()), &clock()).unwrap();
    // On a busy machine, a load of 100 ms can end before its first attempt to connect. So the load is
    // repeated until an attempt has failed, at most 50 times.
    let faulty = |config: &LoadConfig| {
        let mut reports = (0..50).map(|_| report(config));
        let faulty = reports.find(|report| report.faults.contains_key("connect"));
        assert_eq!(faulty.expect("no load failed to connect").answers, 0);
    };
    config.duration = Some(Duration::from_millis(100));
    faulty(&config);
    // The load has no time limit. It ends when the target was unreachable for as long as an answer may take
    // (100 ms).
    config.duration = None;
    config.timeout = Duration::from_millis(100);
    faulty(&config);
    config.duration = Some(Duration::from_millis(100));
    config.patient = true;
    let report = report(&config);
    assert_eq!((report.answers, report.errors), (0, 0));
}

#[test]
fn connections_closed_by_the_server_are_renewed() {
    let origin = origin();
    let mut config = config(&origin, None);
    config.style.extra = "Connection: close\r\n".to_owned();
    let report = run(&config, Box::new(objects(100).into_iter()), &clock()).unwrap();
    assert_eq!((report.answers, report.errors), (100, 0), "{report}");
    assert!(report.connections >= 100);
}

#[test]
fn an_open_loop_ends_by_count_and_warms_up() {
    let origin = origin();
    let mut config = config(&origin, None);
    config.pace = Pace::Open(5000.0);
    config.warm_up_requests = 100;
    config.requests = 400;
    config.check = 0.5;
    config.timeline = true;
    let source = Popular::new(objects(50), 0.7, Rng::new(1));
    let report = run(&config, Box::new(source), &clock()).unwrap();
    assert_eq!((report.answers, report.errors), (400, 0), "{report}");
    assert!((100..300).contains(&report.checked));
    let steps = report.restart.unwrap().steps;
    assert_eq!(steps.iter().map(|s| s.0).sum::<u32>(), 400);
}

#[test]
fn what_was_asked_in_the_measured_time_is_counted_when_it_is_answered_later() {
    let origin = origin();
    let mut config = config(&origin, None);
    config.cool_down = Duration::from_secs(600);
    // The measured time ends before the first answer, which takes twice as long. On a busy machine, it is
    // possible that no request is sent within the measured time. Then the test is repeated with a longer
    // time.
    let mut answers = |milliseconds: u64| {
        config.style.knobs = format!("&l={}", 2 * milliseconds);
        config.duration = Some(Duration::from_millis(milliseconds));
        let source = Popular::new(objects(50), 0.7, Rng::new(1));
        let report = run(&config, Box::new(source), &clock()).unwrap();
        assert!(report.seconds < 600.0);
        report.answers
    };
    assert!([500, 2000, 8000].into_iter().any(|time| answers(time) > 0));
}

#[test]
fn versions_on_one_url_replace_each_other() {
    let origin = origin();
    let mut config = config(&origin, None);
    config.style.same_url = true;
    let mut rng = Rng::new(4);
    let specs: Vec<RequestSpec> = (0..2000u32)
        .map(|n| {
            let version = n / 200;
            RequestSpec {
                server: 1,
                id: rng.below(20),
                size: u64::from(version) * 100,
                version,
                no_store: false,
            }
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    config.record = Some(folder.path().join("record"));
    let report = run(&config, Box::new(specs.into_iter()), &clock()).unwrap();
    assert_eq!((report.answers, report.errors), (2000, 0), "{report}");
    let known = read_record(config.record.as_ref().unwrap()).unwrap();
    assert_eq!(known.len(), 20);
    assert!(
        known
            .iter()
            .all(|k| k.spec.version >= 8 && k.stored <= k.used)
    );
    // The known versions are now higher than the version that the origin sends (0, because of the additional
    // field `Bench-Want`). So each answer is too old, which is a fault.
    config.known = known
        .iter()
        .map(|k| RequestSpec {
            version: k.spec.version + 1,
            ..k.spec
        })
        .collect();
    config.style.knobs = "&st=200".to_owned();
    config.style.extra = "Bench-Want: 0 10\r\n".to_owned();
    let again = config.known.clone();
    let report = run(&config, Box::new(again.into_iter()), &clock()).unwrap();
    assert_eq!(report.faults.get("superseded"), Some(&20), "{report}");
}
