//! A purge and `/why` find the objects of a site by the site's public name. The fragment of a URL (the part
//! after `#`) is ignored.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::with().site().begin();
    scene
        .origin
        .plays("/a?b=1", Reply::ok("hello").max_age(600));
    let through_site = || scene.get_at(scene.site(), "www.shop.example", "/a?b=1");
    let admin = |method: &str, target: &str| {
        let request =
            format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nX-Foxy-Admin: 1\r\n\r\n");
        let answer = Client::to(scene.admin()).send(request).answer();
        answer.is(200);
        String::from_utf8_lossy(&answer.body).into_owned()
    };
    let url = "https%3A%2F%2Fwww.shop.example%2Fa%3Fb%3D1%23top";
    for (number, purge) in [
        format!("/purge?url={url}&site=www"),
        format!("/purge?url={url}"),
        format!("/purge?url={url}&site=www&soft=1"),
        "/purge?host=www.shop.example&site=www".to_owned(),
        "/purge?prefix=www.shop.example%2Fa&site=www".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        through_site();
        through_site().hit();
        let why = admin("GET", &format!("/why?url={url}&site=www"));
        assert!(why.contains("\"decision\": \"hit\""), "{why}");
        let purged = admin("POST", purge);
        if number < 2 {
            assert!(purged.contains("\"objects\": 1"), "{purge}: {purged}");
        }
        let why = admin("GET", &format!("/why?url={url}&site=www"));
        assert!(!why.contains("\"decision\": \"hit\""), "{purge}: {why}");
    }
    // A purge of a host does not affect objects of another host that the forward proxy has stored.
    scene.origin.plays("/f", Reply::ok("hello").max_age(600));
    scene.get("/f").miss();
    admin("POST", "/purge?host=www.shop.example");
    scene.get("/f").hit();
}
