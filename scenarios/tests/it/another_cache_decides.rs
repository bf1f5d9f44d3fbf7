//! If another cache takes the place of the store, this cache decides whether and when a request is a hit.

use foxy_base::{Clock, SystemClock};
use foxy_scenarios::*;

#[test]
fn story() {
    let other = OtherCache::new();
    let scene = Scene::with().stand_in(other.clone()).begin();
    scene.origin.plays("/a", Reply::ok("hello").max_age(60));
    scene.get("/a").miss().says("hello");
    scene.get("/a").hit().says("hello");

    other.will(Next::Read(true));
    let clock = SystemClock::default();
    let begun = clock.mono();
    scene.get("/a").hit().says("hello");
    assert!(
        clock.mono().since(begun) >= READING,
        "answered before the bytes were there"
    );
    scene.origin.was_asked(1);

    for next in [Next::Miss, Next::Read(false), Next::Gone] {
        other.will(next);
        scene.get("/a").miss().says("hello");
    }
    scene.origin.was_asked(4);
    let kept = other.kept();
    assert_eq!(kept.len(), 4, "each time that it was fetched");
    assert!(kept.iter().all(|k| *k == kept[0] && k.1 == 5), "{kept:?}");
}
