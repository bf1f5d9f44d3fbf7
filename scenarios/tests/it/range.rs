//! Parts of a stored object are served from the cache.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene.origin.plays(
        "/a",
        Reply::ok("0123456789").max_age(60).field("ETag", "\"v1\""),
    );
    scene.get("/a").miss();
    let part = scene.get_with("/a", "Range: bytes=2-4\r\n");
    part.is(206)
        .hit()
        .says("234")
        .has("Content-Range", "bytes 2-4/10");
    scene
        .get_with("/a", "Range: bytes=-3\r\n")
        .is(206)
        .says("789");
    scene
        .get_with("/a", "Range: bytes=20-\r\n")
        .is(416)
        .has("Content-Range", "bytes */10");
    scene.origin.was_asked(1);
}
