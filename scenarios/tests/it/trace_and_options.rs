//! A request with `Max-Forwards: 0` is not forwarded. The answer to TRACE contains no credentials.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene.origin.plays("/a", Reply::ok("hello"));
    scene.ask("OPTIONS", "/a", "Max-Forwards: 0\r\n").is(200);
    scene
        .ask("TRACE", "/a", "Max-Forwards: 0\r\nCookie: secret=1\r\n")
        .is(200);
    let shown = scene.ask("TRACE", "/a", "Max-Forwards: 0\r\nCookie: secret=1\r\n");
    assert!(
        !String::from_utf8_lossy(&shown.body).contains("secret"),
        "{shown:?}"
    );
    scene.origin.was_asked(0);
    scene.ask("OPTIONS", "/a", "Max-Forwards: 3\r\n").is(200);
    assert_eq!(scene.origin.last().field("Max-Forwards"), Some("2"));
}
