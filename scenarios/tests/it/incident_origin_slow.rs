//! An origin that is slow, as an operator sees it.

use std::sync::{Arc, Mutex};

use foxy_scenarios::*;

/// The incident is visible while the request still waits, and also after the answer.
#[test]
fn an_origin_that_is_slow() {
    let scene = Scene::with().site().begin();
    let gate = Arc::new(Mutex::new(()));
    let held = gate.lock().expect("a gate");
    scene.origin.plays("/a", Reply::ok("late").behind(&gate));
    let mut client = Client::to(scene.site());
    client.send("GET /a HTTP/1.1\r\nHost: www.test\r\n\r\n");
    scene.until("the origin is asked", || scene.origin.asked().len() == 1);
    scene.wait(secs(11));
    scene.shows(Incident {
        alert: "FoxyOriginSlow",
        sample: "foxy_origin_waiting_seconds{site=\"www\"",
        value: None,
        stats: "\"ailment\": \"slow\"",
        ready: " of site www is slow: answers begin after 11.0 s",
    });
    drop(held);
    client.answer().is(200);
    scene.shows(Incident {
        alert: "FoxyOriginSlow",
        sample: "foxy_origin_recent_first_byte_seconds{site=\"www\"",
        value: Some("11"),
        stats: "\"ailment\": \"slow\"",
        ready: " of site www is slow: answers begin after 11.0 s",
    });
}
