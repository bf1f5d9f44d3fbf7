//! The admin address: health, statistics, and the clients that may use it.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene.origin.plays("/a", Reply::ok("hello").max_age(60));
    scene.get("/a").miss();
    scene.get("/a").hit();
    // A worker counts a request only after its last byte is sent.
    scene.until("both are counted", || {
        scene.foxy().proxy().totals().requests() == 2
    });
    let get = |path| scene.get_at(scene.admin(), "localhost", path);
    get("/healthz").is(200).says("ok\n");
    get("/readyz").is(200);
    get("/").is(200).mentions("<title>Foxy</title>");
    get("/nothing").is(404);
    get("/stats")
        .is(200)
        .mentions("\"hit_ratio\": 0.5")
        .mentions("\"memory-hit\": 1");
    get("/metrics")
        .is(200)
        .mentions("foxy_requests_total{result=\"memory-hit\"} 1\n");
    scene
        .get_at(scene.admin(), "evil.example", "/stats")
        .is(403);
    scene
        .get_at(scene.admin(), "localhost", &scene.url("/a"))
        .is(403)
        .mentions("not a proxy");
}
