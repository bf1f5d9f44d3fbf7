//! If the disk has no space, all answers are forwarded without being stored.

use foxy_disk::{Fault, FaultRule, OpClass};
use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with().disk().begin();
    scene
        .disk()
        .set_faults(FaultRule::new(OpClass::Write, Fault::Errno(28)));
    for n in 0..20 {
        scene.origin.plays(
            &format!("/{n}"),
            Reply::ok(vec![b'x'; 50_000]).max_age(3600),
        );
        scene.get(&format!("/{n}")).is(200).says(vec![b'x'; 50_000]);
        scene.wait(secs(1));
    }
}
