//! Purges that were acknowledged before SIGKILL still apply afterwards.

use foxy_scenarios::*;

#[test]
fn story() {
    let mut scene = Scene::with().disk().begin();
    scene.origin.plays("/a", Reply::ok("hello").max_age(3600));
    scene.get("/a").miss();
    scene.settle();
    scene.ask("PURGE", "/a", "").is(200);
    scene.kill_and_start();
    scene.get("/a").miss();
}
