//! If an origin breaks off a body, the answer is not presented as complete, and it is not stored.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    let length = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100\r\n\r\nshort";
    let chunked = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n";
    for (path, bytes) in [("/length", length), ("/chunked", chunked)] {
        scene.origin.plays(path, Reply::raw(bytes).close());
        scene.get(path).broke_off();
        scene.origin.plays(path, Reply::ok("whole").max_age(60));
        scene.get(path).miss().says("whole");
    }
}
