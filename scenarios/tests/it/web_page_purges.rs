//! A page in a browser sends `PURGE` through the proxy to its own host. Browsers allow this without a
//! preflight. Nothing is purged, not even the page's own URL.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with().disk().begin();
    for path in ["/a", "/b"] {
        let reply = Reply::ok("hello")
            .max_age(60)
            .field("Surrogate-Key", "news");
        scene.origin.plays(path, reply);
        scene.get(path).miss();
    }
    let browser = format!(
        "Origin: http://{0}\r\nReferer: http://{0}/x\r\nUser-Agent: Mozilla/5.0\r\n",
        scene.origin.authority()
    );
    for fields in [
        "X-Purge-Method: all\r\n",
        "X-Purge-Method: host\r\n",
        "X-Purge-Method: regex\r\n",
        "X-Purge-Method: prefix\r\n",
        "Surrogate-Key: news\r\n",
        "Sec-Fetch-Site: same-origin\r\n",
        "",
    ] {
        for path in ["/a", "/|."] {
            scene
                .ask("PURGE", path, &format!("{browser}{fields}"))
                .is(403)
                .mentions("purge-from-a-page");
        }
    }
    scene.get("/a").hit();
    scene.get("/b").hit();
}
