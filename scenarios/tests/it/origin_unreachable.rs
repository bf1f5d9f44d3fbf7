//! The answer distinguishes names that do not exist from ports on which no server listens.

use foxy_scenarios::*;

#[test]
fn story() {
    // No server listens on port 1. With the default settings, plain requests may not reach this port.
    let scene = Scene::with().config("[access]\nports = \"all\"").begin();
    let ask = |url: &str| {
        let host = url.trim_start_matches("http://").trim_end_matches('/');
        scene.send_raw(&format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
    };
    ask("http://nowhere.test/")
        .is(502)
        .mentions("origin-name-unknown");
    ask("http://origin.test:1/")
        .is(502)
        .mentions("origin-unreachable");
}
