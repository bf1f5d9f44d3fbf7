//! After a successful POST, the stored answer of the same URL is no longer used.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene.origin.plays("/a", Reply::ok("old").max_age(60));
    scene.get("/a").miss();
    let (url, host) = (scene.url("/a"), scene.origin.authority());
    scene
        .send_raw(&format!(
            "POST {url} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\n\r\nx"
        ))
        .is(200);
    scene.origin.plays("/a", Reply::ok("new").max_age(60));
    scene.get("/a").miss().says("new");
}
