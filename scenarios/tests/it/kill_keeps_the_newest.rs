//! After SIGKILL, the older version of a replaced object does not return.

use foxy_scenarios::*;

#[test]
fn story() {
    let mut scene = Scene::with().disk().begin();
    scene.origin.plays("/a", Reply::ok("old").max_age(3600));
    scene.get("/a").miss();
    scene.settle();
    scene.origin.plays("/a", Reply::ok("new").max_age(3600));
    scene
        .get_with("/a", "Cache-Control: no-cache\r\n")
        .says("new");
    scene.settle();
    scene.kill_and_start();
    scene.get("/a").hit().says("new");
}
