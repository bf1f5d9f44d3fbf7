//! On loopback, the admin address needs no token. If a token is set, a listener accepts every kind of purge
//! from a request that contains the token.

use foxy_scenarios::*;

#[test]
fn story() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let token_file = format!("[access]\nadmin_token_file = \"{}\"\n", file.display());
    drop(Scene::with().config(&token_file).begin());
    let token = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    let header = format!("X-Foxy-Token: {token}\r\n");

    let scene = Scene::with().config(&token_file).begin();
    scene.get_at(scene.admin(), "localhost", "/stats").is(200);
    let again = std::fs::read_to_string(&file).unwrap();
    assert_eq!(again.trim(), token, "a later start keeps it");
    scene.origin.plays("/a", Reply::ok("hello").max_age(60));
    scene.get("/a").miss();
    scene.ask("PURGE", "/x", "X-Purge-Method: all\r\n").is(403);
    scene.get("/a").hit();
    let all = format!("{header}X-Purge-Method: all\r\n");
    scene.ask("PURGE", "/x", &all).is(200);
    scene.get("/a").miss();
}
