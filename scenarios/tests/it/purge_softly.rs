//! A soft purge makes an object stale. The next request asks the origin to validate the object. While the
//! origin cannot be reached, the object is served stale.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    let reply = Reply::ok("hello").max_age(600).field("ETag", "\"1\"");
    scene.origin.plays("/a", reply);
    scene.get("/a").miss();
    scene.get("/a").hit();
    scene.ask("PURGE", "/a", "Fastly-Soft-Purge: 1\r\n").is(200);
    scene.origin.plays("/a", Reply::new("304 Not Modified", ""));
    scene.get("/a").says("hello");
    scene.origin.was_asked(2);
    // The object was validated once and is fresh again.
    scene.get("/a").hit();
    scene.ask("PURGE", "/a", "X-Purge-Method: soft\r\n").is(200);
    scene.origin.plays("/a", Reply::raw("").close());
    scene.get("/a").is(200).says("hello");
}
