//! What must be validated and cannot be: a 504 (RFC 9111 section 5.2.2.2). Where nothing is stored
//! an origin that cannot be reached is a 502.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    for (path, control) in [
        ("/must", "max-age=10, must-revalidate"),
        ("/proxy", "max-age=10, proxy-revalidate"),
        ("/s", "s-maxage=10"),
    ] {
        let page = Reply::ok("page").field("Cache-Control", control);
        scene.origin.plays(path, page);
        scene.get(path).miss().says("page");
        scene.origin.plays(path, Reply::raw("").close());
    }
    scene.origin.plays("/none", Reply::raw("").close());
    scene.wait(secs(11));
    for path in ["/must", "/proxy", "/s"] {
        scene.get(path).is(504).mentions("origin-closed");
    }
    scene.get("/none").is(502);
}
