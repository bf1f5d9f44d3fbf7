//! Incidents as an operator sees them: in the metrics that the alert rules watch
//! (dist/prometheus/alerts.yaml), in the figures of `/stats`, and in `/readyz`.

use foxy_disk::{Fault, FaultRule, OpClass};
use foxy_scenarios::*;

fn page(scene: &Scene, path: &str) -> String {
    let answer = scene
        .get_at(scene.admin(), "localhost", path)
        .is(200)
        .clone();
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// Waits until the metrics have a sample that begins so, with another value than zero.
fn seen(scene: &Scene, sample: &str) {
    scene.until(sample, || {
        let found = |line: &str| line.starts_with(sample) && !line.ends_with(" 0");
        page(scene, "/metrics").lines().any(found)
    });
}

#[test]
fn an_origin_that_fails() {
    let scene = Scene::with().config("[access]\nports = \"all\"").begin();
    let failing = Reply::new("503 Service Unavailable", "sorry");
    scene.origin.plays("/a", failing);
    scene.get("/a").is(503);
    seen(&scene, "foxy_origin_responses_total{class=\"5xx\"}");
    seen(&scene, "foxy_responses_total{class=\"5xx\"}");
    // Nobody listens on port 1.
    let gone = "GET http://origin.test:1/ HTTP/1.1\r\nHost: origin.test:1\r\n\r\n";
    scene.send_raw(gone).is(502);
    seen(&scene, "foxy_origin_errors_total{reason=\"connect\"}");
    seen(&scene, "foxy_requests_total{result=\"origin-error\"}");
    seen(&scene, "foxy_upstream_failed_total");
    assert!(page(&scene, "/stats").contains("\"origin-error\": 1"));
}

#[test]
fn an_origin_that_does_not_answer_in_time() {
    let scene = Scene::with()
        .config("[timeouts]\nfirst_byte = \"1s\"")
        .begin();
    scene.origin.plays("/a", Reply::raw("").pause(4000).close());
    scene.get("/a").is(504);
    seen(
        &scene,
        "foxy_origin_errors_total{reason=\"answer-timeout\"}",
    );
    seen(&scene, "foxy_requests_total{result=\"origin-timeout\"}");
}

/// A disk whose operations of one kind fail from now on.
fn failing_disk(on: OpClass, errno: i32) -> Scene {
    let scene = Scene::with().disk().begin();
    scene.origin.plays("/a", Reply::ok("hello").max_age(3600));
    scene.get("/a").miss();
    scene.settle();
    assert_eq!(page(&scene, "/readyz"), "ready\n");
    scene
        .disk()
        .set_faults(FaultRule::new(on, Fault::Errno(errno)));
    for n in 0..20 {
        let path = format!("/{n}");
        scene.origin.plays(&path, Reply::ok("fresh").max_age(3600));
        scene.get(&path).is(200).says("fresh");
        scene.wait(secs(1));
    }
    scene
}

#[test]
fn a_disk_that_fails_is_named() {
    const EIO: i32 = 5;
    let scene = failing_disk(OpClass::Any, EIO);
    scene.until("the store is not well", || {
        page(&scene, "/readyz").contains("\nstore ")
    });
    let ready = page(&scene, "/readyz");
    assert!(ready.starts_with("ready\n"), "{ready}");
    let state = ready.trim().rsplit(' ').next().unwrap_or_default();
    assert!(["read-only", "offline"].contains(&state), "{ready}");
    seen(
        &scene,
        &format!("foxy_store_state{{store=\"0\",state=\"{state}\"}}"),
    );
    assert!(page(&scene, "/stats").contains(&format!("\"health\": \"{state}\"")));
}
