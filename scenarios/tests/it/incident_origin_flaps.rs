//! An origin that alternately answers and fails, as an operator sees it.

use foxy_scenarios::*;

#[test]
fn an_origin_that_flaps() {
    let scene = Scene::with().site().begin();
    for _ in 0..5 {
        scene.origin.plays("/a", Reply::new("500 Oh", "sorry"));
        scene.ask_www(1, 500);
        scene.origin.plays("/a", Reply::ok("well"));
        scene.ask_www(1, 200);
    }
    scene.shows(Incident {
        alert: "FoxyOriginFlaps",
        sample: "foxy_origin_recent_failures{site=\"www\"",
        value: Some("5"),
        stats: "\"ailment\": \"flaps\"",
        ready: " of site www flaps: 5 of the last 10 requests failed, the last one by status-5xx",
    });
}
