//! If an origin's answer is not HTTP, the client gets a 502.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    for (path, bytes) in [
        ("/noise", "\u{1}\u{2}\u{3} what is this?\r\n\r\n"),
        (
            "/both",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            "/lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        ),
        ("/nothing", ""),
    ] {
        scene.origin.plays(path, Reply::raw(bytes).close());
        let answer = scene.get(path);
        assert_eq!(answer.status, 502, "{path}: {answer:?}");
    }
}
