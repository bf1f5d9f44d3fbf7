//! Sites with several origins: errors of some origins, errors of all origins, health checks, and limits of
//! connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Foxy, Origin as Server, refusing};
use foxy_proxy::{
    Balance, Check, Config, Event, HealthRules, HealthState, Origin, Origins, OriginsConfig, Role,
    Site,
};

/// An origin that answers all requests with this status and body.
fn server(status: &'static str, body: &'static str) -> Server {
    Server::start(move |asked| {
        asked.reply(status, "Cache-Control: no-store\r\n", body);
        true
    })
}

fn settings(ports: &[u16]) -> OriginsConfig {
    let origin = |port: &u16| Origin {
        host: "127.0.0.1".into(),
        port: *port,
        weight: 1,
        connections: None,
        name: format!("http://127.0.0.1:{port}"),
    };
    OriginsConfig {
        site: "shop".into(),
        origins: ports.iter().map(origin).collect(),
        tls: None,
        timeouts: foxy_proxy::OriginTimeouts::default(),
        balance: Balance::RoundRobin,
        health: HealthRules::default(),
        check: None,
    }
}

fn start(settings: OriginsConfig, config: Config) -> (Foxy, Origins) {
    let origins = Origins::new(settings, 1);
    let site = Site {
        name: "shop".into(),
        host: "shop.internal".into(),
        port: 80,
        origins: Some(origins.clone()),
        ..Site::default()
    };
    (Foxy::start(Role::Site(site), config, 1), origins)
}

fn get(foxy: &Foxy, path: &str) -> (u16, String) {
    let answer = foxy.ask(&format!("GET {path} HTTP/1.1\r\nHost: public.test\r\n\r\n"));
    (answer.status, answer.text())
}

fn health_states(foxy: &Foxy, origins: &Origins) -> Vec<&'static str> {
    let now = foxy_base::Clock::mono(&*foxy.clock);
    let states = origins.states(now);
    states
        .iter()
        .map(|state| state.health_state.as_str())
        .collect()
}

#[test]
fn bad_origins_cost_no_request_and_are_left_out_until_they_recover() {
    let good = server("200 OK", "good");
    let failing = Arc::new(AtomicBool::new(true));
    let fails = failing.clone();
    let sick = Server::start(move |asked| {
        let bad = fails.load(Ordering::SeqCst);
        let status = if bad {
            "500 Internal Server Error"
        } else {
            "200 OK"
        };
        asked.reply(status, "Cache-Control: no-store\r\n", "sick");
        true
    });
    let (_held, dead) = refusing();
    let ports = [good.addr.port(), sick.addr.port(), dead.port()];
    let (foxy, origins) = start(settings(&ports), Config::default());
    for n in 0..40 {
        assert_eq!(get(&foxy, &format!("/{n}")), (200, "good".into()), "{n}");
    }
    assert_eq!(health_states(&foxy, &origins), ["up", "ejected", "ejected"]);
    let asked = sick.asked();
    assert!(asked <= 6, "{asked}");
    assert_eq!(
        foxy.proxy.totals().event(Event::UpstreamElsewhere),
        origins.retries()
    );
    assert_eq!(good.asked(), 40);
    // Requests to all origins contain the same host name.
    let seen = Server::start(|asked| {
        let host = asked.field("Host").unwrap().to_owned();
        asked.reply("200 OK", "", host);
        true
    });
    let (named, _) = start(
        settings(&[seen.addr.port(), dead.port()]),
        Config::default(),
    );
    assert_eq!(get(&named, "/").1, "shop.internal");
    // The two ejected origins get requests again. One of them works now. The other fails again, and is
    // ejected again.
    failing.store(false, Ordering::SeqCst);
    foxy.clock.advance(Duration::from_secs(11));
    for n in 0..60 {
        assert_eq!(get(&foxy, &format!("/{n}")).0, 200);
    }
    assert_eq!(
        health_states(&foxy, &origins),
        ["up", "slow-start", "ejected"]
    );
    foxy.clock.advance(Duration::from_secs(30));
    assert_eq!(health_states(&foxy, &origins)[1], "up");
}

#[test]
fn unsafe_methods_and_bodies_are_sent_once() {
    let sick = server("500 Internal Server Error", "sick");
    let also = server("503 Service Unavailable", "also");
    let ports = [sick.addr.port(), also.addr.port()];
    let (foxy, origins) = start(settings(&ports), Config::default());
    for request in [
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "DELETE /x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
    ] {
        let before = sick.asked() + also.asked();
        let status = foxy.ask(request).status;
        assert!(matches!(status, 500 | 503), "{status}");
        assert_eq!(sick.asked() + also.asked() - before, 1, "{request}");
    }
    // If all origins answer with an error, the client gets the last answer.
    let before = sick.asked() + also.asked();
    let head = foxy.ask("HEAD /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(matches!(head.status, 500 | 503));
    assert_eq!(sick.asked() + also.asked() - before, 2);
    let counts = origins.states(foxy_base::Clock::mono(&*foxy.clock));
    let failures: u64 = counts.iter().map(|state| state.counts.failures).sum();
    assert_eq!(failures, 7);
    assert!(
        counts
            .iter()
            .all(|state| state.health_state == HealthState::Up)
    );
}

#[test]
fn if_all_fail_stale_answers_go_on_and_retries_stay_within_the_budget() {
    let broken = Arc::new(AtomicBool::new(false));
    let asked_broken = Arc::new(AtomicUsize::new(0));
    let server = || {
        let (broken, count) = (broken.clone(), asked_broken.clone());
        Server::start(move |asked| {
            if broken.load(Ordering::SeqCst) {
                count.fetch_add(1, Ordering::SeqCst);
                return false;
            }
            let fields = "Cache-Control: max-age=1, stale-if-error=600\r\n";
            asked.reply("200 OK", fields, "page");
            true
        })
    };
    let servers = [server(), server(), server()];
    let ports: Vec<u16> = servers.iter().map(|server| server.addr.port()).collect();
    let (foxy, origins) = start(settings(&ports), Config::default());
    assert_eq!(get(&foxy, "/kept").0, 200);
    foxy.clock.advance(Duration::from_secs(5));
    broken.store(true, Ordering::SeqCst);
    assert_eq!(get(&foxy, "/kept"), (200, "page".into()));
    let requests = 1200;
    for n in 0..requests {
        assert_eq!(get(&foxy, &format!("/{n}")).0, 502);
    }
    let sent = asked_broken.load(Ordering::SeqCst);
    // The budget permits retries for about 20 % of the requests. In addition, a few requests are sent twice
    // because a pooled connection was broken.
    assert!(sent <= (requests * 13) / 10 + 10, "{sent} for {requests}");
    assert_eq!(get(&foxy, "/kept"), (200, "page".into()));
    let out = health_states(&foxy, &origins);
    assert!(
        out.iter().all(|health_state| *health_state != "ejected"),
        "{out:?}"
    );
}

#[test]
fn checks_take_an_origin_out_and_bring_it_back() {
    let well = Arc::new(AtomicBool::new(true));
    let is_well = well.clone();
    let checked = Server::start(move |asked| {
        let good = asked.path() != "/health" || is_well.load(Ordering::SeqCst);
        assert!(asked.path() != "/health" || asked.field("Host") == Some("shop.test"));
        asked.reply(
            if good {
                "200 OK"
            } else {
                "503 Service Unavailable"
            },
            "",
            "checked",
        );
        true
    });
    let other = server("200 OK", "other");
    let mut settings = settings(&[checked.addr.port(), other.addr.port()]);
    settings.check = Some(Check {
        path: "/health".into(),
        host: "shop.test".into(),
        every: Duration::from_millis(20),
        status: 200,
    });
    let (foxy, origins) = start(settings, Config::default());
    let reaches = |expected: &str| {
        let found = (0..2000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            health_states(&foxy, &origins)[0] == expected
        });
        assert!(found, "{:?}", health_states(&foxy, &origins));
    };
    well.store(false, Ordering::SeqCst);
    reaches("down");
    for n in 0..10 {
        assert_eq!(get(&foxy, &format!("/{n}")).1, "other");
    }
    well.store(true, Ordering::SeqCst);
    reaches("slow-start");
}

#[test]
fn a_limit_of_connections_is_waited_for() {
    let (most, now) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (highest, under_way) = (most.clone(), now);
    let server = Server::start(move |asked| {
        let n = under_way.fetch_add(1, Ordering::SeqCst) + 1;
        highest.fetch_max(n, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        under_way.fetch_sub(1, Ordering::SeqCst);
        asked.reply("200 OK", "Cache-Control: no-store\r\n", "x");
        true
    });
    let mut settings = settings(&[server.addr.port()]);
    settings.origins[0].connections = Some(2);
    let (foxy, _) = start(settings, Config::default());
    std::thread::scope(|scope| {
        for n in 0..10 {
            let foxy = &foxy;
            scope.spawn(move || assert_eq!(get(foxy, &format!("/{n}")).0, 200));
        }
    });
    assert_eq!(most.load(Ordering::SeqCst), 2);
}
