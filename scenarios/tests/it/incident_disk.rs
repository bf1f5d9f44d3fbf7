//! A disk that fails, as an operator sees it: in the metrics that the alert rules watch, in the
//! figures of `/stats`, and in `/readyz`.

use foxy_disk::{Fault, FaultRule, OpClass};
use foxy_scenarios::*;

const EIO: i32 = 5;

#[test]
fn story() {
    let scene = Scene::with().disk().begin();
    scene.origin.plays("/a", Reply::ok("hello").max_age(3600));
    scene.get("/a").miss();
    scene.settle();
    assert_eq!(scene.page("/readyz"), "ready\n");
    scene
        .disk()
        .set_faults(FaultRule::new(OpClass::Any, Fault::Errno(EIO)));
    for n in 0..20 {
        let path = format!("/{n}");
        scene.origin.plays(&path, Reply::ok("fresh").max_age(3600));
        scene.get(&path).is(200).says("fresh");
        scene.wait(secs(1));
    }
    scene.until("the store is not well", || {
        scene.page("/readyz").contains("\nstore ")
    });
    let ready = scene.page("/readyz");
    assert!(ready.starts_with("ready\n"), "{ready}");
    let state = ready.trim().rsplit(' ').next().unwrap_or_default();
    assert!(["read-only", "offline"].contains(&state), "{ready}");
    scene.exports(&format!(
        "foxy_store_state{{store=\"0\",state=\"{state}\"}}"
    ));
    let health = format!("\"health\": \"{state}\"");
    assert!(scene.page("/stats").contains(&health));
}
