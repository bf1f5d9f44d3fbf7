//! A disk that is full, as an operator sees it.

use foxy_disk::{Fault, FaultPlan, FaultRule, OpClass};
use foxy_scenarios::*;

#[test]
fn it_is_full() {
    let scene = Scene::with_faulty_disk(FaultRule::new(OpClass::Write, Fault::ENOSPC));
    scene.goes_on();
    scene.shows(Incident {
        alert: "FoxyStoreFull",
        sample: "foxy_store_full{store=\"0\"}",
        value: Some("1"),
        stats: "\"full\": true",
        ready: " is full",
    });
    // The disk has space again.
    scene.disk().set_faults(FaultPlan::default());
    for _ in 0..10 {
        scene.wait(secs(7));
    }
    scene.origin.plays("/b", Reply::ok("room").max_age(3600));
    scene.get("/b").is(200);
    scene.until("the store is written again", || {
        scene.wait(secs(1));
        !scene.page("/readyz").contains("\nstore ")
    });
}
