//! A client that never completes its request head gets a 408, and its connection is closed.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with().config("[timeouts]\nhead = \"1s\"").begin();
    let mut client = scene.client();
    client.send("GET http://origin.test/ HTTP/1.1\r\nHost: or");
    client.answer().is(408).mentions("head-timeout");
}
