//! A client that waits for a 100 answer gets it, and the client's body reaches the origin.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene.origin.plays("/a", Reply::ok("thanks"));
    let (url, host) = (scene.url("/a"), scene.origin.authority());
    let mut client = scene.client();
    client.send(format!(
        "PUT {url} HTTP/1.1\r\nHost: {host}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"
    ));
    assert!(client.head().starts_with("HTTP/1.1 100 "));
    client.send("body").answer().is(200).says("thanks");
    assert_eq!(scene.origin.last().body, b"body");
}
