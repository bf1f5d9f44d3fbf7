//! A request that returns to the same Foxy is refused, so that it does not circulate for ever.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    scene.origin.plays("/a", Reply::ok("hello"));
    scene.get("/a").is(200);
    let via = scene
        .origin
        .last()
        .field("Via")
        .expect("requests carry Via")
        .to_owned();
    scene
        .get_with("/a", &format!("Via: {via}\r\n"))
        .is(508)
        .mentions("loop-detected");
    scene.get_with("/a", "Via: 1.1 another\r\n").is(200);
}
