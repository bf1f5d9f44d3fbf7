//! An origin that fails, as an operator sees it.

use foxy_scenarios::*;

#[test]
fn an_origin_that_fails() {
    let scene = Scene::with().site().begin();
    assert!(!scene.page("/readyz").contains("origin"));
    let failing = Reply::new("503 Service Unavailable", "sorry");
    scene.origin.plays("/a", failing);
    scene.ask_www(3, 503);
    scene.shows(Incident {
        alert: "FoxyOriginDown",
        sample: "foxy_origin_up{site=\"www\"",
        value: Some("0"),
        stats: "\"ailment\": \"fails\"",
        ready: " of site www fails: status-5xx",
    });
    scene.shows(Incident {
        alert: "FoxySiteFails",
        sample: "foxy_site_requests_total{site=\"www\",cache=\"miss\",class=\"5xx\"}",
        value: Some("3"),
        stats: "\"errors\": 3",
        ready: "ready\n",
    });
    scene.exports("foxy_origin_responses_total{class=\"5xx\"}");
    // One good answer ends the incident.
    scene.origin.plays("/a", Reply::ok("well"));
    scene.ask_www(1, 200);
    scene.until("the origin is well", || {
        let well = |line: &str| line.starts_with("foxy_origin_up") && line.ends_with(" 1");
        let ready = scene.page("/readyz");
        !ready.contains("origin") && scene.page("/metrics").lines().any(well)
    });
}
