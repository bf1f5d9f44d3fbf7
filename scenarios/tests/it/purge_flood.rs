//! Clients that flood a listener with purges of every kind are refused. Objects that no purge names stay
//! stored, and a purge by the operator works during the flood.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with()
        .disk()
        .config("[access]\npurge_rate = 5")
        .begin();
    scene.origin.plays("/kept", Reply::ok("hello").max_age(600));
    scene.origin.plays("/gone", Reply::ok("hello").max_age(600));
    scene.get("/kept").miss();
    scene.get("/gone").miss();
    let kinds = [
        |n: usize| format!("Surrogate-Key: t{n}\r\n"),
        |n: usize| format!("Cache-Tag: t{n}\r\n"),
        |_: usize| "X-Purge-Method: prefix\r\n".to_owned(),
        |_: usize| "X-Purge-Method: regex\r\n".to_owned(),
        |_: usize| "X-Purge-Method: soft\r\n".to_owned(),
        |_: usize| String::new(),
    ];
    let mut refused = 0;
    for n in 0..600 {
        let fields = kinds[n % kinds.len()](n);
        let answer = scene.ask("PURGE", &format!("/flood/{n}.*"), &fields);
        assert!(matches!(answer.status, 200 | 403 | 404 | 429), "{answer:?}");
        refused += usize::from(answer.status == 429);
    }
    assert!(refused > 100, "{refused}");
    let active = scene.foxy().engine().purges().active_purges();
    assert!(active <= 64, "{active}");
    let prefix = scene.url("/gone").replace(':', "%3A");
    let request = format!(
        "POST /purge?prefix={prefix} HTTP/1.1\r\nHost: localhost\r\nX-Foxy-Admin: 1\r\n\r\n"
    );
    Client::to(scene.admin()).send(request).answer().is(200);
    scene.get("/kept").hit();
    scene.get("/gone").miss();
}
