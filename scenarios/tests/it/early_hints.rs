//! 103 answers are forwarded before the final answer.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </s.css>; rel=preload\r\n\r\n";
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage";
    scene.origin.plays("/", Reply::raw(hints).then(page));
    let answer = scene.get("/");
    answer.is(200).says("page");
    assert!(
        answer
            .interim
            .iter()
            .any(|head| head.contains("Link: </s.css>")),
        "{answer:?}"
    );
}
