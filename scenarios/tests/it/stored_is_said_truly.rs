//! `stored` in Cache-Status is not said of what `max_size` refuses, or may refuse yet.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with().config("[cache]\nmax_size = 10").begin();
    let chunked = |body: &str| {
        Reply::raw(format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        ))
    };
    scene
        .origin
        .plays("/fits", Reply::ok("0123456789").max_age(60));
    scene
        .origin
        .plays("/large", Reply::ok("0123456789a").max_age(60));
    scene.origin.plays("/open", chunked("0123456789"));
    scene.origin.plays("/open-large", chunked("0123456789a"));
    scene.get("/fits").cache_says("stored");
    for path in ["/large", "/open", "/open-large"] {
        let answer = scene.get(path);
        let said = answer.field("Cache-Status").unwrap_or_default();
        assert!(!said.contains("stored"), "{path}: {said}");
    }
    scene.get("/fits").hit();
    scene.get("/large").miss();
    scene.get("/open").hit();
    scene.get("/open-large").miss();
}
