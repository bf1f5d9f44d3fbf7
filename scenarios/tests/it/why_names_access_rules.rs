//! `/why` lists the access rules that a client's request passes, up to the rule that decides.

use foxy_scenarios::*;

#[test]
fn story() {
    let rules = "[[access_rule]]\nname = \"office\"\naction = \"deny\"\nclient = [\"10.0.0.0/8\"]\n\
                 host = [\"origin.test\"]\n";
    let scene = Scene::with().config(rules).begin();
    let why = |from: &str| {
        let target = format!("/why?url=http%3A%2F%2Forigin.test%2Fa{from}");
        scene.get_at(scene.admin(), "localhost", &target)
    };
    why("&from=10.1.2.3")
        .is(200)
        .mentions("\"office: fits and decides: deny");
    let other = why("&from=192.0.2.1");
    other
        .is(200)
        .mentions("office: not for this client")
        .mentions("allowed: no access rule fits");
    // Without a client in the query, Foxy assumes a client on this machine.
    why("").is(200).mentions("office: not for this client");
    why("&from=nobody").is(400).mentions("not an address");
}
