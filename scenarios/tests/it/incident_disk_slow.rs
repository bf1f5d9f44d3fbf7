//! A disk that is slow, as an operator sees it.

use foxy_disk::{Fault, FaultPlan, FaultRule, OpClass};
use foxy_scenarios::*;

#[test]
fn it_is_slow() {
    let scene = Scene::with_faulty_disk(FaultRule::new(OpClass::Write, Fault::Stuck));
    scene.goes_on();
    scene.shows(Incident {
        alert: "FoxyStoreSlow",
        sample: "foxy_store_state{store=\"0\",state=\"slow\"}",
        value: Some("1"),
        stats: "\"health\": \"slow\"",
        ready: " is slow",
    });
    scene.disk().set_faults(FaultPlan::default());
    scene.disk().unstick();
}
