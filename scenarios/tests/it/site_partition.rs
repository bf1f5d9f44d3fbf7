//! A site and the forward proxy do not see each other's objects.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with().site().begin();
    scene.origin.plays("/a", Reply::ok("hello").max_age(60));
    let host = scene.origin.authority();
    scene.get("/a").miss();
    scene.get_at(scene.site(), &host, "/a").miss().says("hello");
    scene.get_at(scene.site(), &host, "/a").hit();
    scene.origin.was_asked(2);
}
