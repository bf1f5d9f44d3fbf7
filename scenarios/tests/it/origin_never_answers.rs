//! If an origin does not answer in time, the client gets a 504.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with()
        .config("[timeouts]\nfirst_byte = \"1s\"")
        .begin();
    scene
        .origin
        .plays("/a", Reply::raw("").pause(60_000).close());
    scene.get("/a").is(504).mentions("origin-answer-timeout");
}
