//! An expired object is validated at the origin and becomes fresh again.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene
        .origin
        .plays("/a", Reply::ok("hello").max_age(60).field("ETag", "\"v1\""));
    scene.get("/a").miss();
    scene.wait(secs(61));
    scene
        .get("/a")
        .is(200)
        .says("hello")
        .cache_says("fwd=stale; fwd-status=304");
    assert_eq!(scene.origin.last().field("If-None-Match"), Some("\"v1\""));
    scene.wait(secs(59));
    scene.get("/a").hit().has("Age", "59");
    scene.origin.was_asked(2);
}
