//! Answers that vary with a request field are stored separately, one for each value of the field.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    let in_language = |text| Reply::ok(text).max_age(60).field("Vary", "Accept-Language");
    scene.origin.plays("/a", in_language("hello"));
    scene
        .get_with("/a", "Accept-Language: en\r\n")
        .miss()
        .says("hello");
    scene.origin.plays("/a", in_language("hallo"));
    scene
        .get_with("/a", "Accept-Language: de\r\n")
        .miss()
        .says("hallo");
    scene
        .get_with("/a", "Accept-Language: en\r\n")
        .hit()
        .says("hello");
    scene
        .get_with("/a", "Accept-Language: de\r\n")
        .hit()
        .says("hallo");
    scene.origin.was_asked(2);
}
