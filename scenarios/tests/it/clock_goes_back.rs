//! If the wall clock is set back, an object becomes stale. Its age never decreases.

use foxy_base::{Clock, WallTime};
use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene
        .origin
        .plays("/a", Reply::ok("hello").max_age(60).field("ETag", "\"v1\""));
    scene.get("/a").miss();
    let now = scene.clock.wall();
    scene.clock.set_wall(WallTime(now.millis() - 3_600_000));
    scene
        .get("/a")
        .is(200)
        .says("hello")
        .cache_says("fwd=stale; fwd-status=304");
    scene.origin.was_asked(2);
}
