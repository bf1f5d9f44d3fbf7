//! An object that has changed at the origin replaces the stored object.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene
        .origin
        .plays("/a", Reply::ok("old").max_age(60).field("ETag", "\"v1\""));
    scene.get("/a").says("old");
    scene
        .origin
        .plays("/a", Reply::ok("new").max_age(60).field("ETag", "\"v2\""));
    scene.get("/a").hit().says("old");
    scene.wait(secs(61));
    scene.get("/a").miss().says("new");
    scene.get("/a").hit().says("new");
}
