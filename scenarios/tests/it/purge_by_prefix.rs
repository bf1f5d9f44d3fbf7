//! A purge by prefix, by host or by expression covers the matching objects. Foxy counts these objects in the
//! background, and shows the count to a request with the purge's number.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with().disk().token().begin();
    let paths = ["/shop/1", "/shop/2", "/blog/1"];
    for path in paths {
        scene.origin.plays(path, Reply::ok("hello").max_age(60));
        scene.get(path).miss();
    }
    let prefix = scene.url("/shop/").replace(':', "%3A");
    let started = admin(&scene, "POST", &format!("/purge?prefix={prefix}"));
    let number = number_in(&started);
    scene.get("/shop/1").miss();
    scene.get("/blog/1").hit();
    assert_eq!(number, 1, "numbers begin at 1");
    let method = |word: &str| format!("{TOKEN}X-Purge-Method: {word}\r\n");
    let counted = || {
        scene.foxy().wake_stores();
        let status = admin(&scene, "GET", &format!("/purges/{number}"));
        status.contains("\"done\": true") && status.contains("\"objects\": 2")
    };
    scene.until("both objects are counted", counted);
    scene.ask("PURGE", "/b.*1", &method("regex")).is(200);
    scene.get("/blog/1").miss();
    scene.get("/shop/1").hit();
    scene.ask("PURGE", "/", &method("host")).is(200);
    scene.get("/shop/1").miss();
}

fn admin(scene: &Scene, method: &str, target: &str) -> String {
    let request =
        format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nX-Foxy-Admin: 1\r\n\r\n");
    let answer = Client::to(scene.admin()).send(request).answer();
    answer.is(200);
    String::from_utf8_lossy(&answer.body).into_owned()
}

fn number_in(started: &str) -> u64 {
    let digits = started.split("\"purge\": ").nth(1).unwrap_or_default();
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let number = digits[..end.unwrap_or(0)].parse();
    number.unwrap_or_else(|_| panic!("no number in {started}"))
}
