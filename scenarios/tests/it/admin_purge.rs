//! A purge through the admin address needs a request field that web pages of other origins cannot send.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with().disk().begin();
    scene.origin.plays("/a", Reply::ok("hello").max_age(60));
    scene.get("/a").miss();
    let url = scene.url("/a").replace(':', "%3A").replace('/', "%2F");
    let purge = |field: &str| {
        let request = format!("POST /purge?url={url} HTTP/1.1\r\nHost: localhost\r\n{field}\r\n");
        Client::to(scene.admin()).send(request).answer()
    };
    purge("").is(403);
    scene.get("/a").hit();
    purge("X-Foxy-Admin: 1\r\n")
        .is(200)
        .mentions("\"durable\": true");
    scene.get("/a").miss();
}
