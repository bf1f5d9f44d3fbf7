//! Foxy gives a path one form for the cache, the origin, purges and `/why`. With another setting, Foxy keeps
//! paths as it received them.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene
        .origin
        .plays("/~a/%2E%2E/x", Reply::ok("one").max_age(60));
    scene.get("/%7ea/%2e%2e/x").miss().says("one");
    scene.get("/~a/%2E%2E/x").hit();
    assert!(why(&scene, "/%7Ea/%2e%2E/x").contains("\"decision\": \"hit\""));
    purge(&scene, "prefix", "/%7e");
    scene.get("/~a/%2E%2E/x").miss();
    purge(&scene, "url", "/%7ea/%2e%2e/x#part");
    scene.get("/~a/%2E%2E/x").miss();
}

#[test]
fn paths_kept_as_received() {
    let scene = Scene::with()
        .config("[cache]\nnormalise = false")
        .site()
        .begin();
    for path in ["/%7ea", "/~a"] {
        scene.origin.plays(path, Reply::ok(path).max_age(60));
        scene.get(path).miss().says(path);
        scene
            .get_at(scene.site(), "www.test", path)
            .miss()
            .says(path);
    }
    purge(&scene, "prefix", "/%7e");
    scene.get("/~a").hit();
    scene.get("/%7ea").miss();
}

fn ask(scene: &Scene, request: &str) -> String {
    let request = format!("{request} HTTP/1.1\r\nHost: localhost\r\nX-Foxy-Admin: 1\r\n\r\n");
    let answer = Client::to(scene.admin()).send(request).answer();
    answer.is(200);
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// Encodes a URL for use in a query.
fn quoted(scene: &Scene, path: &str) -> String {
    scene.url(path).replace('%', "%25").replace('#', "%23")
}

fn why(scene: &Scene, path: &str) -> String {
    let url = quoted(scene, path);
    ask(scene, &format!("GET /why?site=forward&url={url}"))
}

fn purge(scene: &Scene, kind: &str, path: &str) {
    let url = quoted(scene, path);
    ask(scene, &format!("POST /purge?site=forward&{kind}={url}"));
}
