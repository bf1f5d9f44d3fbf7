//! After SIGKILL and a restart, objects that were on disk for a few seconds are still stored.

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
    scene.settle();
    scene.kill_and_start();
    for n in 0..50 {
        scene
            .get(&format!("/{n}"))
            .hit()
            .says(format!("object {n}"));
    }
    scene.origin.was_asked(50);
}
