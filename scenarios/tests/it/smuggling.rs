//! Requests that two parsers could interpret differently are refused, and the connection is closed.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene.origin.plays("/a", Reply::ok("hello"));
    let (url, host) = (scene.url("/a"), scene.origin.authority());
    for (name, rest) in [
        (
            "two lengths",
            "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        ),
        (
            "length and chunked",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        ("folded line", "X-A: 1\r\n b\r\n\r\n"),
        ("blank before colon", "X-A : 1\r\n\r\n"),
        ("two hosts", "Host: other.test\r\n\r\n"),
        ("bare line feed", "X-A: 1\n\r\n\r\n"),
        ("bad length", "Content-Length: +5\r\n\r\n"),
        ("zero byte", "X-A: a\0b\r\n\r\n"),
    ] {
        let answer = scene.send_raw(&format!("POST {url} HTTP/1.1\r\nHost: {host}\r\n{rest}"));
        assert_eq!(answer.status, 400, "{name}: {answer:?}");
    }
    scene.origin.was_asked(0);
}
