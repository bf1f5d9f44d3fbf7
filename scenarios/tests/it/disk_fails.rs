//! If every operation of a disk fails, hits are lost, but every request is answered.

use foxy_disk::{Fault, FaultRule, OpClass};
use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with().disk().begin();
    scene.origin.plays("/a", Reply::ok("hello").max_age(3600));
    scene.get("/a").miss();
    scene.settle();
    scene
        .disk()
        .set_faults(FaultRule::new(OpClass::Any, Fault::Errno(5)));
    for n in 0..20 {
        scene
            .origin
            .plays(&format!("/{n}"), Reply::ok("fresh").max_age(3600));
        scene.get(&format!("/{n}")).is(200).says("fresh");
        scene.wait(secs(1));
    }
    scene.get("/a").is(200).says("hello");
}
