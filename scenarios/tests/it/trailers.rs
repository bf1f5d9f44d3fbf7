//! Trailer fields of a chunked answer reach a client that requests them.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n";
    scene.origin.plays("/a", Reply::raw(answer));
    scene
        .get_with("/a", "TE: trailers\r\n")
        .is(200)
        .says("hello")
        .has("X-Sum", "7");
}
