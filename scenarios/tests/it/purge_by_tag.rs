//! `PURGE` with a tag and the admin token purges exactly the objects whose answers had this tag, in any of
//! three fields. A kill right after the answer does not undo the purge.

use foxy_scenarios::*;

#[test]
fn story() {
    let mut scene = Scene::with().disk().token().begin();
    let reply = |name: &str, tags: &str| Reply::ok("hello").max_age(3600).field(name, tags);
    scene
        .origin
        .plays("/a", reply("Surrogate-Key", "news front"));
    scene.origin.plays("/b", reply("Cache-Tag", "sport, news"));
    scene.origin.plays("/c", reply("xkey", "news"));
    scene.origin.plays("/d", reply("Cache-Tag", "newsletter"));
    for path in ["/a", "/b", "/c", "/d"] {
        scene.get(path).miss();
        scene.get(path).hit();
    }
    scene.settle();
    scene
        .ask("PURGE", "/", &format!("{TOKEN}Surrogate-Key: news\r\n"))
        .is(200)
        .mentions("purges");
    scene.kill_and_start();
    for path in ["/a", "/b", "/c"] {
        scene.get(path).miss();
        scene.get(path).hit();
    }
    scene.get("/d").hit();
}
