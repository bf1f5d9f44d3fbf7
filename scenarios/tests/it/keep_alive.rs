//! One connection carries many requests. Hop-by-hop fields are not forwarded.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene.origin.plays("/a", Reply::ok("hello").max_age(60));
    let (url, host) = (scene.url("/a"), scene.origin.authority());
    let mut client = scene.client();
    for _ in 0..5 {
        client.send(format!(
            "GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: X-Mine\r\nX-Mine: 1\r\nX-Other: 2\r\n\r\n"
        ));
        client.answer().is(200).says("hello");
    }
    let asked = scene.origin.last();
    assert_eq!(
        (asked.field("X-Mine"), asked.field("X-Other")),
        (None, Some("2"))
    );
    scene.origin.was_asked(1);
}
