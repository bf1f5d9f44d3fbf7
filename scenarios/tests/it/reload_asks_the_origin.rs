//! A reload in a browser (`Cache-Control: no-cache`) sends a request to the origin, even if the object is
//! fresh.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene.origin.plays("/a", Reply::ok("old").max_age(60));
    scene.get("/a").says("old");
    scene.origin.plays("/a", Reply::ok("new").max_age(60));
    scene.get("/a").hit().says("old");
    scene
        .get_with("/a", "Cache-Control: no-cache\r\n")
        .says("new");
    scene.get("/a").hit().says("new");
}
