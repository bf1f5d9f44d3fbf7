//! Only the first request goes to the origin. The age of the stored answer increases.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene.origin.plays("/a", Reply::ok("hello").max_age(60));
    scene
        .get("/a")
        .miss()
        .is(200)
        .says("hello")
        .cache_says("stored")
        .lacks("Age");
    scene.get("/a").hit().says("hello").has("Age", "0");
    scene.wait(secs(10));
    scene.get("/a").hit().says("hello").has("Age", "10");
    scene.origin.was_asked(1);
}
