//! Many clients that request the same object at the same time cause one request to the origin.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\n";
    scene.origin.plays(
        "/a",
        Reply::raw("").pause(500).then(head).then("0123456789"),
    );
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                scene.get("/a").is(200).says("0123456789");
            });
        }
    });
    scene.origin.was_asked(1);
}
