//! A disk that fails, is full or is slow, as an operator sees it: in the metrics that the alert rules
//! watch, in the figures of `/stats`, and in `/readyz`.

use foxy_disk::{Fault, FaultPlan, FaultRule, OpClass};
use foxy_scenarios::*;

/// A scene with a store, one object in it, and this fault from then on.
fn faulty(rule: FaultRule) -> Scene {
    let scene = Scene::with().disk().begin();
    scene.origin.plays("/a", Reply::ok("hello").max_age(3600));
    scene.get("/a").miss();
    scene.settle();
    assert!(!scene.page("/readyz").contains("\nstore "));
    scene.disk().set_faults(rule);
    scene
}

/// Asks for new objects while time passes. All are answered.
fn go_on(scene: &Scene) {
    for n in 0..20 {
        let path = format!("/{n}");
        scene.origin.plays(&path, Reply::ok("fresh").max_age(3600));
        scene.get(&path).is(200).says("fresh");
        scene.wait(secs(1));
    }
}

#[test]
fn it_fails() {
    let scene = faulty(FaultRule::new(OpClass::Any, Fault::EIO));
    go_on(&scene);
    scene.until("the store is not well", || {
        scene.page("/readyz").contains("\nstore ")
    });
    let ready = scene.page("/readyz");
    assert!(ready.starts_with("ready\n"), "{ready}");
    // Failed reads may take it further, from read-only to offline.
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

#[test]
fn it_is_full() {
    let scene = faulty(FaultRule::new(OpClass::Write, Fault::ENOSPC));
    go_on(&scene);
    scene.shows(Incident {
        alert: "FoxyStoreFull",
        sample: "foxy_store_full{store=\"0\"}",
        value: Some("1"),
        stats: "\"full\": true",
        ready: " is full",
    });
    // Room comes back.
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

#[test]
fn it_is_slow() {
    let scene = faulty(FaultRule::new(OpClass::Write, Fault::Stuck));
    go_on(&scene);
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
