//! A body of unknown length is streamed to the origin.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene.origin.plays("/a", Reply::ok("thanks"));
    let (url, host) = (scene.url("/a"), scene.origin.authority());
    let mut client = scene.client();
    client.send(format!(
        "POST {url} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ));
    client.send("3\r\nabc\r\n").send("2\r\nde\r\n0\r\n\r\n");
    client.answer().is(200).says("thanks");
    assert_eq!(scene.origin.last().body, b"abcde");
}
