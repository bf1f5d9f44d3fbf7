//! Clients of a listener on the network cannot reach loopback addresses, unless the configuration permits
//! it.

use foxy_scenarios::*;

#[test]
fn story() {
    // If one listener is open to the network, the rule applies to all listeners of Foxy.
    let open = "[[site]]\nname = \"x\"\nlisten = \"0.0.0.0:0\"\norigin = \"http://origin.test\"\n";
    let scene = Scene::with().config(open).begin();
    scene.origin.plays("/a", Reply::ok("inside"));
    scene
        .get("/a")
        .is(403)
        .mentions("destination-private-address");

    let told = format!("[access]\nallow_destinations = [\"127.0.0.0/8\"]\n{open}");
    let scene = Scene::with().config(&told).begin();
    scene.origin.plays("/a", Reply::ok("inside"));
    scene.get("/a").is(200).says("inside");
}
