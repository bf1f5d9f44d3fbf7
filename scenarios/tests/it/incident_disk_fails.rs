//! A disk that fails, as an operator sees it.

use foxy_disk::{Fault, FaultRule, OpClass};
use foxy_scenarios::*;

#[test]
fn it_fails() {
    let scene = Scene::with_faulty_disk(FaultRule::new(OpClass::Any, Fault::EIO));
    scene.goes_on();
    scene.until("the store is not well", || {
        scene.page("/readyz").contains("\nstore ")
    });
    let ready = scene.page("/readyz");
    assert!(ready.starts_with("ready\n"), "{ready}");
    // Failed writes make the store read-only. If reads also fail, the store may be offline instead.
    let (state, alert) = match ready.contains("read-only") {
        true => ("read-only", "FoxyStoreReadOnly"),
        false => ("offline", "FoxyStoreOffline"),
    };
    scene.shows(Incident {
        alert,
        sample: &format!("foxy_store_state{{store=\"0\",state=\"{state}\"}}"),
        value: Some("1"),
        stats: &format!("\"health\": \"{state}\""),
        ready: &format!(" is {state}"),
    });
}
