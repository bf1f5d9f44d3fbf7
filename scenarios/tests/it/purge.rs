//! `PURGE` removes the stored objects of a URL.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene.origin.plays("/a", Reply::ok("hello").max_age(60));
    scene.get("/a").miss();
    scene.get("/a").hit();
    scene.ask("PURGE", "/a", "").is(200);
    scene.get("/a").miss();
    scene.origin.was_asked(2);
}
