//! Origins that cannot be reached, or do not answer, as an operator sees them.

use foxy_scenarios::*;

#[test]
fn an_origin_of_the_forward_proxy_that_fails() {
    let scene = Scene::with().config("[access]\nports = \"all\"").begin();
    // No server listens on port 1.
    let gone = "GET http://origin.test:1/ HTTP/1.1\r\nHost: origin.test:1\r\n\r\n";
    scene.send_raw(gone).is(502);
    scene.exports("foxy_origin_errors_total{reason=\"connect\"}");
    scene.exports("foxy_requests_total{result=\"origin-error\"}");
    scene.exports("foxy_upstream_failed_total");
    assert!(scene.page("/stats").contains("\"origin-error\": 1"));
}

#[test]
fn an_origin_that_does_not_answer_in_time() {
    let scene = Scene::with()
        .config("[timeouts]\nfirst_byte = \"1s\"")
        .begin();
    scene
        .origin
        .plays("/a", Reply::raw("").pause(60_000).close());
    scene.get("/a").is(504);
    scene.exports("foxy_origin_errors_total{reason=\"answer-timeout\"}");
    scene.exports("foxy_requests_total{result=\"origin-timeout\"}");
}
