//! A client that already has the object gets a 304 from the cache.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene
        .origin
        .plays("/a", Reply::ok("hello").max_age(60).field("ETag", "\"v1\""));
    scene.get("/a").miss();
    scene
        .get_with("/a", "If-None-Match: \"v1\"\r\n")
        .is(304)
        .hit()
        .has("ETag", "\"v1\"");
    scene
        .get_with("/a", "If-None-Match: \"v0\"\r\n")
        .is(200)
        .hit()
        .says("hello");
    scene.origin.was_asked(1);
}
