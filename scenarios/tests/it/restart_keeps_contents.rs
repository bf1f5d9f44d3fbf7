//! After SIGTERM and a restart, all objects are still stored.

use foxy_scenarios::*;

#[test]
fn story() {
    let mut scene = Scene::with().disk().begin();
    for n in 0..50 {
        scene.origin.plays(
            &format!("/{n}"),
            Reply::ok(format!("object {n}")).max_age(3600),
        );
        scene.get(&format!("/{n}")).miss();
    }
    scene.restart();
    for n in 0..50 {
        scene
            .get(&format!("/{n}"))
            .hit()
            .says(format!("object {n}"));
    }
    scene.origin.was_asked(50);
}
