//! Counters that show faults of an origin, and counters of the bytes that clients get from the cache and from
//! origins.

use foxy_proxy::{CLASSES, Outcome, Totals, Trouble};

use crate::common::{Foxy, Origin, refusing};

fn of_class(counts: &[u64; CLASSES.len()], class: &str) -> u64 {
    counts[CLASSES.iter().position(|c| *c == class).unwrap()]
}

/// Waits until `requests` requests are counted, and returns the totals. The wait is needed because a client
/// has its answer shortly before the request is counted.
fn after(foxy: &Foxy, requests: u64) -> Totals {
    loop {
        let totals = foxy.proxy.totals();
        if totals.requests() >= requests {
            return totals;
        }
        std::thread::yield_now();
    }
}

#[test]
fn status_classes_and_bytes_are_counted_for_clients_and_origins() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        match asked.head.contains("/ill") {
            true => asked.reply("503 Service Unavailable", "", "sick"),
            false => asked.reply("200 OK", "Cache-Control: max-age=60\r\n", "0123456789"),
        }
        true
    });
    for path in ["/well", "/well", "/well", "/ill"] {
        foxy.get(&origin, path);
    }
    let totals = after(&foxy, 4);
    assert_eq!(of_class(&totals.classes, "2xx"), 3);
    assert_eq!(of_class(&totals.classes, "5xx"), 1);
    assert_eq!(totals.body(Outcome::MemoryHit), 20);
    assert_eq!(totals.body(Outcome::Miss), 14);
    assert_eq!(of_class(&totals.origin.classes, "2xx"), 1);
    assert_eq!(of_class(&totals.origin.classes, "5xx"), 1);
    assert_eq!(totals.origin.troubles, [0; Trouble::ALL.len()]);
    let count = |buckets: &[u64]| buckets.iter().sum::<u64>();
    assert_eq!(count(&totals.origin.answers.buckets), 2);
    assert!(count(&totals.origin.connects.buckets) >= 1);
}

#[test]
fn failures_of_origins_are_counted_by_reason() {
    let foxy = Foxy::forward();
    let silent = Origin::start(|_| false);
    assert_eq!(foxy.get(&silent, "/closed").status, 502);
    let totals = after(&foxy, 1);
    assert!(totals.origin.trouble(Trouble::Closed) >= 1);
    assert_eq!(totals.origin.trouble(Trouble::Connect), 0);

    let (_nobody, address) = refusing();
    let answer = foxy.ask(&format!(
        "GET http://{address}/ HTTP/1.1\r\nHost: x\r\n\r\n"
    ));
    assert_eq!(answer.status, 502);
    let answer = foxy.ask("GET http://nowhere.test/ HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(answer.status, 502);
    let totals = after(&foxy, 3);
    assert!(totals.origin.trouble(Trouble::Connect) >= 1);
    assert!(totals.origin.trouble(Trouble::Name) >= 1);
    assert_eq!(of_class(&totals.classes, "5xx"), 3);
    assert_eq!(totals.origin.classes, [0; CLASSES.len()]);
}

#[test]
fn bodies_that_break_off_are_counted() {
    let foxy = Foxy::forward();
    let origin = Origin::start(|asked| {
        asked.raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
        false
    });
    foxy.get(&origin, "/cut");
    let totals = after(&foxy, 1);
    assert!(totals.origin.trouble(Trouble::Closed) >= 1);
    assert_eq!(of_class(&totals.origin.classes, "2xx"), 1);
}
