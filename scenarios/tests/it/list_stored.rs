//! The admin address lists the stored objects, in memory and on disk.

use foxy_scenarios::*;

#[test]
fn story() {
    let mut scene = Scene::with().disk().begin();
    for path in ["/a", "/b"] {
        scene.origin.plays(path, Reply::ok("hello").max_age(60));
        scene.get(path).miss();
    }
    let list = |scene: &Scene, query: &str| {
        let request = format!("GET /ls?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let answer = Client::to(scene.admin()).send(request).answer();
        answer.is(200);
        String::from_utf8_lossy(&answer.body).into_owned()
    };
    let lines = list(&scene, "");
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(lines.contains("\"tier\":\"pending\""), "{lines}");
    assert_eq!(list(&scene, "limit=1").lines().count(), 1);
    assert!(list(&scene, "pattern=%2Fa").contains("/a\""));
    assert_eq!(list(&scene, "pattern=*%2Fc"), "");
    scene.settle();
    scene.restart();
    let lines = list(&scene, "pattern=*%2Fb");
    assert!(
        lines.contains("\"tier\":\"store\"") && lines.contains("\"segment\":"),
        "{lines}"
    );
    assert!(
        lines.contains("\"bytes\":5,") && lines.contains("\"ttl_seconds\":"),
        "{lines}"
    );
}
