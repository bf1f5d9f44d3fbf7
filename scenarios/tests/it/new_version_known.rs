//! A client that has the new version already gets a 304 when that replaces what was stored.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    let version = |tag: &str, body: &str| Reply::ok(body).max_age(10).field("ETag", tag);
    scene.origin.plays("/a", version("\"v1\"", "one"));
    scene.get("/a").says("one");
    scene.wait(secs(11));
    scene.origin.plays("/a", version("\"v2\"", "two"));
    let known = scene.get_with("/a", "If-None-Match: \"v2\"\r\n");
    known.is(304).has("ETag", "\"v2\"").lacks("Content-Length");
    assert_eq!(scene.origin.last().field("If-None-Match"), Some("\"v1\""));
    scene.get("/a").hit().says("two");
    scene.wait(secs(11));
    scene.origin.plays("/a", version("\"v3\"", "three"));
    let other = scene.get_with("/a", "If-None-Match: \"v2\"\r\n");
    other.is(200).says("three");
}
