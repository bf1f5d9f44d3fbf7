//! HEAD is answered from the object that a GET has stored.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene.origin.plays("/a", Reply::ok("hello").max_age(60));
    scene.get("/a").miss();
    let answer = scene.ask("HEAD", "/a", "");
    answer.hit().is(200).has("Content-Length", "5").says("");
    scene.origin.was_asked(1);
}
