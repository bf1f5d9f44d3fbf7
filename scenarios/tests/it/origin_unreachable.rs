//! Names that do not exist and ports that nobody listens on are told apart.

use foxy_scenarios::*;

#[test]
fn story() {
    // Nobody listens on port 1, which plain requests may not reach otherwise.
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
