//! An object of many fragments is stored, served completely and in parts, and is still stored after a
//! restart.

use foxy_scenarios::*;

#[test]
fn story() {
    let mut scene = Scene::with().disk().begin();
    let body: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    scene
        .origin
        .plays("/a", Reply::ok(&body).max_age(3600).field("ETag", "\"v1\""));
    scene.get("/a").miss().says(&body);
    scene.settle();
    scene.get("/a").hit().says(&body);
    scene.restart();
    scene.get("/a").hit().says(&body);
    let part = scene.get_with("/a", "Range: bytes=1000000-1000999\r\n");
    part.is(206).hit().says(&body[1_000_000..1_001_000]);
    scene.origin.was_asked(1);
}
