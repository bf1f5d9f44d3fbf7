//! A protocol upgrade is forwarded. After it, bytes pass in both directions.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    let accepted =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    scene
        .origin
        .plays("/ws", Reply::raw(accepted).echo(5).close());
    let (url, host) = (scene.url("/ws"), scene.origin.authority());
    let mut client = scene.client();
    client.send(format!(
        "GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n"
    ));
    client.answer().is(101).has("Upgrade", "websocket");
    client.send("hello");
    assert_eq!(client.exactly(5), b"hello");
}
