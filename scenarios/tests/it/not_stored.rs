//! Answers that must not be shared are not stored: no-store, private, and answers to authorised
//! requests.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    for (path, directive) in [("/none", "no-store"), ("/own", "private, max-age=60")] {
        scene
            .origin
            .plays(path, Reply::ok("secret").field("Cache-Control", directive));
        scene.get(path).miss();
        scene.get(path).miss();
    }
    scene.origin.plays("/login", Reply::ok("mine").max_age(60));
    scene
        .get_with("/login", "Authorization: Basic eDp5\r\n")
        .miss();
    scene.get("/login").miss();
    scene.origin.was_asked(6);
}
