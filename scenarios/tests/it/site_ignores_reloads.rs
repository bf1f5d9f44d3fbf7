//! Reloads by clients of a site do not cause requests to its origin. Reloads by clients of the forward proxy
//! cause such requests.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with().site().begin();
    scene.origin.plays("/a", Reply::ok("old").max_age(60));
    let host = scene.origin.authority();
    scene.get_at(scene.site(), &host, "/a").miss().says("old");
    scene.get("/a").miss().says("old");
    scene.origin.plays("/a", Reply::ok("new").max_age(60));
    scene.origin.plays("/b", Reply::ok("b").max_age(60));
    let mut stranger = Client::to(scene.site());
    for directive in ["no-cache", "max-age=0", "only-if-cached", "no-store"] {
        stranger.send(format!(
            "GET /a HTTP/1.1\r\nHost: {host}\r\nPragma: no-cache\r\nCache-Control: {directive}\r\n\r\n"
        ));
        stranger.answer().hit().says("old");
    }
    stranger.send(format!(
        "GET /b HTTP/1.1\r\nHost: {host}\r\nCache-Control: only-if-cached\r\n\r\n"
    ));
    stranger.answer().miss().says("b");
    scene
        .get_with("/a", "Cache-Control: no-cache\r\n")
        .says("new");
}
