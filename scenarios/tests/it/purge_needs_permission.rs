//! Clients outside the configured networks may not purge.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with()
        .config("[access]\npurge_from = [\"192.0.2.0/24\"]")
        .begin();
    scene.origin.plays("/a", Reply::ok("hello").max_age(60));
    scene.get("/a").miss();
    scene.ask("PURGE", "/a", "").is(403);
    scene.get("/a").hit();
}
