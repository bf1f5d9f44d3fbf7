//! Clients outside `access.allow_clients` may not use the forward proxy. Clients outside a site's list may
//! not use the site. The answer, the log and the metrics report the refusal.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with()
        .config("[access]\nallow_clients = [\"192.0.2.0/24\"]")
        .site()
        .begin();
    scene.origin.plays("/a", Reply::ok("hello").max_age(60));
    let refused = scene.get("/a");
    refused.is(403).mentions("client-not-allowed");
    assert!(
        refused.head.contains("detail=client-not-allowed"),
        "{refused:?}"
    );
    scene.get_at(scene.site(), "www", "/a").is(200);
    scene.until("it is counted", || {
        let metrics = scene.get_at(scene.admin(), "localhost", "/metrics");
        let text = String::from_utf8_lossy(&metrics.body).into_owned();
        text.contains("foxy_requests_total{result=\"denied\"} 1\n")
    });

    let site = "[[site]]\nname = \"x\"\nlisten = \"127.0.0.1:0\"\norigin = \"http://origin.test\"\n\
                allow_clients = [\"192.0.2.0/24\"]\n";
    let scene = Scene::with().config(site).begin();
    scene
        .get_at(scene.site(), "x", "/a")
        .is(403)
        .mentions("client-not-allowed");
}
