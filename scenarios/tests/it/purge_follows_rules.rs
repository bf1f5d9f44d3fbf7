//! A soft purge of a URL applies to the object that the operator's rules assign to this URL.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with()
        .config("[[rule]]\nquery_ignore = \"utm_*\"")
        .begin();
    let reply = Reply::ok("hello").max_age(600).field("ETag", "\"1\"");
    scene.origin.plays("/a?b=1", reply);
    scene.get("/a?b=1&utm_x=2").miss();
    scene.get("/a?b=1&utm_x=3").hit();
    let url = scene.url("/a?utm_y=7&b=1");
    let body = format!("{{\"url\": \"{url}\", \"soft\": true}}");
    let length = body.len();
    Client::to(scene.admin())
        .send(format!(
            "POST /purge HTTP/1.1\r\nHost: localhost\r\nX-Foxy-Admin: 1\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        ))
        .answer()
        .is(200)
        .mentions("\"purge\"");
    scene.get("/a?b=1&utm_x=3").is(200);
    scene.origin.was_asked(2);
    assert_eq!(scene.origin.last().field("If-None-Match"), Some("\"1\""));
}
