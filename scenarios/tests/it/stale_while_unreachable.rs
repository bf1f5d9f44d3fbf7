//! An expired object is served while its origin cannot be reached.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene
        .origin
        .plays("/a", Reply::ok("hello").max_age(60).field("ETag", "\"v1\""));
    scene.get("/a").miss();
    scene.wait(secs(120));
    scene.origin.plays("/a", Reply::raw("").close());
    scene.get("/a").is(200).says("hello").has("Age", "120");
}
